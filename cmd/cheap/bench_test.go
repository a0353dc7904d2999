package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
	"github.com/cheapgo/cheap/cmd/cheap/internal/tables"
)

// cmdBench is "bench n table/row/procs...": stdout is the JSON of these rows, in
// this order, of n rounds each.
func cmdBench(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bench n table/row/procs...")
	}
	var rows []result.Row
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &rows))
	var names []string
	for _, r := range rows {
		names = append(names, fmt.Sprintf("%s/%s/%d", r.Table, r.Row, r.Procs))
		if strconv.Itoa(len(r.Samples)) != args[0] || r.NsPerOp <= 0 || r.Machine == nil || r.Machine.CPU == "" || r.Machine.GOGC != "100" {
			ts.Fatalf("%+v", r)
		}
		if r.CI95Low > r.NsPerOp || r.CI95High < r.NsPerOp && r.CI95High != 0 {
			ts.Fatalf("%v is not between %v and %v", r.NsPerOp, r.CI95Low, r.CI95High)
		}
		if _, err := time.Parse(time.RFC3339, r.Machine.Date); err != nil {
			ts.Fatalf("%v", err)
		}
	}
	if !reflect.DeepEqual(names, args[1:]) {
		ts.Fatalf("rows are %q, want %q", names, args[1:])
	}
}

// TestBenchInterrupted checks that an interrupted run prints what it has measured,
// here nothing.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	t.Chdir(t.TempDir())
	code := run(ctx, []string{"bench", "-format=json"}, nil, &stdout, &stderr)
	if code != exitInterrupted || !strings.HasSuffix("\n"+stderr.String(), "\ncheap bench: interrupted\n") || strings.Join(strings.Fields(stdout.String()), "") != "[]" {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, &stderr, &stdout)
	}
	stdout.Reset()
	stderr.Reset()
	code = run(ctx, []string{"bench"}, nil, &stdout, &stderr)
	if code != exitInterrupted || !strings.HasSuffix("\n"+stderr.String(), "\ncheap bench: interrupted\n") || !strings.Contains(stdout.String(), "nothing was measured") {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, &stderr, &stdout)
	}
	if files, _ := os.ReadDir("."); len(files) != 0 {
		t.Errorf("it wrote %v", files)
	}
}

// TestBenchNothing has no time for one row: that is no success, and no report.
func TestBenchNothing(t *testing.T) {
	defer func(d time.Duration) { quickBudget = d }(quickBudget)
	quickBudget = 1
	t.Chdir(t.TempDir())
	for _, format := range []string{"text", "json", "html"} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"bench", "-quick", "-run=calls", "-format=" + format}, nil, &stdout, &stderr)
		const want = "cheap bench: nothing was measured: the time of 1ns was over before the first round; the machine may be busy; with -count a run takes as long as it takes\n"
		if code != exitUsage || !strings.HasSuffix("\n"+stderr.String(), "\n"+want) || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, stderr %q, stdout %q", format, code, &stderr, &stdout)
		}
		if files, _ := os.ReadDir("."); len(files) != 0 {
			t.Errorf("it wrote %v", files)
		}
	}
}

// TestBenchClosedOutput checks that a report which cannot be written is an error.
func TestBenchClosedOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, format := range []string{"text", "json", "bench"} {
		var stderr bytes.Buffer
		args := []string{"bench", "-run=calls/inlined", "-count=1", "-benchtime=10x", "-format=" + format}
		if code := run(t.Context(), args, nil, closedWriter{}, &stderr); code != exitFailed {
			t.Errorf("%s: exit code %d, want %d; stderr %q", format, code, exitFailed, &stderr)
		}
	}
}

// TestPattern compares patterns with those of go test -run.
func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, table, row string
		want                bool
	}{
		{"", "calls", "cgo", true},
		{"call", "calls", "cgo", true},
		{"^call$", "calls", "cgo", false},
		{"release/own", "release", "own-close", true},
		{"release/own", "release", "finalizer", false},
		{"release/^finalizer$", "release", "finalizer-empty", false},
		{"/own", "release", "own-close", true},
		{"a/b|release/own", "release", "own-close", true},
		{"a/b|release/own", "a", "own", false},
		{"(a|release)/own", "release", "own", true},
		{"calls/[a/]go", "calls", "ago", true},
		{"[|]|calls", "calls", "x", true},
		{`calls\|`, "calls", "x", false},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
		} else if got := p.keeps(c.table, c.row); got != c.want {
			t.Errorf("%q keeps %s/%s: %v", c.pattern, c.table, c.row, got)
		}
	}
}

func TestPatternCheck(t *testing.T) {
	tables := []measure.Table{{Table: result.Table{Name: "a"}, Rows: []measure.Row{{Name: "x"}, {Name: "y"}}}, {Table: result.Table{Name: "c"}}}
	for pattern, want := range map[string]string{
		"a/x": "", "": "", "a|a/y": "",
		"b":   `-run: no table matches "b"; the tables are a`,
		"a/z": `-run: no row matches "a/z"; the rows are a/x, a/y`,
		"c":   `-run: the table c needs cgo, which this build does not have; the tables are a`,
		"a|b": `-run: no table matches "b"; the tables are a`,
	} {
		p, err := parsePattern(pattern)
		if err == nil {
			err = p.check(tables)
		}
		if got := fmt.Sprint(err); got != want && !(want == "" && err == nil) {
			t.Errorf("%q: %s", pattern, got)
		}
	}
}

// TestNamed checks that a table which has to be named is in no other run, and that the
// run takes its time.
func TestNamed(t *testing.T) {
	for _, c := range []struct {
		args   string
		named  bool
		budget time.Duration
	}{
		{"", false, benchBudget},
		{"-run calls", false, benchBudget},
		{"-run /heap", false, benchBudget},
		{"-run workloads", true, namedBudget},
		{"-run w.*ds/larson-heap", true, namedBudget},
		{"-run calls|workloads/large-heap", true, benchBudget + namedBudget},
		{"-quick -run workloads", true, quickNamedBudget},
		{"-quick -run calls|workloads", true, quickBudget + quickNamedBudget},
	} {
		s, _, err := parseBench(strings.Fields(c.args))
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		named := slices.ContainsFunc(s.tables, func(t measure.Table) bool { return t.Name == "workloads" })
		if got := s.budget(); named != c.named || got != c.budget {
			t.Errorf("%q: the table is measured: %v, in %v; want %v, in %v", c.args, named, got, c.named, c.budget)
		}
	}
	if _, _, err := parseBench([]string{"-run", "/larson"}); err == nil || !strings.Contains(err.Error(), `no row matches "/larson"`) {
		t.Errorf("a row of a table that is not named: %v", err)
	}
}

// TestNamedRows checks that a row which has to be named is measured only if its table is
// named, and that no pattern selects such rows alone without it.
func TestNamedRows(t *testing.T) {
	for args, want := range map[string]string{
		"": "64 256 1024 4096", "-quick": "64 256 1024 4096", "-run calls|/own": "64 256 1024 4096",
		"-run size": "8 16 32 64 128 256 512 1024 2048 4096", "-run size/own": "8 16 32 64 128 256 512 1024 2048 4096",
	} {
		s, _, err := parseBench(strings.Fields(args))
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		var sizes []string
		for _, table := range s.tables {
			for _, row := range table.Rows {
				if size, ok := strings.CutPrefix(row.Name, "own-"); ok && table.Name == "size" && s.run.keeps("size", row.Name) {
					sizes = append(sizes, size)
				}
			}
		}
		if got := strings.Join(sizes, " "); got != want {
			t.Errorf("%q: the sizes are %s, want %s", args, got, want)
		}
	}
	if _, _, err := parseBench([]string{"-run", "/own-8"}); err == nil || !strings.Contains(err.Error(), `no row matches "/own-8"`) {
		t.Errorf("a row that is not named: %v", err)
	}
}

// TestProfileNote checks that a report says which of its tables the profile has.
func TestProfileNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	for run, want := range map[string]int{"release": 0, "release|calls": 1, "": 1} {
		s, _, err := parseBench([]string{"-run", run, "-cpuprofile", file})
		if !tables.HasC { // there is no table release
			if err == nil {
				t.Errorf("-run %q: the profile of nothing is no error", run)
			}
			continue
		}
		if err != nil || len(s.notes) != want {
			t.Errorf("-run %q: %v, notes %q", run, err, s.notes)
		}
	}
}

// TestWritable checks that writable does not change a file.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	there, missing := filepath.Join(dir, "there"), filepath.Join(dir, "missing")
	if err := os.WriteFile(there, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := writable("-o", there); err != nil {
		t.Error(err)
	}
	if err := writable("-o", missing); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(there); string(text) != "text" {
		t.Errorf("the file has %q", text)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("there is a file now")
	}
	if err := writable("-o", dir); err == nil {
		t.Error("a folder can be written")
	}
}

func TestDescribeProgress(t *testing.T) {
	p := measure.Progress{Table: "calls", Row: "cgo", Procs: 2, Step: "round 3", Left: 41400 * time.Millisecond}
	if got, want := describeProgress(p), "calls/cgo on 2 processors: round 3, 41s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
