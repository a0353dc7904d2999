package present

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/resulttest"
	"github.com/cheapgo/cheap/cmd/cheap/internal/stats"
	"github.com/cheapgo/cheap/internal/result"
)

func compared(t *testing.T, old, new *result.Report) string {
	t.Helper()
	return string(written(t, func(w io.Writer) error { return Compare(w, old, new, Look{Color: false}) }))
}

// sampled makes a row of rounds around a time.
func sampled(name string, rounds int, ns float64) result.Row {
	row := result.Row{Row: name}
	for i := range rounds {
		row.Samples = append(row.Samples, ns*(1+0.001*float64(i)))
	}
	row.NsPerOp, row.CI95Low, row.CI95High = stats.Summarize(row.Samples)
	return row
}

func TestCompareMarks(t *testing.T) {
	table := result.Table{Name: "t"}
	old := report(table, sampled("slower", 6, 100), sampled("faster", 6, 100), sampled("same", 6, 100),
		sampled("few", 2, 100), sampled("gone", 6, 100), sampled("zero", 6, 0))
	new := report(table, sampled("slower", 6, 150), sampled("faster", 6, 50), sampled("same", 6, 100),
		sampled("few", 2, 150), sampled("added", 6, 100), sampled("zero", 6, 1))
	out := compared(t, old, new)
	table1 := out[strings.Index(out, "━━ t "):]
	for word, want := range map[string][]string{
		"slower": {"50%", "slower", "0.002"},
		"faster": {"50%", "faster", "0.002"},
		"same":   {"~", "1.000"},
		"few":    {"?", "–"},
	} {
		got := lineOf(t, table1, word)
		if !slices.Equal(got[max(0, len(got)-len(want)):], want) {
			t.Errorf("the line %q does not end with %q", got, want)
		}
	}
	for _, want := range []string{
		"Of 5 rows in both, 1 became faster and 1 slower.", "Too few rounds to find any change (?): 1 row.",
		"Only in the old report: t/gone\n", "Only in the new report: t/added\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	// Halved is a larger change than half as much again.
	changes := out[strings.Index(out, "━━ changes"):]
	if strings.Index(changes, "t/faster") > strings.Index(changes, "t/slower") {
		t.Errorf("the largest change is not the first:\n%s", changes)
	}
	if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
		t.Errorf("no numbers in:\n%s", out)
	}
}

// Resident memory is compared where both reports have it. It has no rounds: a change
// counts from a tenth on.
func TestCompareResident(t *testing.T) {
	row := func(name string, resident float64) result.Row {
		r := sampled(name, 6, 100)
		r.Resident = resident
		return r
	}
	table := result.Table{Name: "t"}
	const mib = 1 << 20
	old := report(table, row("less", 100*mib), row("more", 100*mib), row("alike", 100*mib), row("new-only", 0), row("none", 0))
	new := report(table, row("less", 25*mib), row("more", 150*mib), row("alike", 105*mib), row("new-only", 5*mib), row("none", 0))
	out := compared(t, old, new)
	_, memory, found := strings.Cut(out, "─ resident ─")
	if !found {
		t.Fatalf("no resident memory in:\n%s", out)
	}
	for name, want := range map[string][]string{
		"less": {"100", "MiB", "25.0", "MiB", "75%", "less"}, "more": {"100", "MiB", "150", "MiB", "50%", "more"}, "alike": {"100", "MiB", "105", "MiB", "~"},
	} {
		if got := lineOf(t, memory, name); !slices.Equal(got[1:], want) {
			t.Errorf("%q, want %q behind the name", got, want)
		}
	}
	if strings.Contains(memory, "new-only") || strings.Contains(memory, "none") {
		t.Errorf("rows without two figures in:\n%s", memory)
	}
	if !strings.Contains(out, "Resident memory, of 3 rows in both: less in 1, more in 1") {
		t.Errorf("no summary in:\n%s", out)
	}
	if out := compared(t, report(table, row("none", 0)), report(table, row("none", 0))); strings.Contains(strings.ToLower(out), "resident") {
		t.Errorf("resident memory of nobody in:\n%s", out)
	}
}

// The same row on other processors, or in another table, is another row.
func TestCompareKeys(t *testing.T) {
	a, b := sampled("x", 6, 1), sampled("x", 6, 1)
	b.Procs = 8
	out := compared(t, report(result.Table{Name: "t"}, a), report(result.Table{Name: "t"}, b))
	for _, want := range []string{"no row in common", "Only in the old report: t/x\n", "Only in the new report: t/x on 8 processors\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestCompareMachines(t *testing.T) {
	r, other := resulttest.Report(), resulttest.Report()
	if out := compared(t, r, other); strings.Contains(out, "The reports differ in") {
		t.Error("one machine is said to differ from itself")
	}
	other.Machine.CPU, other.Machine.Malloc = "Apple M1", "libSystem"
	if out := compared(t, r, other); !strings.Contains(out, "The reports differ in CPU, malloc, which may explain a change.") {
		t.Errorf("%s", out[:800])
	}
}
