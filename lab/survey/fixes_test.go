//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var (
	fixes    = flag.String("fixes", "", "apply the fixes of cfree to copies of the modules of results/fixes.tsv whose paths contain this `text`, or all; they are downloaded, and C libraries needed")
	cheapvet = flag.String("cheapvet", "cheapvet", "the `command` that applies them")
)

// TestFixes runs the tests of modules before and after the fixes of cfree: the fixed module compiles, and each test ends as before. The
// file says how many fixes there are, how many of them the tests run, and how the tests end. Programs of others run with a bound on
// their memory.
func TestFixes(t *testing.T) {
	rows, err := readTable("results/fixes.tsv")
	testcall.Must(t, err)
	if len(rows) < 5 {
		t.Errorf("%d modules, want five", len(rows))
	}
	for _, row := range rows {
		if number(row["fixes"]) == 0 || number(row["passed"]) == 0 || number(row["run"]) > number(row["fixes"]) {
			t.Errorf("%v: want fixes, and tests that pass", row)
		}
		if *fixes == "" || *fixes != "all" && !strings.Contains(row["module"], *fixes) {
			continue
		}
		t.Run(row["module"], func(t *testing.T) {
			got := measureFixes(t, row["module"], strings.Fields(row["tests"]))
			t.Log(got)
			for name, want := range row {
				if got[name] != want {
					t.Errorf("%s: %s, want %s", name, got[name], want)
				}
			}
		})
	}
}

// measureFixes returns a line of results/fixes.tsv as it should be. The arguments are those of go test.
func measureFixes(t *testing.T, module string, args []string) map[string]string {
	t.Helper()
	s := settings{cheapvet: *cheapvet, memory: 16}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = s.copyModule(ctx, module, dir)
	}
	testcall.Must(t, err)
	before := s.goTest(ctx, t, dir, args...)
	findings := s.findings(ctx, t, dir)
	texts := goFiles(t, dir)
	if _, messages, err := s.command(ctx, dir, s.cheapvet, "-cfree", "-tests=false", "-fix", "./..."); !strings.Contains(messages, "fixed") {
		t.Fatalf("nothing is fixed: %v, %s", err, messages)
	}
	profile := filepath.Join(dir, "profile")
	after := s.goTest(ctx, t, dir, append([]string{"-coverpkg=./...", "-coverprofile=" + profile}, args...)...)
	for name, ends := range before {
		if after[name] != ends {
			t.Errorf("%s ends with %q, and ended with %q before the fixes", name, after[name], ends)
		}
	}
	if !maps.Equal(before, after) {
		t.Errorf("%d tests, %d before", len(after), len(before))
	}
	count := map[string]int{}
	for _, ends := range after {
		count[ends]++
	}
	return map[string]string{
		"module": module,
		"tests":  strings.Join(args, " "),
		"fixes":  fmt.Sprint(findings - s.findings(ctx, t, dir)),
		"run":    fmt.Sprint(ran(t, dir, module, profile, texts)),
		"passed": fmt.Sprint(count["pass"]),
		"failed": fmt.Sprint(count["fail"]),
	}
}

// goTest returns how each test of a module ends: pass, fail or skip.
func (s *settings) goTest(ctx context.Context, t *testing.T, dir string, args ...string) map[string]string {
	t.Helper()
	out, messages, _ := s.command(ctx, dir, "go", append([]string{"test", "-json", "-count=1", "-vet=off"}, args...)...)
	ends := map[string]string{}
	for line := range strings.Lines(string(out)) {
		var event struct{ Action, Package, Test, FailedBuild string }
		if json.Unmarshal([]byte(line), &event) != nil || event.Action == "build-output" {
			continue
		}
		if event.FailedBuild != "" {
			t.Fatalf("%s cannot be built: %s\n%s", event.Package, messages, out)
		}
		switch event.Action {
		case "pass", "fail", "skip":
			if event.Test != "" {
				ends[event.Package+" "+event.Test] = event.Action
			}
		}
	}
	if len(ends) == 0 {
		t.Fatalf("go test runs nothing: %s\n%s", messages, out)
	}
	return ends
}

// findings returns how many findings of cfree a module has.
func (s *settings) findings(ctx context.Context, t *testing.T, dir string) int {
	t.Helper()
	out, messages, _ := s.command(ctx, dir, s.cheapvet, "-json", "-cfree", "-tests=false", "./...")
	list, err := parseFindings(out, dir)
	if err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	return len(list)
}

// goFiles returns the lines of the files of a module, with how often each is there, by the paths in the module.
func goFiles(t *testing.T, dir string) map[string]map[string]int {
	t.Helper()
	files := map[string]map[string]int{}
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := map[string]int{}
		for line := range strings.Lines(string(text)) {
			lines[strings.TrimSpace(line)]++
		}
		rel, err := filepath.Rel(dir, name)
		files[filepath.ToSlash(rel)] = lines
		return err
	})
	testcall.Must(t, err)
	return files
}

// ran returns how many of the calls of C.free that files did not have before the tests have run, by a profile of coverage.
func ran(t *testing.T, dir, module, profile string, before map[string]map[string]int) int {
	t.Helper()
	f, err := os.Open(profile)
	testcall.Must(t, err)
	defer f.Close()
	path, _, _ := strings.Cut(module, "@")
	covered := map[string]map[int]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, place, _ := strings.Cut(strings.TrimPrefix(sc.Text(), path+"/"), ":")
		var from, fromColumn, to, toColumn, statements, times int
		if n, _ := fmt.Sscanf(place, "%d.%d,%d.%d %d %d", &from, &fromColumn, &to, &toColumn, &statements, &times); n != 6 || times == 0 {
			continue
		}
		if covered[name] == nil {
			covered[name] = map[int]bool{}
		}
		for line := from; line <= to; line++ {
			covered[name][line] = true
		}
	}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		testcall.Must(t, err)
		at := 0
		for line := range strings.Lines(string(text)) {
			at++
			line = strings.TrimSpace(line)
			if !strings.Contains(line, "C.free(") {
				continue
			}
			if before[name][line]--; before[name][line] < 0 && covered[name][at] {
				n++
			}
		}
	}
	return n
}
