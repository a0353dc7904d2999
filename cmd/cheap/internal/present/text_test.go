package present

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

func text(t *testing.T, r *result.Report, color bool) string {
	t.Helper()
	return string(written(t, func(w io.Writer) error { return Text(w, r, Look{Color: color}) }))
}

func TestGroupedByProcs(t *testing.T) {
	var rows []result.Row
	for _, name := range []string{"a", "b"} {
		for _, procs := range []int{4, 1} {
			rows = append(rows, result.Row{Row: name, Procs: procs})
		}
	}
	var got []string
	for _, row := range groupedByProcs(rows) {
		got = append(got, fmt.Sprint(row.Row, row.Procs))
	}
	if want := []string{"a4", "b4", "a1", "b1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Lines fit a terminal, from 80 columns on, with nothing behind their last letter.
func TestLinesAreNarrow(t *testing.T) {
	r := resulttest.Report()
	r.Machine.Malloc = "glibc 2.36 (libc.so.6), preloaded from a folder with a long name"
	r.Command, r.Version = "cheap bench"+strings.Repeat(" -cpu 1,2", 12), "v1.2.3"
	for asked, columns := range map[int]int{0: 100, 40: 80, 80: 80, 90: 90, 120: 120} {
		look := Look{Columns: asked}
		widest := 0
		for _, write := range []func(io.Writer) error{
			func(w io.Writer) error { return Text(w, r, look) },
			func(w io.Writer) error { return Text(w, resulttest.Replay(), look) },
		} {
			for i, line := range strings.Split(string(written(t, write)), "\n") {
				n := length(line)
				if widest = max(widest, n); n > columns {
					t.Errorf("line %d has %d columns, not %d: %s", i+1, n, columns, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("line %d ends with spaces: %q", i+1, line)
				}
			}
		}
		if widest != columns {
			t.Errorf("the widest line has %d columns of %d", widest, columns)
		}
	}
}

// Colors change nothing but colors, and without them there is no escape.
func TestColor(t *testing.T) {
	r := resulttest.Report()
	plain, colored := text(t, r, false), text(t, r, true)
	if strings.Contains(plain, "\x1b") {
		t.Error("text without color has escape sequences")
	}
	if !strings.Contains(colored, "\x1b[36m") || withoutEscapes(colored) != plain {
		t.Error("text with color is not the text without it, colored")
	}
}

// withoutEscapes takes the ANSI escape sequences out of a text.
func withoutEscapes(text string) string {
	var out strings.Builder
	for text != "" {
		before, after, found := strings.Cut(text, "\x1b[")
		out.WriteString(before)
		if !found {
			break
		}
		_, text, _ = strings.Cut(after, "m")
	}
	return out.String()
}

// Every row of a report is in its text with its time, and every published figure
// beside it.
func TestTextHasEverything(t *testing.T) {
	r := resulttest.Report()
	out := text(t, r, false)
	for _, row := range r.Rows {
		time := row.NsPerOp
		if row.Table == "workloads" {
			if time = row.CPUNsPerOp; len(row.CPUVersus) == 0 {
				continue // the others are in columns
			}
		}
		if !strings.Contains(out, figure.Duration(time)) {
			t.Errorf("%s/%s on %d: no %s", row.Table, row.Row, row.Procs, figure.Duration(time))
		}
		for _, p := range row.Published {
			if !strings.Contains(out, figure.Exact(p.Ns)) {
				t.Errorf("%s/%s on %d: nowhere is the published %v", row.Table, row.Row, row.Procs, p.Ns)
			}
		}
	}
	for _, table := range r.Tables {
		for _, s := range table.Sources {
			for _, part := range []string{s.Name, s.URL, s.Date} {
				if !strings.Contains(out, part) {
					t.Errorf("source %s of table %s: no %q", s.Name, table.Name, part)
				}
			}
		}
	}
}

// report makes a report of one table.
func report(table result.Table, rows ...result.Row) *result.Report {
	for i := range rows {
		rows[i].Table = table.Name
		rows[i].Procs = max(rows[i].Procs, 1)
	}
	return &result.Report{Tables: []result.Table{table}, Rows: rows}
}

// lineOf returns the fields of the line that begins with a word.
func lineOf(t *testing.T, out, word string) []string {
	t.Helper()
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == word {
			return fields
		}
	}
	t.Fatalf("no line begins with %q:\n%s", word, out)
	return nil
}

// A published figure never stands where measured ones do, and the other way
// round, also in tables that are turned round.
func TestPublishedIsApart(t *testing.T) {
	out := text(t, report(result.Table{Name: "t", Chart: result.Bars},
		result.Row{Row: "a", NsPerOp: 1, Published: []result.Published{{Ns: 650, Source: "L"}, {Ns: 676.9, Source: "G, M1"}, {Ns: 1058, Source: "G, Linux"}}},
		result.Row{Row: "b", NsPerOp: 2, Published: []result.Published{{Ns: 580, Source: "L, collector off"}}},
		result.Row{Row: "c", NsPerOp: 3, Published: []result.Published{{Ns: 567, Source: "G, Linux"}}},
	), false)
	for word, want := range map[string][]string{
		"row": {"row", "time", "L", "G,", "M1", "G,", "Linux"},
		"a":   {"a", "1.00", "ns", "650", "676.9", "1058"},
		"b":   {"b", "2.00", "ns", "580", "a"},
		"c":   {"c", "3.00", "ns", "567"},
	} {
		lines := out
		if word == "a" { // not the letter that is explained under the table
			lines, _, _ = strings.Cut(out, "  a  L, collector off")
		}
		if got := lineOf(t, lines, word); !slices.Equal(got, want) {
			t.Errorf("line %q, want %q", got, want)
		}
	}
	if !strings.Contains(out, "  a  L, collector off\n") {
		t.Errorf("the letter is not explained:\n%s", out)
	}
	c, head := lineWith(t, out, "3.00 ns"), lineWith(t, out, "G, Linux")
	if strings.Index(c, "567")+len("567") != strings.Index(head, "G, Linux")+len("G, Linux") {
		t.Errorf("567 is not under its source:\n%s", out)
	}

	out = text(t, report(result.Table{Name: "t", Chart: result.Sizes, Over: "bytes"},
		result.Row{Row: "x-8", NsPerOp: 1, Published: []result.Published{{Ns: 7.476, Source: "S"}}},
		result.Row{Row: "x-16", NsPerOp: 2},
		result.Row{Row: "y-16", NsPerOp: 3, Published: []result.Published{{Ns: 446.9, Source: "S"}}},
	), false)
	for word, want := range map[string][]string{
		"bytes": {"bytes", "time", "published", "time", "published"},
		"8":     {"8", "1.00", "ns", "7.476", "–"},
		"16":    {"16", "2.00", "ns", "3.00", "ns", "446.9"},
	} {
		if got := lineOf(t, out, word); !slices.Equal(got, want) {
			t.Errorf("line %q, want %q", got, want)
		}
	}
}

func lineWith(t *testing.T, out, part string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.Contains(line, part) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	t.Fatalf("no line has %q:\n%s", part, out)
	return ""
}

func TestRatios(t *testing.T) {
	ratio := func(to string, x float64, noisy bool) *result.Ratio {
		return &result.Ratio{To: to, Ratio: x, Noisy: noisy}
	}
	table := result.Table{Name: "t", Chart: result.Bars}

	one := text(t, report(table,
		result.Row{Row: "a", NsPerOp: 1}, result.Row{Row: "b", NsPerOp: 2, Versus: ratio("a", 2, false)},
		result.Row{Row: "c", NsPerOp: 1, Versus: ratio("a", 1.01, true)}), false)
	if got := lineOf(t, one, "row"); !slices.Equal(got, []string{"row", "time", "of", "a"}) {
		t.Errorf("one base: head %q", got)
	}
	if got := lineOf(t, one, "c"); !slices.Equal(got, []string{"c", "1.00", "ns", "1.01×", "~"}) {
		t.Errorf("a noisy row: %q", got)
	}
	if !strings.Contains(one, "which row is faster") {
		t.Error("the mark of a noisy row is not explained")
	}

	two := text(t, report(table,
		result.Row{Row: "a", NsPerOp: 1}, result.Row{Row: "b", NsPerOp: 2, Versus: ratio("a", 2, false)},
		result.Row{Row: "x", NsPerOp: 3}, result.Row{Row: "y", NsPerOp: 9, Versus: ratio("x", 3, false)}), false)
	if !strings.Contains(two, "2.00×\n\nx") || !slices.Equal(lineOf(t, two, "x"), []string{"x", "3.00", "ns", "base"}) {
		t.Errorf("two blocks:\n%s", two)
	}
	if strings.Contains(two, "noisy") {
		t.Error("a mark is explained that is nowhere")
	}

	chain := text(t, report(table,
		result.Row{Row: "a", NsPerOp: 1}, result.Row{Row: "b", NsPerOp: 2, Versus: ratio("a", 2, false)},
		result.Row{Row: "y", NsPerOp: 6, Versus: ratio("b", 3, false)}), false)
	if got := lineOf(t, chain, "y"); !slices.Equal(got, []string{"y", "6.00", "ns", "3.00×", "b"}) {
		t.Errorf("a chain: %q", got)
	}

	chains := text(t, report(table,
		result.Row{Row: "in-c-malloc", NsPerOp: 1}, result.Row{Row: "in-c-theirs", NsPerOp: 2, Versus: ratio("in-c-malloc", 2, false)},
		result.Row{Row: "in-c-ours", NsPerOp: 6, Versus: ratio("in-c-theirs", 3, false)},
		result.Row{Row: "in-go-malloc", NsPerOp: 1}, result.Row{Row: "in-go-ours", NsPerOp: 1, Versus: ratio("in-go-malloc", 1, true)}), false)
	if got := lineOf(t, chains, "in-c-ours"); !slices.Equal(got, []string{"in-c-ours", "6.00", "ns", "3.00×", "theirs"}) {
		t.Errorf("chains: %q", got)
	}
	if !strings.Contains(chains, "theirs\n\nin-go-malloc") {
		t.Errorf("chains are not parted:\n%s", chains)
	}

	// A row that is set beside one of another block.
	mixed := text(t, report(table,
		result.Row{Row: "in-a", NsPerOp: 1}, result.Row{Row: "in-b", NsPerOp: 2, Versus: ratio("in-a", 2, false)},
		result.Row{Row: "in-x", NsPerOp: 3}, result.Row{Row: "in-y", NsPerOp: 9, Versus: ratio("in-x", 3, false)},
		result.Row{Row: "in-z", NsPerOp: 4, Versus: ratio("in-a", 4, false)}), false)
	if got := lineOf(t, mixed, "in-z"); !slices.Equal(got, []string{"in-z", "4.00", "ns", "4.00×", "in-a"}) || strings.Contains(mixed, "2.00×  in-a\n\n") {
		t.Errorf("mixed: %q\n%s", got, mixed)
	}
}

// A doubtful time is marked, in tables of both kinds, and the head says how many there
// are. Without one there is no mark, and no word about it.
func TestDoubts(t *testing.T) {
	doubts := []result.Doubt{result.Waited}
	for _, chart := range []result.Chart{result.Bars, result.Sizes} {
		r := report(result.Table{Name: "t", Chart: chart}, result.Row{Row: "x-8", NsPerOp: 1800, Doubts: doubts}, result.Row{Row: "x-16", NsPerOp: 7})
		out := text(t, r, false)
		if strings.Count(out, "1800 ns !") != 1 || strings.Contains(out, "7.00 ns !") || !strings.Contains(out, "Of 2 times, 1 is doubtful") {
			t.Errorf("%s:\n%s", chart, out)
		}
		r.Rows[0].Doubts = nil
		if out := text(t, r, false); strings.Contains(out, "!") || strings.Contains(out, "doubtful") {
			t.Errorf("%s without a doubt:\n%s", chart, out)
		}
	}
	r := resulttest.Report()
	for i := range r.Rows {
		if r.Rows[i].Row == "own-forget" {
			r.Rows[i].Doubts = []result.Doubt{result.Unsteady}
		}
	}
	if out := text(t, r, false); strings.Count(out, "with runtime.AddCleanup !") != 1 {
		t.Error("a finding with a doubtful time is not marked")
	}
}

// What is missing stands before the figures, and so does the command.
func TestHead(t *testing.T) {
	r := resulttest.Report()
	r.Command, r.Version, r.Warnings = "cheap bench -count 3", "v1.2.3", []string{"Most rows are missing."}
	head, _, _ := strings.Cut(text(t, r, false), "\n\n")
	for _, want := range []string{"\ncheap bench -count 3, version v1.2.3\n", "\nMost rows are missing."} {
		if !strings.Contains(head, want) {
			t.Errorf("the head has no %q:\n%s", want, head)
		}
	}
}

// What no table shows is not explained.
func TestLegend(t *testing.T) {
	row := result.Row{Row: "x-8", NsPerOp: 1, CPUNsPerOp: 3, AllocsPerOp: 1}
	for chart, want := range map[result.Chart]bool{result.Bars: true, result.Sizes: false, result.Procs: false} {
		out := text(t, report(result.Table{Name: "t", Chart: chart}, row), false)
		if strings.Contains(out, "CPU ") != want || strings.Contains(out, "allocs, B") != want {
			t.Errorf("a table of %s with CPU and allocs explained or not:\n%s", chart, out)
		}
	}
}

func TestPartialAndEmpty(t *testing.T) {
	if out := text(t, &result.Report{Partial: true}, false); !strings.Contains(out, "interrupted") || !strings.Contains(out, "Nothing was measured.") {
		t.Errorf("an empty report says %q", out)
	}
}

// What live objects hold, and the longest operations, have columns and a legend where they
// are known.
func TestHeldAndP99(t *testing.T) {
	out := text(t, report(result.Table{Name: "t", Chart: result.Held}, result.Row{Row: "own", NsPerOp: 300, Held: 3.94, P99: 8_100_000}, result.Row{Row: "none", NsPerOp: 5}), false)
	if got, want := strings.Join(lineOf(t, out, "own"), " "), "own 3.94× 300 ns 8.10 ms"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	if got, want := strings.Join(lineOf(t, out, "none"), " "), "none – 5.00 ns –"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	for _, want := range []string{"\nheld  ", "\np99  "} {
		if !strings.Contains(out, want) {
			t.Errorf("the legend has no %q", want)
		}
	}
	out = text(t, report(result.Table{Name: "t"}, result.Row{Row: "none", NsPerOp: 5}), false)
	if strings.Contains(out, "held") || strings.Contains(out, "p99") {
		t.Errorf("figures of nobody:\n%s", out)
	}
}

// What is rare does not break the layout: rows without size among sizes, several
// processors among them, no time, and more columns than fit.
func TestOddTables(t *testing.T) {
	out := text(t, report(result.Table{Name: "t", Chart: result.Bars}, result.Row{Row: "a", NsPerOp: 1, Procs: 4}), false)
	if !strings.Contains(out, "On 4 processors.\n\nrow  ") {
		t.Errorf("where are the processors?\n%s", out)
	}

	r := report(result.Table{Name: "t", Chart: result.Sizes},
		result.Row{Row: "plain", NsPerOp: 5}, result.Row{Row: "x-8", NsPerOp: 6}, result.Row{Row: "x-8", NsPerOp: 7, Procs: 4})
	out = text(t, r, false)
	for _, want := range []string{"\n\nOn 1 processor.\n\n", "\n\nOn 4 processors.\n\n", "5.00 ns", "6.00 ns", "7.00 ns"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}

	wide := result.Row{Row: strings.Repeat("long-", 8) + "name", NsPerOp: 1, CI95Low: 1, CI95High: 1, CPUNsPerOp: 3, AllocsPerOp: 1, GoBytesPerOp: 8}
	for _, name := range []string{"First 2001", "Second 2002", "Third 2003", "Fourth 2004"} {
		wide.Published = append(wide.Published, result.Published{Ns: 1, Source: name})
	}
	head := strings.Fields(lineWith(t, text(t, report(result.Table{Name: "t", Chart: result.Bars}, wide), false), "row "))
	if slices.Contains(head, "B") || slices.Contains(head, "CPU") || !slices.Contains(head, "time") {
		t.Errorf("a table that is too wide has the columns %q", head)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrors(t *testing.T) {
	r := resulttest.Report()
	for name, write := range map[string]func(io.Writer) error{
		"Text":  func(w io.Writer) error { return Text(w, r, Look{Color: false}) },
		"JSON":  func(w io.Writer) error { return JSON(w, r) },
		"Bench": func(w io.Writer) error { return Bench(w, r) },
	} {
		if err := write(brokenWriter{}); !errors.Is(err, errBroken) {
			t.Errorf("%s returns %v where the writer fails", name, err)
		}
	}
}

// Nothing that is written changes the report.
func TestReportStays(t *testing.T) {
	r, same := resulttest.Report(), resulttest.Report()
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return Text(w, r, Look{Color: true}) },
		func(w io.Writer) error { return Bench(w, r) },
	} {
		written(t, write)
	}
	asJSON := func(r *result.Report) []byte { return written(t, func(w io.Writer) error { return JSON(w, r) }) }
	if !bytes.Equal(asJSON(r), asJSON(same)) {
		t.Error("a report is another one after it was written")
	}
}
