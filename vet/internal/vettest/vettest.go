// Package vettest runs analyzers on packages in testdata, and compares what they report with the
// comments in them, as x/tools' analysistest does. It reads all packages at once, and the standard
// library from the build cache. Package analysistest reads and checks the source of the standard
// library for each analyzer again.
//
// A comment want has patterns, for what is reported in its line, and for facts of what the line
// declares:
//
//	cs := C.CString(s) // want `is never freed`
//	func Make() *Image // want Make:"makes"
package vettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/scanner"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/cheapgo/cheap/vet/internal/fixes"
)

// Data are the packages in a folder with src in it, as GOPATH has it.
type Data struct {
	load func() (map[string]*packages.Package, error)
}

// Open returns the packages below testdata/src. They are read when a test asks for one.
func Open() *Data {
	return &Data{sync.OnceValues(load)}
}

// Host returns the environment for a go command that needs a compiler of C: there is one for this machine, whatever the test is
// built for.
func Host() ([]string, error) {
	out, err := exec.Command("go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	system, arch, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{"GOOS=" + system, "GOARCH=" + arch}, nil
}

func load() (map[string]*packages.Package, error) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		return nil, err
	}
	host, err := Host()
	if err != nil {
		return nil, err
	}
	config := &packages.Config{
		Mode: packages.LoadSyntax,
		Dir:  filepath.Join(dir, "src"),
		// Without cgo go list leaves packages with cgo out.
		Env: append(append(os.Environ(), "GOPATH="+dir, "GO111MODULE=off", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=1"), host...),
	}
	list, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	all := map[string]*packages.Package{}
	for _, p := range list {
		for _, err := range p.Errors {
			return nil, fmt.Errorf("package %s: %w", p.PkgPath, err)
		}
		all[p.PkgPath] = p
	}
	for _, p := range list {
		for path := range p.Imports {
			if all[path] == nil {
				delete(p.Imports, path) // there is no source, so analyzers need not look there
			}
		}
	}
	return all, nil
}

// Run runs an analyzer on packages, and on those of the folder that they import.
func (d *Data) Run(t *testing.T, a *analysis.Analyzer, paths ...string) []*checker.Action {
	t.Helper()
	acts := d.acts(t, a, paths...)
	for _, act := range acts {
		for _, problem := range compare(act) {
			t.Error(problem)
		}
	}
	return acts
}

// Act runs an analyzer on a package, whatever its comments say.
func (d *Data) Act(t *testing.T, a *analysis.Analyzer, path string) *checker.Action {
	t.Helper()
	return d.acts(t, a, path)[0]
}

func (d *Data) acts(t *testing.T, a *analysis.Analyzer, paths ...string) []*checker.Action {
	t.Helper()
	all, err := d.load()
	if err != nil {
		t.Fatal(err)
	}
	var list []*packages.Package
	for _, path := range paths {
		if all[path] == nil {
			t.Fatalf("there is no package %s", path)
		}
		list = append(list, all[path])
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{a}, list, &checker.Options{SanityCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Fatalf("%s: %v", act, act.Err)
		}
	}
	return graph.Roots
}

// A place is a line of a file.
type place struct {
	file string
	line int
}

// A want is what a comment expects: that the name has a fact, or with no name that the line has a
// finding.
type want struct {
	name string
	re   *regexp.Regexp
}

// compare compares what an analyzer has reported for a package with the comments of its files. It
// returns what differs.
func compare(act *checker.Action) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	fset := act.Package.Fset
	wants := map[place][]want{}
	for _, f := range act.Package.Syntax {
		for _, group := range f.Comments {
			for _, c := range group.List {
				_, text, ok := strings.Cut(c.Text, "// want ")
				if !ok {
					continue
				}
				pos := fset.Position(c.Pos())
				list, err := parse(text)
				if err != nil {
					problem("%s: %v", pos, err)
				}
				at := place{pos.Filename, pos.Line}
				wants[at] = append(wants[at], list...)
			}
		}
	}
	got := func(file string, line int, name, message string) {
		at := place{file, line}
		i := slices.IndexFunc(wants[at], func(w want) bool { return w.name == name && w.re.MatchString(message) })
		if i < 0 {
			problem("%s:%d: not wanted: %s %s", file, line, name, message)
			return
		}
		wants[at] = slices.Delete(wants[at], i, i+1)
	}
	for _, d := range act.Diagnostics {
		pos := fset.Position(d.Pos)
		got(pos.Filename, pos.Line, "", d.Message)
	}
	for _, f := range act.AllObjectFacts() {
		if f.Object.Pkg() == act.Package.Types {
			pos := fset.Position(f.Object.Pos())
			got(pos.Filename, pos.Line, f.Object.Name(), fmt.Sprint(f.Fact))
		}
	}
	for at, list := range wants {
		for _, w := range list {
			problem("%s:%d: missing: %s %#q", at.file, at.line, w.name, w.re)
		}
	}
	return problems
}

// parse returns what stands behind "// want ": patterns as strings of Go, with a name and a colon
// before those of facts.
func parse(text string) (list []want, err error) {
	var s scanner.Scanner
	s.Init(strings.NewReader(text))
	s.Mode = scanner.ScanIdents | scanner.ScanStrings | scanner.ScanRawStrings
	s.Error = func(_ *scanner.Scanner, msg string) { err = fmt.Errorf("in a comment want: %s", msg) }
	name := ""
	for tok := s.Scan(); tok != scanner.EOF && err == nil; tok = s.Scan() {
		switch tok {
		case scanner.Ident:
			if name = s.TokenText(); s.Scan() != ':' {
				return nil, fmt.Errorf("in a comment want: no colon behind %s", name)
			}
		case scanner.String, scanner.RawString:
			pattern, _ := strconv.Unquote(s.TokenText())
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			list = append(list, want{name, re})
			name = ""
		default:
			return nil, fmt.Errorf("in a comment want: %s", s.TokenText())
		}
	}
	return list, err
}

// Fix runs an analyzer on packages, and compares their files with those beside them whose names end
// in .golden, after the fixes of all findings and gofmt.
func (d *Data) Fix(t *testing.T, a *analysis.Analyzer, paths ...string) {
	t.Helper()
	for _, act := range d.Run(t, a, paths...) {
		var files fixes.Files
		for _, diag := range act.Diagnostics {
			for _, fix := range diag.SuggestedFixes {
				if !files.Add(act.Package.Fset, fix) {
					t.Errorf("%s: the fixes of %q overlap", act.Package.PkgPath, diag.Message)
				}
			}
		}
		fixed, err := files.Apply()
		if err != nil {
			t.Fatal(err)
		}
		if len(fixed) == 0 {
			t.Errorf("%s has no fix", act.Package.PkgPath)
		}
		for name, got := range fixed {
			golden, err := os.ReadFile(name + ".golden")
			if err != nil {
				t.Errorf("%v; the fixes make\n%s", err, got)
			} else if string(got) != string(golden) {
				t.Errorf("%s: the fixes make\n%s\nwant\n%s", name, got, golden)
			}
		}
	}
}
