package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/page/result/resulttest"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

func row(table, name string, ns float64) result.Row {
	return result.Row{Table: table, Row: name, Procs: 1, NsPerOp: ns, CI95Low: 0.95 * ns, CI95High: 1.05 * ns, Samples: []float64{ns, ns}}
}

func held(name string, bytes float64) result.Row {
	r := row("resident", name, 1)
	r.Resident = bytes
	return r
}

// whole is a run with all kinds of tables.
func whole() *result.Report {
	r := &result.Report{
		Machine: result.Machine{Go: "go1.26.8", OS: "linux", Arch: "amd64", CPU: "an abacus", Cores: 16, GOGC: "100", Malloc: "glibc 2.41", Date: "2026-11-21"},
		Command: "lab -limits", Partial: true, Warnings: []string{"Most rows are missing."}, Notes: []string{"The rows of table traces replay every eighth operation; lab replay replays all of them."},
		Tables: []result.Table{
			{Name: "release", Title: "what it costs to give C memory back", Unit: "object", About: "A block of C is allocated and released.",
				Sources: []result.Source{{Name: "Lemire 2023", Author: "Daniel Lemire", Title: "The absurd cost", Machine: "Go 1.20", URL: "https://lemire.me/"}}},
			{Name: "resident", Title: "what stays resident", Chart: result.Bytes},
			{Name: "live", Title: "what live owners cost", Chart: result.Sizes, Over: "owners"},
			{Name: "scaling", Title: "on more processors", Chart: result.Procs},
			{Name: "workloads", Title: "allocators in <b>programs</b>"},
			{Name: "survivors", Title: "what survivors hold", Chart: result.Held},
		},
		Rows: []result.Row{
			row("release", "manual", 70), row("release", "addcleanup", 800), row("release", "own-forget", 200), row("release", "manual-gc-off", 60),
			held("addcleanup", 128<<20), held("own-pace", 4<<20),
			row("live", "own-1000", 2e4), row("live", "own-1000000", 2e7), row("live", "addcleanup-1000000", 7e7),
			row("scaling", "none", 10), row("scaling", "none", 5), row("workloads", "larson-heap", 30), row("workloads", "larson-native", 31), row("workloads", "large-heap", 20),
			row("survivors", "own-10", 300),
		},
	}
	r.Rows[0].Published = []result.Published{{Ns: 75, Source: "Lemire 2023"}}
	r.Rows[1].Versus = &result.Ratio{To: "manual", Ratio: 11.4}
	r.Rows[1].AllocsPerOp, r.Rows[1].GoBytesPerOp, r.Rows[1].CPUNsPerOp, r.Rows[1].P99 = 4, 136, 1190, 9000
	r.Rows[2].Versus, r.Rows[2].Doubts, r.Rows[2].Note = &result.Ratio{To: "addcleanup", Ratio: 0.25, Noisy: true}, []result.Doubt{result.Unsteady}, "on purpose"
	r.Rows[2].Bars = []result.Bar{{Figure: "time", To: "addcleanup", Value: 0.25, Bar: 0.3, Limit: 0.4}}
	r.Rows[3].Section = "With the collector off"
	r.Rows[10].Procs = 2
	r.Rows[11].CPUVersus = []result.Ratio{{To: "larson-native", Ratio: 0.5}}
	r.Rows[13].CPUVersus = []result.Ratio{{To: "large-native", Ratio: 2, Noisy: true}, {To: "large-jemalloc", Ratio: 1.5}}
	r.Rows[14].Held = 3.94
	return r
}

// written returns what a format writes.
func written(t *testing.T, r *result.Report, write func(io.Writer, *result.Report) error) string {
	t.Helper()
	var out bytes.Buffer
	testcall.Must(t, write(&out, r))
	return out.String()
}

// TestText compares the text of a report with a file. It begins and ends with the headline.
func TestText(t *testing.T) {
	text := written(t, whole(), Text)
	golden(t, filepath.Join("testdata", "report.txt"), text)
	first, _, _ := strings.Cut(text, "\n\n")
	if !strings.HasPrefix(first, "## In short") || !strings.HasSuffix(text, "\n"+first+"\n") {
		t.Errorf("it begins and ends otherwise:\n%s", text)
	}
}

// TestPage has all rows, names that are no HTML, and a chart of each kind.
func TestPage(t *testing.T) {
	r := whole()
	page := written(t, r, Page)
	if strings.Contains(page, "<b>programs") || !strings.Contains(page, "&lt;b&gt;programs") {
		t.Error("the title of a table is HTML")
	}
	for _, row := range r.Rows {
		if !strings.Contains(page, `<th scope="row">`+row.Row+`</th>`) {
			t.Errorf("no row %s", row.Row)
		}
	}
	kinds := map[string]string{}
	for i := range r.Tables {
		c := newChart(&r.Tables[i], r.RowsOf(r.Tables[i].Name))
		kinds[r.Tables[i].Name] = fmt.Sprintf("%v %s %v", c.Lines, c.Unit, c.Names)
		for _, s := range c.Series {
			kinds[r.Tables[i].Name] += fmt.Sprintf(" %s %v", s.Name, s.Points)
		}
	}
	for table, want := range map[string]string{
		"release":   "false ns [manual addcleanup own-forget manual-gc-off] measured here [{0 70 70.0 ns} {1 800 800 ns} {2 200 200 ns} {3 60 60.0 ns}] Lemire 2023 [{0 75 75 ns}]",
		"resident":  "false bytes [addcleanup own-pace] measured here [{0 1.34217728e+08 128 MiB} {1 4.194304e+06 4.00 MiB}]",
		"live":      "true ns [1,000 1,000,000] own [{0 20000 20.0 µs} {1 2e+07 20.0 ms}] addcleanup [{1 7e+07 70.0 ms}]",
		"scaling":   "true ns [1 2] none [{0 10 10.0 ns} {1 5 5.00 ns}]",
		"survivors": "false times [own-10] measured here [{0 3.94 3.94×}]",
	} {
		if kinds[table] != want {
			t.Errorf("%s: %s", table, kinds[table])
		}
	}
}

// TestBench reads what Bench writes, as benchstat does: each line is a result, and the rounds are all there.
func TestBench(t *testing.T) {
	r := whole()
	r.Rows[0].Row = "my trace/x-20"
	reader := benchfmt.NewReader(strings.NewReader(written(t, r, Bench)), "report.bench")
	rounds := 0
	for reader.Scan() {
		res, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("%v", reader.Result())
		}
		if base, parts := res.Name.Parts(); string(base) != "Cheap" || len(parts) != 3 || res.GetConfig("cpu") != r.Machine.CPU {
			t.Fatalf("the name %s has the parts %q; cpu is %q", res.Name, parts, res.GetConfig("cpu"))
		}
		if _, ok := res.Value("sec/op"); ok {
			rounds++
		}
	}
	if rounds != 2*len(r.Rows) || reader.Err() != nil {
		t.Errorf("%d rounds, %v", rounds, reader.Err())
	}
}

// TestJSON reads what JSON writes. Lists are never null.
func TestJSON(t *testing.T) {
	text := written(t, &result.Report{Rows: []result.Row{{Table: "t", Row: "a", Procs: 1}}}, JSON)
	if strings.Contains(text, "null") {
		t.Error(text)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	testcall.Must(t, os.WriteFile(file, []byte(written(t, whole(), JSON)), 0o666))
	r := resulttest.Stored(t, file)
	if again := written(t, r, JSON); again != written(t, whole(), JSON) || len(r.Tables) != 6 {
		t.Errorf("what is read is another report: %s", again)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrors(t *testing.T) {
	for i, write := range []func(io.Writer, *result.Report) error{Text, Page, JSON, Bench} {
		if err := write(brokenWriter{}, whole()); !errors.Is(err, os.ErrClosed) {
			t.Errorf("format %d: %v", i, err)
		}
	}
}

// TestHeadline has what is better, what is worse, what the rounds do not show, and doubtful times.
func TestHeadline(t *testing.T) {
	few := func(r result.Row) result.Row { r.CI95Low, r.CI95High = 0, 0; return r }
	busy := func(r result.Row, cpu float64, doubts ...result.Doubt) result.Row {
		r.CPUNsPerOp, r.Doubts = cpu, doubts
		return r
	}
	on2 := row("release", "own-forget", 999)
	on2.Procs = 2
	ours, theirs := func(ns float64) result.Row { return row("release", "own-forget", ns) }, func(ns float64) result.Row { return row("release", "addcleanup", ns) }
	const what = "Making a C object and forgetting it: "
	for i, tt := range []struct {
		rows []result.Row
		want string
	}{
		{[]result.Row{on2, ours(200), theirs(800)}, "4.0× faster true false: " + what + "200 ns with own, 800 ns with runtime.AddCleanup"},
		{[]result.Row{ours(150), theirs(100)}, "1.5× slower false false: " + what + "150 ns with own, 100 ns with runtime.AddCleanup"},
		{[]result.Row{ours(96), theirs(100)}, "no clear difference false false: " + what + "96.0 ns with own, 100 ns with runtime.AddCleanup"},
		{[]result.Row{few(ours(95)), few(theirs(100))}, "no clear difference false false: " + what + "95.0 ns with own, 100 ns with runtime.AddCleanup"},
		{[]result.Row{few(ours(50)), few(theirs(1000))}, "20× faster true false: " + what + "50.0 ns with own, 1000 ns with runtime.AddCleanup"},
		{[]result.Row{busy(ours(200), 100, result.Unsteady), theirs(300)}, "1.5× faster true true: " + what + "200 ns with own, 300 ns with runtime.AddCleanup"},
		{[]result.Row{busy(ours(200), 100, result.Waited), busy(theirs(300), 290)}, "2.9× faster true false: " + what + "100 ns of processor time with own, 290 ns of processor time with runtime.AddCleanup"},
		{[]result.Row{held("own-pace", 3<<20), held("addcleanup", 2<<20)}, "1.5× more memory false false: Forgetting 512 C objects of 256 KiB: 3.00 MiB resident with own and a limit of 64 MiB, 2.00 MiB resident with runtime.AddCleanup"},
		{[]result.Row{held("own-pace", 0), held("addcleanup", 2<<20)}, ""},
		{[]result.Row{ours(200)}, ""},
	} {
		got := ""
		for _, f := range headline(&result.Report{Rows: tt.rows}) {
			got += fmt.Sprintf("%s %v %v: %s: %s, %s", f.Gains, f.Gain, f.Doubt, f.What, f.Ours, f.Theirs)
		}
		if got != tt.want {
			t.Errorf("%d: %q, want %q", i, got, tt.want)
		}
	}
}
