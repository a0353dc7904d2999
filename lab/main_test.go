package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/report"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

// TestMain makes the test's program its own child, as lab is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == rowCommandName {
		main()
	}
	os.Exit(m.Run())
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
		s, _, err := parse(strings.Fields(c.args), false)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		named := slices.ContainsFunc(s.tables, func(t measure.Table) bool { return t.Name == "workloads" })
		if got := s.budget(); named != c.named || got != c.budget {
			t.Errorf("%q: the table is measured: %v, in %v; want %v, in %v", c.args, named, got, c.named, c.budget)
		}
	}
	if _, _, err := parse([]string{"-run", "/larson"}, false); err == nil || !strings.Contains(err.Error(), `no row matches "/larson"`) {
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
		s, _, err := parse(strings.Fields(args), false)
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
	if _, _, err := parse([]string{"-run", "/own-8"}, false); err == nil || !strings.Contains(err.Error(), `no row matches "/own-8"`) {
		t.Errorf("a row that is not named: %v", err)
	}
}

// TestLimits checks which rows -limits measures, that it needs some about which there is a promise,
// and that a figure above its limit is an error.
func TestLimits(t *testing.T) {
	if !tables.HasC {
		return // most rows need C
	}
	s, _, err := parse([]string{"-limits"}, false)
	if err != nil || s.count != limitRounds {
		t.Fatalf("%d rounds, %v", s.count, err)
	}
	for _, table := range s.tables {
		if table.Name == "calls" || table.Name == "workloads" || len(table.Rows) == 0 {
			t.Errorf("table %s is measured", table.Name)
		}
	}
	if s, _, err := parse([]string{"-limits", "-run", "strings/parameters", "-count", "3"}, false); err != nil || s.count != 3 {
		t.Errorf("%d rounds, %v", s.count, err)
	}
	if _, _, err := parse([]string{"-limits", "-run", "calls"}, false); err == nil || !strings.Contains(err.Error(), "nothing is promised") {
		t.Errorf("the table calls: %v", err)
	}
	row := result.Row{Table: "t", Row: "r", Procs: 2, Bars: []result.Bar{{Figure: "time", Value: 1.2, Bar: 1, Limit: 1.3}}}
	testcall.Want(t, regressed(&result.Report{Rows: []result.Row{row}}))
	row.Bars[0].Limit = 1.1
	if err := regressed(&result.Report{Rows: []result.Row{row}}); err == nil || err.Error() != "above the regression limit: t/r on 2: time 1.2, limit 1.1" {
		t.Error(err)
	}
}

func TestDescribeProgress(t *testing.T) {
	p := measure.Progress{Table: "calls", Row: "cgo", Procs: 2, Step: "round 3", Left: 41400 * time.Millisecond}
	if got, want := describeProgress(p), "calls/cgo on 2 processors: round 3, 41s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// lab runs a command line, and returns what it prints.
func lab(t *testing.T, ctx context.Context, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	code = run(ctx, strings.Fields(line), strings.NewReader(""), &out, &said)
	return code, out.String(), said.String()
}

// TestMistakes has arguments that are wrong: one line says what is right, and nothing is measured or
// written.
func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	testcall.Must(t, os.Mkdir("folder", 0o777))
	for line, want := range map[string]string{
		"-fast":             "flag provided but not defined: -fast; -h lists the flags",
		"calls":             `unexpected argument "calls"; lab takes flags, and the command replay`,
		"-run nothing":      `-run: no table matches "nothing"; the tables are calls, `,
		"-run a/b/c":        `-run: "a/b/c" has 2 slashes`,
		"-run ca(lls":       "-run: error parsing regexp: ",
		"-format xml":       `-format: unknown format "xml"; the formats are text, json, bench and html`,
		"-cpu 0":            `invalid value "0" for flag -cpu: use numbers of processors from 1 to 1024`,
		"-cpu 1,,2":         `invalid value "1,,2" for flag -cpu: `,
		"-cpu=":             `invalid value "" for flag -cpu: `,
		"-cpu 1000000":      `invalid value "1000000" for flag -cpu: `,
		"-count 0":          `invalid value "0" for flag -count: use a number of rounds; the least is 1`,
		"-count many":       `invalid value "many" for flag -count: `,
		"-benchtime 0s":     `invalid value "0s" for flag -benchtime: use a time or a number of operations above 0`,
		"-benchtime 0x":     `invalid value "0x" for flag -benchtime: `,
		"-benchtime -5ms":   `invalid value "-5ms" for flag -benchtime: `,
		"-o missing/x.json": "-o: open missing/x.json: ",
		"-o folder":         "-o: open folder: ",

		"replay -fast":            "flag provided but not defined: -fast; -h lists the flags",
		"replay gcc -count 3":     "the flag -count follows a trace; put the flags before the first trace",
		"replay -run gcc/x gcc":   `-run: no row matches "gcc/x"; the rows are gcc/heap, gcc/local, `,
		"replay -limits -run gcc": "-limits: nothing is promised of the rows that are measured",
	} {
		code, stdout, stderr := lab(t, t.Context(), line)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "lab: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %s", line, code, stdout, stderr)
		}
	}
	if files, _ := os.ReadDir("."); len(files) != 1 {
		t.Errorf("it wrote %v", files)
	}
	if code, _, stderr := lab(t, t.Context(), rowCommandName); code != exitFailed || !strings.Contains(stderr, measure.ErrArgs.Error()) {
		t.Errorf("%s: exit code %d, %s", rowCommandName, code, stderr)
	}
}

// TestHelp has what is described on stdout.
func TestHelp(t *testing.T) {
	for line, want := range map[string]string{
		"-h":        "-benchtime time\n.*-count number\n.*-quick\n",
		"-list":     `(?m)^calls +\S.*\n  calls/`,
		"replay -h": `part of this program: sqlite, gcc\..*-native path\n`,
	} {
		code, stdout, stderr := lab(t, t.Context(), line)
		if code != exitOK || stderr != "" || !regexp.MustCompile("(?s)"+want).MatchString(stdout) {
			t.Errorf("%s: exit code %d, %s%s", line, code, stdout, stderr)
		}
		for l := range strings.Lines(stdout) {
			if n := len(strings.ReplaceAll(l, "\t", "        ")); n > 100 && line != "-list" {
				t.Errorf("%s: %d columns: %s", line, n, l)
			}
		}
	}
}

// TestHeadline has the rows that the headline is about.
func TestHeadline(t *testing.T) {
	_, list, _ := lab(t, t.Context(), "-list")
	for _, row := range report.HeadlineRows() {
		if tables.HasC && !slices.Contains(strings.Fields(list), row) {
			t.Errorf("there is no row %s", row)
		}
	}
}

// TestFormats measures two rows, and finds them in each format, on stdout or in a file.
func TestFormats(t *testing.T) {
	t.Setenv("GOGC", "50")
	for line, want := range map[string]struct{ file, text string }{
		"":                  {"", `(?m)GOGC=100, .*(.|\n)* inlined$(.|\n)* func-value$(.|\n)*GOGC=50 in the environment has no effect`},
		"-format json":      {"", `^\[\n\{"table":"calls","row":"inlined","procs":1,.*"machine":\{.*\},\n\{.*\}\n\]\n$`},
		"-format bench":     {"", `(?m)^BenchmarkCheap/table=calls/row=inlined-1 1 [\d.]+ ns/op$`},
		"-format html":      {"", `<html`},
		"-o x.html":         {"x.html", `<html`},
		"-o x.json":         {"x.json", `samples_ns`},
		"-o x":              {"x", `(?m) inlined$`},
		"-o y -format json": {"y", `samples_ns`},
	} {
		t.Chdir(t.TempDir())
		code, stdout, stderr := lab(t, t.Context(), "-run=calls/inlined|calls/func-value -count=6 -benchtime=100us "+line)
		page, said := "", ""
		if line == "" {
			page, said = partName, "lab: the charts are in "+partName+"\n"
		}
		text := stdout
		if want.file != "" {
			b, err := os.ReadFile(want.file)
			if text = string(b); err != nil || stdout != "" {
				t.Errorf("%s: stdout %s, %v", line, stdout, err)
			}
		}
		files, _ := filepath.Glob("*")
		if code != exitOK || tables.HasC && stderr != said || strings.Join(files, " ") != page+want.file || !regexp.MustCompile(want.text).MatchString(text) {
			t.Errorf("%s: exit code %d, stderr %q, files %q, %s", line, code, stderr, files, text)
		}
		if missing := "Most rows are missing, those that call C"; strings.Contains(stderr, missing) == tables.HasC || line == "" && strings.Contains(text, missing) == tables.HasC {
			t.Errorf("%s: what is missing: %s%s", line, stderr, text)
		}
	}
}

// TestWhole has the page of a whole run, which that of a part does not replace.
func TestWhole(t *testing.T) {
	t.Chdir(t.TempDir())
	r := &result.Report{Tables: []result.Table{{Name: "t"}}, Rows: []result.Row{{Table: "t", Row: "a", Procs: 1, NsPerOp: 1}}}
	for i, o := range []struct {
		line    string
		partial bool
	}{{"", false}, {"-format text", false}, {"-quick", false}, {"-run calls", false}, {"", true}} {
		s, _, err := parse(strings.Fields(o.line), false)
		if err != nil && tables.HasC {
			t.Fatal(err)
		} else if err != nil {
			continue
		}
		r.Partial = o.partial
		testcall.Must(t, s.out.write(r, io.Discard, io.Discard))
		files, _ := filepath.Glob("*.html")
		if want := map[bool]string{true: pageName, false: partName}[i < 2]; len(files) != 1 || files[0] != want {
			t.Errorf("%q: the pages are %q, want %s", o.line, files, want)
		}
		testcall.Want(t, os.Remove(files[0]))
		text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
		if err != nil || !strings.Contains(string(text), "\ncheap-report*.html\n") {
			t.Errorf("git does not ignore the pages: %v", err)
		}
	}
}

// root is the checkout.
var root, _ = filepath.Abs("..")

// TestChildren measures rows in processes of their own.
func TestChildren(t *testing.T) {
	if !tables.HasC {
		return
	}
	t.Chdir(t.TempDir())
	rows := map[string]string{
		"-run=^release$/^(addcleanup|manual-gc-off)$":                                    "release/addcleanup/1 release/manual-gc-off/1",
		"-cpu=2 -run=workloads/^xmalloc-heap$|workloads/^large-(local|native|jemalloc)$": "workloads/xmalloc-heap/2 workloads/large-local/2 workloads/large-native/2",
	}
	for line, want := range rows {
		if _, err := preload.Find("jemalloc"); err == nil && strings.Contains(line, "jemalloc") {
			want += " workloads/large-jemalloc/2"
		}
		code, stdout, stderr := lab(t, t.Context(), line+" -count=1 -format=json")
		var all []result.Row
		if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != exitOK || stderr != "" {
			t.Fatalf("%s: exit code %d, %v, %s", line, code, err, stderr)
		}
		var got []string
		for _, r := range all {
			got = append(got, fmt.Sprintf("%s/%s/%d", r.Table, r.Row, r.Procs))
			if r.Row == "large-local" && (len(r.CPUVersus) == 0 || runtime.GOOS == "linux" && r.Resident == 0) || r.NsPerOp <= 0 || r.Machine.CPU == "" {
				t.Errorf("%+v", r)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestOtherMalloc runs the process of a row whose library is not preloaded. The dynamic linker
// goes on without a library that it cannot load, so the process looks whether it is its malloc.
func TestOtherMalloc(t *testing.T) {
	if _, err := preload.Find("jemalloc"); err != nil || !tables.HasC {
		t.Skip(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{rowCommandName, "workloads", "large-jemalloc", "1"}, strings.NewReader("0\n"), &stdout, &stderr)
	if said := stdout.String(); code != exitOK || !strings.Contains(said, "jemalloc is not measured: malloc is in ") || !strings.Contains(said, `"Unsupported":true`) {
		t.Errorf("exit code %d, %s%s", code, said, &stderr)
	}
}

// TestNothing has no time for one row: that is no success, and no report.
func TestNothing(t *testing.T) {
	defer func(d time.Duration) { quickBudget = d }(quickBudget)
	quickBudget = 1
	code, stdout, stderr := lab(t, t.Context(), "-quick -run=calls -format=json")
	const want = "nothing was measured: the time of 1ns was over before the first round; the machine may be busy; with -count a run takes as long as it takes\n"
	if code != exitUsage || stdout != "" || !strings.HasSuffix(stderr, "lab: "+want) {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// TestInterrupted ends a run: what was measured until then is reported before, here nothing.
func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for line, want := range map[string]string{"": "- nothing was measured\n", "-format=json": "[\n\n]\n", "replay -format=json gcc": "[\n\n]\n"} {
		code, stdout, stderr := lab(t, ctx, line)
		if code != exitInterrupted || !strings.HasSuffix(stderr, ": interrupted\n") || !strings.HasSuffix(stdout, want) {
			t.Errorf("%s: exit code %d, %s%s", line, code, stdout, stderr)
		}
	}
	if files, _ := os.ReadDir("."); len(files) != 0 {
		t.Errorf("it wrote %v", files)
	}
}

// A closedWriter is a stdout that cannot be written to.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestClosedOutput has a report that cannot be written.
func TestClosedOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{"-run=calls/inlined -count=1 -benchtime=10x", "replay -count=1 -run=gcc/local gcc"} {
		for _, format := range []string{"text", "json", "bench"} {
			args := strings.Fields(line)
			at := 0
			if args[0] == "replay" {
				at = 1
			}
			var stderr bytes.Buffer
			if code := run(t.Context(), slices.Insert(args, at, "-format="+format), nil, closedWriter{}, &stderr); code != exitFailed {
				t.Errorf("%s: exit code %d, stderr %q", args, code, &stderr)
			}
		}
	}
}
