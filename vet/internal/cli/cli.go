// Package cli is the command cheapvet without go vet: it reads packages before cgo.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/cheapgo/cheap/vet/internal/load"
)

// The exit codes. A report as JSON or SARIF ends with exitClean, whatever it has.
const (
	exitClean    = 0
	exitFindings = 1 // or nothing matches
	exitUsage    = 2 // wrong input, or packages that cannot be read
)

const usage = `cheapvet finds mistakes with C memory in Go programs with cgo.

usage: cheapvet [flags] packages
       cheapvet help [analyzer]
       cheapvet version
       go vet -vettool=$(which cheapvet) packages

Alone it needs neither a C compiler nor the headers of C libraries. The exit code is 0 if it finds
nothing, 1 if it does or no package matches, and 2 for wrong input. With -json or -sarif it is 0 for
findings as well. A package that cannot be read is named and left out. The others are looked at, and
the code is 2.

Examples:

	cheapvet ./...                                 all analyzers, test files included
	cheapvet -cfree -keepalive ./...               two of them
	cheapvet -perobject=false ./...                all but one
	cheapvet -tags=sqlite_fts5 -tests=false ./...  with a build tag, without test files
	cheapvet -sarif ./... >findings.sarif          for code scanning
	cheapvet -cfree -fix ./...                     apply the fixes, where no header is
	go vet -vettool=$(which cheapvet) -fix ./...   apply them as go vet does
	go fix -fixtool=$(which cheapvet) -diff ./...  only show them
	cheapvet help keepalive                        what an analyzer reports, and what it does not

`

// Run runs the command with its arguments, without its name, and returns the exit code.
func Run(analyzers []*analysis.Analyzer, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "help" {
		return help(analyzers, args[1:], stdout, stderr)
	}
	if len(args) == 1 && (args[0] == "version" || args[0] == "-version" || args[0] == "--version") {
		version := "of unknown version"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			version = info.Main.Version
		}
		fmt.Fprintf(stdout, "cheapvet %s, %s\n", version, runtime.Version())
		return exitClean
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "cheapvet: %s\n", strings.Join(strings.Fields(err.Error()), " "))
		return exitUsage
	}
	flags := flag.NewFlagSet("cheapvet", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "print JSON, as go vet -json does")
	asSARIF := flags.Bool("sarif", false, "print SARIF 2.1.0")
	fix := flags.Bool("fix", false, "write the fixes to the files, and print the findings that have none")
	lines := flags.Int("c", -1, "print the `line` of each finding, with so many lines around it")
	config := load.Config{}
	flags.StringVar(&config.Tags, "tags", "", "build tags, with commas between them")
	flags.BoolVar(&config.Tests, "tests", true, "look at test files, too")
	chosen := addFlags(flags, analyzers)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage, "Flags:\n\n")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return exitClean
	case err != nil:
		return fail(err)
	case flags.NArg() == 0:
		return fail(errors.New("no packages; try cheapvet ./..., or cheapvet -h"))
	case *asJSON && *asSARIF || *fix && (*asJSON || *asSARIF):
		return fail(errors.New("-fix, -json and -sarif exclude each other"))
	}
	pkgs, broken, err := load.Load(config, flags.Args()...)
	if errors.Is(err, load.ErrNone) {
		fail(err)
		return exitFindings
	}
	if err != nil {
		return fail(err)
	}
	for _, err := range broken {
		fail(err)
	}
	graph, err := analyze(choose(analyzers, chosen, flags), pkgs)
	if err != nil {
		return fail(err)
	}
	if *fix {
		if err := applyFixes(graph, stderr); err != nil {
			return fail(err)
		}
	}
	switch {
	case *asJSON:
		err = graph.PrintJSON(stdout)
	case *asSARIF:
		err = printSARIF(stdout, analyzers, graph)
	default:
		err = graph.PrintText(stdout, *lines)
	}
	switch {
	case err != nil:
		return fail(err)
	case len(broken) > 0:
		return exitUsage
	case !*asJSON && !*asSARIF && found(graph):
		return exitFindings
	}
	return exitClean
}

// addFlags adds the flags of the analyzers, and returns those that choose them, by their names.
func addFlags(flags *flag.FlagSet, analyzers []*analysis.Analyzer) map[string]*bool {
	chosen := map[string]*bool{}
	for _, a := range analyzers {
		summary, _, _ := strings.Cut(a.Doc, "\n")
		chosen[a.Name] = flags.Bool(a.Name, false, summary)
		a.Flags.VisitAll(func(f *flag.Flag) { flags.Var(f.Value, a.Name+"."+f.Name, f.Usage) })
	}
	return chosen
}

// analyze runs the analyzers. An analyzer that fails is an error.
func analyze(analyzers []*analysis.Analyzer, pkgs []*packages.Package) (*checker.Graph, error) {
	graph, err := checker.Analyze(analyzers, pkgs, nil)
	if err != nil {
		return nil, err
	}
	for act := range graph.All() {
		if act.Err != nil {
			return nil, fmt.Errorf("%s: %w", act, act.Err)
		}
	}
	return graph, nil
}

// choose returns the analyzers whose flags are set, or all but those whose flags are false.
func choose(analyzers []*analysis.Analyzer, chosen map[string]*bool, flags *flag.FlagSet) []*analysis.Analyzer {
	off, some := map[string]bool{}, false
	flags.Visit(func(f *flag.Flag) {
		if on, ok := chosen[f.Name]; ok {
			some = some || *on
			off[f.Name] = !*on
		}
	})
	var list []*analysis.Analyzer
	for _, a := range analyzers {
		if some && *chosen[a.Name] || !some && !off[a.Name] {
			list = append(list, a)
		}
	}
	return list
}

func found(graph *checker.Graph) bool {
	for _, act := range graph.Roots {
		if len(act.Diagnostics) > 0 {
			return true
		}
	}
	return false
}

func help(analyzers []*analysis.Analyzer, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stdout, usage, "Analyzers:\n\n")
		for _, a := range analyzers {
			summary, _, _ := strings.Cut(a.Doc, "\n")
			fmt.Fprintf(stdout, "\t%-16s %s\n", a.Name, summary)
		}
		return exitClean
	}
	for _, a := range analyzers {
		if a.Name == args[0] && len(args) == 1 {
			fmt.Fprintf(stdout, "%s: %s\n", a.Name, a.Doc)
			return exitClean
		}
	}
	fmt.Fprintf(stderr, "cheapvet: no analyzer %s; cheapvet help lists them\n", strings.Join(args, " "))
	return exitUsage
}
