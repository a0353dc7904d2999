package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

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
		s, _, err := parse(strings.Fields(c.args))
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		named := slices.ContainsFunc(s.tables, func(t measure.Table) bool { return t.Name == "workloads" })
		if got := s.budget(); named != c.named || got != c.budget {
			t.Errorf("%q: the table is measured: %v, in %v; want %v, in %v", c.args, named, got, c.named, c.budget)
		}
	}
	if _, _, err := parse([]string{"-run", "/larson"}); err == nil || !strings.Contains(err.Error(), `no row matches "/larson"`) {
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
		s, _, err := parse(strings.Fields(args))
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
	if _, _, err := parse([]string{"-run", "/own-8"}); err == nil || !strings.Contains(err.Error(), `no row matches "/own-8"`) {
		t.Errorf("a row that is not named: %v", err)
	}
}

// TestLimits checks which rows -limits measures, that it needs some about which there is a promise,
// and that a figure above its limit is an error.
func TestLimits(t *testing.T) {
	if !tables.HasC {
		return // most rows need C
	}
	s, _, err := parse([]string{"-limits"})
	if err != nil || s.count != limitRounds {
		t.Fatalf("%d rounds, %v", s.count, err)
	}
	for _, table := range s.tables {
		if table.Name == "calls" || table.Name == "workloads" || len(table.Rows) == 0 {
			t.Errorf("table %s is measured", table.Name)
		}
	}
	if s, _, err := parse([]string{"-limits", "-run", "strings/parameters", "-count", "3"}); err != nil || s.count != 3 {
		t.Errorf("%d rounds, %v", s.count, err)
	}
	if _, _, err := parse([]string{"-limits", "-run", "calls"}); err == nil || !strings.Contains(err.Error(), "nothing is promised") {
		t.Errorf("the table calls: %v", err)
	}
	row := result.Row{Table: "t", Row: "r", Procs: 2, Bars: []result.Bar{{Figure: "time", Value: 1.2, Bar: 1, Limit: 1.3}}}
	if err := regressed(&result.Report{Rows: []result.Row{row}}); err != nil {
		t.Error(err)
	}
	row.Bars[0].Limit = 1.1
	if err := regressed(&result.Report{Rows: []result.Row{row}}); err == nil || err.Error() != "above the regression limit: t/r on 2: time 1.2, limit 1.1" {
		t.Error(err)
	}
}

// TestProfileNote checks that a report says which of its tables the profile has.
func TestProfileNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	for run, want := range map[string]int{"release": 0, "release|calls": 1, "": 1} {
		s, _, err := parse([]string{"-run", run, "-cpuprofile", file})
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

func TestDescribeProgress(t *testing.T) {
	p := measure.Progress{Table: "calls", Row: "cgo", Procs: 2, Step: "round 3", Left: 41400 * time.Millisecond}
	if got, want := describeProgress(p), "calls/cgo on 2 processors: round 3, 41s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestChildArguments runs the processes that measure a row with wrong arguments.
func TestChildArguments(t *testing.T) {
	if err := run([]string{rowCommandName}, strings.NewReader(""), io.Discard); !errors.Is(err, measure.ErrArgs) {
		t.Errorf("%s: %v", rowCommandName, err)
	}
}

// TestOtherMalloc runs the process of a row whose library is not preloaded. The dynamic linker
// goes on without a library that it cannot load, so the process looks whether it is its malloc.
func TestOtherMalloc(t *testing.T) {
	if !tables.HasC {
		return // nothing is preloaded
	}
	if _, err := preload.Find("jemalloc"); err != nil {
		t.Skip(err)
	}
	var stdout bytes.Buffer
	if err := run([]string{rowCommandName, "workloads", "large-jemalloc", "1"}, strings.NewReader("0\n"), &stdout); err != nil {
		t.Fatal(err)
	}
	if said := stdout.String(); !strings.Contains(said, "jemalloc is not measured: malloc is in ") || !strings.Contains(said, `"Unsupported":true`) {
		t.Errorf("it said %s", said)
	}
}

// conversation runs the command, and returns its last message.
func conversation(t *testing.T, stdin io.Reader, args ...string) (last result.Message) {
	t.Helper()
	var stdout bytes.Buffer
	if err := run(args, stdin, &stdout); err != nil {
		t.Fatal(err)
	}
	for from := json.NewDecoder(&stdout); ; {
		var m result.Message
		if err := from.Decode(&m); errors.Is(err, io.EOF) {
			return last
		} else if err != nil {
			t.Fatal(err)
		}
		last = m
	}
}

// open is a stdin that stays open.
type open struct{}

func (open) Read([]byte) (int, error) { select {} }

// TestNothing has no time for one row: that is no success, and no report.
func TestNothing(t *testing.T) {
	defer func(d time.Duration) { quickBudget = d }(quickBudget)
	quickBudget = 1
	m := conversation(t, open{}, "-quick", "-run=calls")
	const want = "nothing was measured: the time of 1ns was over before the first round; the machine may be busy; with -count a run takes as long as it takes"
	if m.Error != want || !m.Usage || m.Report != nil {
		t.Errorf("%+v", m)
	}
}

// TestEndOfStdin ends a run: what was measured until then is reported before.
func TestEndOfStdin(t *testing.T) {
	if m := conversation(t, strings.NewReader(""), "-run=calls/inlined"); !m.Interrupted {
		t.Errorf("%+v", m)
	}
}

// TestReport has the rows in the order of the tables, and a machine.
func TestReport(t *testing.T) {
	m := conversation(t, open{}, "-run=calls/inlined|calls/func-value", "-count=2", "-benchtime=10x")
	if m.Report == nil || len(m.Report.Rows) != 2 || m.Report.Rows[0].Machine.CPU == "" || m.Report.Tables[0].Name != "calls" {
		t.Errorf("%+v", m.Report)
	}
}
