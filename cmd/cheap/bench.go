package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
	"github.com/cheapgo/cheap/cmd/cheap/internal/page"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
	"github.com/cheapgo/cheap/cmd/cheap/internal/tables"
)

// rowCommandName is a command that only this program calls: the child process of
// a row that leaks, or that needs the Go heap for itself.
const rowCommandName = "bench-row"

// How long a run takes, unless -count or -benchtime is given.
const (
	benchBudget = 64 * time.Second

	spliceBudget = 30 * time.Second // more, for the table that -splice adds

	// For each table that is measured only where -run names it: such a table has dozens of
	// rows with rounds of a tenth of a second.
	namedBudget      = 50 * time.Second
	quickNamedBudget = 25 * time.Second
)

// quickBudget is that of -quick. It is a variable for tests.
var quickBudget = 15 * time.Second

// profileTime is how long a row is profiled for -cpuprofile. It is a variable for tests.
var profileTime = time.Second

// benchSettings is what the arguments of `cheap bench` ask for.
type benchSettings struct {
	run     pattern
	count   int
	each    measure.Length
	procs   []int
	quick   bool
	spliced *spliced // nil without -splice
	profile string
	out     output
	old     *result.Report // of -compare, else nil
	command string         // with its flags

	tables []measure.Table
	notes  []string // for the report
}

const benchUsage = `Bench measures what C memory costs in Go on this machine: calls, owners,
allocators, strings and collections. It sets the figures that others have
published beside its own.

Usage:

	cheap bench [flags]

The command prints a report, and writes a page with charts: to cheap-report.html, with
-quick to cheap-report-quick.html, and to cheap-report-part.html if only some rows are
measured, or with other settings.

Flags:

%s
Tables:

%s`

const benchFlags = "-benchtime, -compare, -count, -cpu, -cpuprofile, -format, -o, -quick, -run and -splice"

// parseBench reads the arguments. It returns flag.ErrHelp where they ask for
// help, and a usageError where they are wrong.
func parseBench(args []string) (*benchSettings, *flag.FlagSet, error) {
	s := &benchSettings{tables: tables.All()}
	flags := flag.NewFlagSet("cheap bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := flags.String("run", "", "measure only the rows that match this `pattern`: a regular expression for the table,\nand behind a slash one for the row, as in go test")
	count := flags.String("count", "", "measure this `number` of rounds (default: as many as fit in the time, 3 to 12)")
	each := flags.String("benchtime", "", "let a round of a row take this `time`, such as 10ms, or have this number of operations,\nsuch as 1000x; a row with a fixed number of operations keeps it")
	cpu := flags.String("cpu", "", "measure with each GOMAXPROCS of this `list`, such as 1,2,4, instead of those of the rows")
	flags.BoolVar(&s.quick, "quick", false, "take about 15 seconds instead of 65, with fewer and shorter rounds")
	format := flags.String("format", "text", "report in this `format`: text, json, html, or bench (for benchstat)")
	out := flags.String("o", "", "write the report to this `file`, not to stdout (with -format html: a page);\nwith -format text, a name that ends in .html is for the page, and any other name is\nfor the text, with the page beside it")
	old := flags.String("compare", "", "compare the report with an older one, from this `file`, which -format json has written")
	flags.StringVar(&s.profile, "cpuprofile", "", "run each row of the table release, and of no other, for another second under the CPU\nprofiler, write the profile to this `file`, and report in which functions the rows\nspend their time")
	splice := flags.Bool("splice", false, "add the table splice: cleanups and finalizers in the installed runtime, and in a copy\nof it with a faster search; builds this command twice")

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, flags, err
	}
	if err != nil {
		return nil, flags, usagef("%v; the flags are %s", err, benchFlags)
	}
	if flags.NArg() > 0 {
		return nil, flags, usagef("unexpected argument %q; cheap bench takes flags only", flags.Arg(0))
	}
	if *splice {
		s.spliced = newSpliced()
		s.tables = s.spliced.addTo(s.tables)
	}
	given := func(name string) (found bool) {
		flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
		return found
	}
	s.out.kind = kindOf(flags)
	s.command = strings.Join(append([]string{"cheap bench"}, args...), " ")
	for _, read := range []func() error{
		func() error { return s.parseRun(*run) },
		func() error { return s.parseCount(*count, given("count")) },
		func() error { return s.parseEach(*each, given("benchtime")) },
		func() error { return s.parseProcs(*cpu, given("cpu")) },
		func() error { return s.out.parse(*format, *out, *old != "") },
		func() error { return s.readOld(*old, given("compare")) },
		func() error { return s.checkProfile(given("cpuprofile")) },
		s.out.check,
	} {
		if err := read(); err != nil {
			return nil, flags, err
		}
	}
	return s, flags, nil
}

// kindOf returns what kind of page the flags ask for.
func kindOf(flags *flag.FlagSet) page.Kind {
	kind := page.Whole
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "o", "format", "compare", "cpuprofile": // the rows are the same
		case "quick":
			if kind == page.Whole && f.Value.String() == "true" {
				kind = page.Quick
			}
		default:
			kind = page.Part
		}
	})
	return kind
}

func (s *benchSettings) parseRun(text string) (err error) {
	if s.run, err = parsePattern(text); err != nil {
		return err
	}
	if err = s.run.check(s.tables); err != nil {
		return err
	}
	s.tables = slices.DeleteFunc(s.tables, func(t measure.Table) bool { return t.Named && !s.run.names(t.Name) })
	for i := range s.tables {
		if t := &s.tables[i]; !s.run.names(t.Name) {
			t.Rows = slices.DeleteFunc(t.Rows, func(r measure.Row) bool { return r.Named })
		}
	}
	return nil
}

func (s *benchSettings) parseCount(text string, given bool) (err error) {
	if !given {
		return nil
	}
	if s.count, err = strconv.Atoi(text); err != nil || s.count < 1 {
		return usagef("-count: %q is not a number of rounds; the least is 1", text)
	}
	return nil
}

func (s *benchSettings) parseEach(text string, given bool) error {
	if !given {
		return nil
	}
	var err error
	if n, ok := strings.CutSuffix(text, "x"); ok {
		s.each.N, err = strconv.Atoi(n)
	} else {
		s.each.Time, err = time.ParseDuration(text)
	}
	if err != nil || s.each.N <= 0 && s.each.Time <= 0 {
		return usagef("-benchtime: %q is neither a time nor a number of operations; use one above 0, such as 10ms or 1000x", text)
	}
	return nil
}

// mostProcs bounds -cpu: goroutines and Ps are made for each.
const mostProcs = 1024

func (s *benchSettings) parseProcs(text string, given bool) error {
	if !given {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > mostProcs {
			return usagef("-cpu: %q is not a number of processors; use numbers from 1 to %d, with commas between them", word, mostProcs)
		}
		if !slices.Contains(s.procs, n) {
			s.procs = append(s.procs, n)
		}
	}
	return nil
}

func (s *benchSettings) checkProfile(given bool) error {
	if !given {
		return nil
	}
	profiled, others := false, false
	for _, t := range s.tables {
		kept := s.keepsRows(&t)
		profiled, others = profiled || kept && t.Profiled, others || kept && !t.Profiled
	}
	if others {
		s.notes = append(s.notes, "-cpuprofile: the profile has the rows of the table release, and of no other table")
	}
	if profiled {
		return writable("-cpuprofile", s.profile)
	}
	return usagef("-cpuprofile: only the table release is profiled, and none of its rows is measured")
}

// benchHelp describes the command.
func benchHelp(flags *flag.FlagSet) string {
	var options, list strings.Builder
	flags.SetOutput(&options)
	flags.PrintDefaults()
	for _, t := range tables.All() {
		only := ""
		if t.Named {
			only = ", with -run " + t.Name + " only"
		}
		fmt.Fprintf(&list, "  %-12s%s%s\n", t.Name, t.Title, only)
	}
	return fmt.Sprintf(benchUsage, options.String(), list.String())
}

// benchCommand is `cheap bench`.
func benchCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, flags, err := parseBench(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err := io.WriteString(stdout, benchHelp(flags))
		return err
	}
	if err != nil {
		return err
	}
	if s.spliced != nil {
		defer s.spliced.remove()
		if err := s.buildSpliced(ctx, stderr); err != nil {
			return err
		}
	}
	if missing := missing(); missing != "" {
		fmt.Fprintf(stderr, "cheap bench: %s\n", missing)
	}
	report, failed := s.measure(ctx, stderr)
	if errors.Is(failed, measure.ErrNothing) {
		return usagef("%s; the machine may be busy; with -count a run takes as long as it takes", oneLine(failed))
	}
	if report == nil {
		return failed
	}
	report.Command, report.Version = s.command, version()
	if missing := missing(); missing != "" {
		report.Warnings = append(report.Warnings, missing)
	}
	if err := s.out.write(report, s.old, stdout, stderr); err != nil {
		return errors.Join(err, failed)
	}
	return failed
}

// missing says what this build does not measure, "" if it measures everything.
func missing() string {
	if tables.HasC {
		return ""
	}
	return "Most rows are missing, those that call C. They need a C compiler, such as gcc or clang, and cgo (CGO_ENABLED=1), on Unix."
}

// measure runs the tables. With an error it may return a report: of the rows that
// were measured until then, or of those that did not fail.
func (s *benchSettings) measure(ctx context.Context, stderr io.Writer) (*result.Report, error) {
	progress := newProgress(stderr, "cheap bench")
	defer progress.clear()
	o := measure.Options{
		Keep:    s.run.keeps,
		First:   headline.Asks,
		Procs:   s.procs,
		Budget:  s.budget(),
		Count:   s.count,
		Each:    s.each,
		Machine: thisMachine("100"), // but for rows that say that the collector is off
		Notes:   append(s.notes, environmentNotes()...),
		Child:   rowChild,
		Progress: func(p measure.Progress) {
			progress.show("%s", describeProgress(p))
		},
	}
	if s.profile == "" {
		return measure.Run(ctx, s.tables, o)
	}
	file, err := os.Create(s.profile)
	if err != nil {
		return nil, err
	}
	o.Profile, o.ProfileTime = file, profileTime
	report, err := measure.Run(ctx, s.tables, o)
	return report, errors.Join(err, file.Close())
}

// budget returns how long the run may take.
func (s *benchSettings) budget() time.Duration {
	usual, splice, named := benchBudget, spliceBudget, namedBudget
	if s.quick {
		usual, splice, named = quickBudget, quickBudget, quickNamedBudget
	}
	total := time.Duration(0)
	if slices.ContainsFunc(s.tables, func(t measure.Table) bool { return !t.Named && s.keepsRows(&t) }) {
		total = usual
	}
	if s.spliced != nil {
		total += splice
	}
	for _, t := range s.tables {
		if t.Named {
			total += named
		}
	}
	return total
}

// keepsRows reports whether rows of a table are measured.
func (s *benchSettings) keepsRows(t *measure.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r measure.Row) bool { return s.run.keeps(t.Name, r.Name) })
}

// environmentNotes names the settings of the environment that rows ignore.
func environmentNotes() (notes []string) {
	for name, usual := range map[string]string{"GOGC": "100", "GOMEMLIMIT": "off"} {
		if value := os.Getenv(name); value != "" && value != usual {
			notes = append(notes, fmt.Sprintf("%s=%s in the environment has no effect: rows run with %s=%s", name, value, name, usual))
		}
	}
	slices.Sort(notes)
	return notes
}

// describeProgress describes a progress in one line.
func describeProgress(p measure.Progress) string {
	procs := ""
	if p.Procs != 1 {
		procs = fmt.Sprintf(" on %d processors", p.Procs)
	}
	return fmt.Sprintf("%s/%s%s: %s, %v left", p.Table, p.Row, procs, p.Step, p.Left.Round(time.Second))
}

// rowChild makes the child process of a row: see measure.Child.
func rowChild(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	child := exec.CommandContext(ctx, self, append([]string{rowCommandName}, args...)...)
	if err != nil {
		child.Err = err
	}
	return child
}

// rowCommand is that child.
func rowCommand(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	err := measure.Child(ctx, tables.All(), args, stdin, stdout)
	if errors.Is(err, measure.ErrArgs) {
		return usagef("%v", err)
	}
	return err
}
