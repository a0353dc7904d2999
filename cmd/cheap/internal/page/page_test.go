package page

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

func write(t *testing.T, r *result.Report) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, r, Whole); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withoutScripts returns the page as it is without JavaScript.
func withoutScripts(page string) string {
	return regexp.MustCompile(`(?s)<(script|style)\b.*?</(script|style)>`).ReplaceAllString(page, "")
}

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// TestGolden compares pages with files of testdata: one of a report that has everything, and one of a
// report without a summary.
func TestGolden(t *testing.T) {
	whole, part := resulttest.Report(), resulttest.Report()
	whole.Partial, whole.Command, whole.Version, whole.Warnings = true, "cheap bench -count 3", "v1.2.3", []string{"Most rows are missing."}
	whole.Rows[0].Bars = []result.Bar{{Figure: "processor time", To: "another", Value: 1.234, Bar: 1.2, Limit: 1.5}}
	for i := range whole.Rows {
		if whole.Rows[i].Row == "own-forget" {
			whole.Rows[i].Doubts = []result.Doubt{result.Unsteady}
		}
	}
	part.Rows = part.RowsOf("traces")
	for file, r := range map[string]*result.Report{"whole.html": whole, "part.html": part} {
		resulttest.Golden(t, filepath.Join("testdata", file), withoutScripts(write(t, r)), *update)
	}
}

// TestKindOf finds the kind of a page in its beginning.
func TestKindOf(t *testing.T) {
	if got := KindOf([]byte(write(t, resulttest.Report()))[:1024]); got != Whole {
		t.Errorf("the page is of kind %q", got)
	}
	for _, other := range []string{"", "<html>", `<meta name="cheap-bench" content="`} {
		if got := KindOf([]byte(other)); got != "" {
			t.Errorf("%q is a page of kind %q", other, got)
		}
	}
}

// The file loads nothing: an address is that of a link.
func TestNoOtherFiles(t *testing.T) {
	page := withoutScripts(write(t, resulttest.Report()))
	for _, m := range regexp.MustCompile(`<(\w+)[^>]*?\s(src|href|srcset|action|data)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !(m[1] == "a" && m[2] == "href") && m[3] != "data:," {
			t.Errorf("the page loads %s", m[0])
		}
	}
	for _, s := range []string{pageCSS, pageHTML} {
		if strings.Contains(s, "url(") || strings.Contains(s, "@import") {
			t.Errorf("the style loads something")
		}
	}
}

// The contents of a report are text, also if they look like HTML.
func TestEscapes(t *testing.T) {
	const evil = `</script><script>alert(1)</script>`
	r := resulttest.Report()
	r.Notes = []string{evil}
	r.Machine.CPU = evil
	r.Tables[0].Title, r.Tables[0].About = evil, evil
	r.Tables[0].Sources[0].URL = "javascript:alert(1)"
	r.Rows[0].Row, r.Rows[0].Note, r.Rows[0].Published[0].Source = evil, evil, evil
	page := write(t, r)
	if strings.Contains(page, evil) || strings.Contains(page, `href="javascript:`) {
		t.Error("the page runs what a report says")
	}
	if got, want := strings.Count(page, "<script"), 3; got != want {
		t.Errorf("%d scripts, want %d", got, want)
	}
}

type failing struct{}

var errFull = errors.New("disk full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	if err := Write(failing{}, resulttest.Report(), Whole); !errors.Is(err, errFull) {
		t.Errorf("Write to a full disk: %v", err)
	}
}

func TestKinds(t *testing.T) {
	kinds := make(map[string]string)
	r := resulttest.Report()
	for _, of := range r.Tables {
		table := table{of, r.RowsOf(of.Name)}
		charts := newCharts(of.Name, table)
		n := 0
		for _, c := range charts {
			n += len(c.Points)
			kind := c.Kind
			if c.Log {
				kind += " log"
			}
			if kinds[c.Legend] != "" && kinds[c.Legend] != kind {
				t.Errorf("%s is drawn as %s, and others as %s", c.ID, kind, kinds[c.Legend])
			}
			kinds[c.Legend] = kind
		}
		if n != len(table.rows) {
			t.Errorf("%s has %d points for %d rows", of.Name, n, len(table.rows))
		}
		kinds[of.Name] = fmt.Sprint(len(charts), " ", kinds[of.Name])
	}
	want := map[string]string{
		"calls": "1 dots log", "scaling": "9 bars", "release": "1 bars", "size": "10 bars",
		"allocators": "1 dots log", "live": "4 bars", "strings": "1 bars", "traces": "1 bars", "resident": "1 bars",
		"survivors": "1 bars", "server": "1 bars",
	}
	for id, kind := range want {
		if kinds[id] != kind {
			t.Errorf("%s is drawn as %s, want %s", id, kinds[id], kind)
		}
	}
}

func rows(names ...string) []result.Row {
	var all []result.Row
	for _, n := range names {
		all = append(all, result.Row{Row: n, Procs: 1, NsPerOp: 1})
	}
	return all
}

func TestPanels(t *testing.T) {
	for _, tt := range []struct {
		kind result.Chart
		rows []result.Row
		want string // the charts and their bars
	}{
		{result.Sizes, rows("plain-16", "plain-8", "own-8"), "x.16, 16 bytes: nothing to release; x.8, 8 bytes: nothing to release, own.Pool; "},
		{result.Sizes, rows("plain-0", "plain-1000000"), "x.0, 0 bytes: nothing to release; x.1000000, 1,000,000 bytes: nothing to release; "},
		{result.Sizes, rows("plain-8", "plain"), "x, : nothing to release, 8 bytes, nothing to release; "},
		{result.Sizes, rows("plain-8", "own-8"), "x, : nothing to release, 8 bytes, own.Pool, 8 bytes; "},
		{result.Procs, []result.Row{{Row: "cgo", Procs: 1}, {Row: "go", Procs: 1}, {Row: "cgo", Procs: 4}}, "x.cgo, cgo call: 1 processor, 4 processors; x.go, go: 1 processor; "},
		{result.Procs, rows("cgo", "go"), "x, : cgo call, go; "},
		{result.Sizes, []result.Row{{Row: "a-8", Procs: 1}, {Row: "a-9", Procs: 1}, {Row: "a-8", Procs: 2}}, "x.8, 8 bytes: a, 1 processor, a, 2 processors; x.9, 9 bytes: a, 1 processor; "},
		{result.Bars, rows("plain-8", "plain-9"), "x, : nothing to release, 8 bytes, nothing to release, 9 bytes; "},
	} {
		charts := newCharts("x", table{Table: result.Table{Chart: tt.kind, Over: "bytes"}, rows: tt.rows})
		got := ""
		for _, c := range charts {
			var names []string
			for i, p := range c.Points {
				names = append(names, p.Name)
				if p.X != i {
					t.Errorf("the bar %s is number %d, want %d", p.Name, p.X, i)
				}
			}
			got += fmt.Sprintf("%s, %s: %s; ", c.ID, c.Title, strings.Join(names, ", "))
			if c.Legend != "x" {
				t.Errorf("%s: legend %s", c.ID, c.Legend)
			}
		}
		if got != tt.want {
			t.Errorf("charts of %v are %q, want %q", tt.rows, got, tt.want)
		}
	}
}

// The charts of a section have one scale, linear or not, and one list of sources.
func TestScales(t *testing.T) {
	two := func(a, b float64) []result.Row {
		return []result.Row{{Row: "a-1", NsPerOp: a}, {Row: "b-1", NsPerOp: b}}
	}
	published := []result.Row{{NsPerOp: 2, Published: []result.Published{{Ns: 70}}}}
	small := func(a, b float64) []result.Row {
		return append(two(a, b), result.Row{Row: "a-2", NsPerOp: 1000, Published: []result.Published{{Ns: 1000, Source: "s"}}})
	}
	for _, tt := range []struct {
		kind result.Chart
		rows []result.Row
		want bool
	}{
		{result.Bars, two(1, 30), false}, {result.Bars, two(1, 31), true}, {result.Bars, two(0, 10), false}, {result.Bars, nil, false}, {result.Bars, published, true},
		{result.Sizes, small(1, 200), false}, {result.Sizes, small(1, 201), true},
	} {
		charts := newCharts("x", table{Table: result.Table{Chart: tt.kind}, rows: tt.rows})
		for _, c := range charts {
			if c.Log != tt.want || (c.Kind == "dots") != tt.want || len(c.Sources) != len(charts[0].Sources) {
				t.Errorf("%v: logarithmic %v, drawn as %s, sources %q", tt.rows, c.Log, c.Kind, c.Sources)
			}
		}
	}
}

// A chart has the figures that its table is about, and times if these were not measured.
func TestUnits(t *testing.T) {
	row := result.Row{Row: "r", NsPerOp: 7, CI95Low: 6, CI95High: 8, Resident: 2 << 20, Held: 3.5, Published: []result.Published{{Ns: 5, Source: "s"}}}
	for _, tt := range []struct {
		kind   result.Chart
		row    result.Row
		want   string
		figure float64
	}{
		{result.Bars, row, "ns 7.00\u00a0ns Wall-clock time", 7},
		{result.Bytes, row, "bytes 2.00\u00a0MiB Resident memory", 2 << 20},
		{result.Held, row, "times 3.50× What is held, as a multiple of what live objects own", 3.5},
		{result.Bytes, result.Row{NsPerOp: 7}, "ns 7.00\u00a0ns Wall-clock time", 7},
		{result.Held, result.Row{NsPerOp: 7}, "ns 7.00\u00a0ns Wall-clock time", 7},
	} {
		charts := newCharts("x", table{Table: result.Table{Chart: tt.kind}, rows: []result.Row{tt.row}})
		c := charts[0]
		p := c.Points[0]
		if got := c.Unit + " " + p.Time + " " + c.Label; got != tt.want || p.Ns != tt.figure {
			t.Errorf("%s: %s, drawn at %v; want %s", tt.kind, got, p.Ns, tt.want)
		}
		if drawn := c.Unit == unitNs; drawn != (p.High > 0) && tt.row.CI95High > 0 || drawn != (len(c.Sources) > 0) && len(tt.row.Published) > 0 {
			t.Errorf("%s: an interval to %v, sources %q", tt.kind, p.High, c.Sources)
		}
	}
}

func TestOurs(t *testing.T) {
	for row, want := range map[string]bool{
		"own-forget": true, "own-8": true, "heap": true, "local": true, "grow-shrink-heap": true, "arena-20": true, "grow-shrink-dropin": true, "heap-sqlite": true, "list-64": true, "close": true,
		"finalizer": false, "arena-temporary-data-malloc": false, "cgo": false, "plain-8": false, "owner": false,
	} {
		if got := isOurs(row); got != want {
			t.Errorf("isOurs(%q) = %v", row, got)
		}
	}
}

// TestWords has names of rows that are made of several parts, of numbers, and of what is not known.
func TestWords(t *testing.T) {
	for _, tt := range []struct{ table, over, row, want, unknown string }{
		{"release", "", "own-forget-gc-off", "own.Pool, forgotten, collector off", ""},
		{"live", "live owners", "addcleanup-1000000", "runtime.AddCleanup, 1,000,000 live owners", ""},
		{"survivors", "", "own-batch-16-1000", "own.Pool, batches of 16, one in 1,000 lives on", ""},
		{"strings", "", "cstring-20", "C.CString, 20 bytes", ""},
		{"lists", "", "reference-64", "a list of 64, with references", ""},
		{"lists", "", "reference", "a list, with references", ""},
		{"lists", "", "list-heap", "a list, cheap.Heap", ""},
		{"x", "", "new-way-own-8", "new, way, own.Pool, 8", "new way"},
		{"x", "", "", "", ""},
	} {
		if got, unknown := Words(tt.table, tt.over, tt.row); got != tt.want || strings.Join(unknown, " ") != tt.unknown {
			t.Errorf("%s/%s is %q, and %q unknown", tt.table, tt.row, got, unknown)
		}
	}
}

// TestLead divides what is said of a table.
func TestLead(t *testing.T) {
	long := strings.Repeat("x", leastLead)
	for _, tt := range []struct{ text, first, others string }{
		{"", "", ""}, {"One.", "One.", ""}, {"One. Two. " + long + ". Three. Four.", "One. Two. " + long + ".", "Three. Four."}, {long + ". Two.", long + ".", "Two."},
	} {
		if first, others := lead(tt.text); first != tt.first || others != tt.others {
			t.Errorf("%q begins with %q, then %q", tt.text, first, others)
		}
	}
}

// TestOrder has the table of the release first, and behind those of the cards the others as they were.
func TestOrder(t *testing.T) {
	var got []string
	for _, of := range ordered(resulttest.Report().Tables) {
		got = append(got, of.Name)
	}
	if want := "release resident allocators live strings calls scaling size traces workloads survivors server"; strings.Join(got, " ") != want {
		t.Errorf("the order is %q, want %s", got, want)
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{measured(0.2684), "0.268 ns"}, {measured(1064), "1064 ns"}, {published(0.0249), "0.0249 ns"}, {published(1058), "1058 ns"},
		{interval(0.95, 1.05), "0.950 – 1.05 ns"}, {interval(9650, 10_010), "9650 ns – 10.0 µs"}, {interval(0, 0), ""},
		{date("yesterday"), "yesterday"}, {summary(result.Machine{CPU: "Z80", Cores: 1, Go: "go1.26"}), "Z80, 1 core, go1.26"},
	} {
		if got := strings.ReplaceAll(tt.got, "\u00a0", " "); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
