package headline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
)

func row(table, name string, ns float64) result.Row {
	return result.Row{Table: table, Row: name, Procs: 1, NsPerOp: ns, CI95Low: 0.95 * ns, CI95High: 1.05 * ns}
}

func held(name string, bytes float64) result.Row {
	r := row("resident", name, 1)
	r.Resident = bytes
	return r
}

// whole is a run that has measured everything.
func whole() *result.Report {
	return &result.Report{Rows: []result.Row{
		row("release", "manual", 70), row("release", "addcleanup", 800), row("release", "own-forget", 200),
		row("allocators", "temporary-data-malloc", 66), row("allocators", "temporary-data-heap", 10),
		row("live", "own-1000000", 2e7), row("live", "addcleanup-1000000", 7e7),
		held("addcleanup", 128<<20), held("own-pace", 4<<20),
		row("strings", "cstring-20", 120), row("strings", "arena-20", 40),
	}}
}

func lines(all []Finding) string {
	var out strings.Builder
	for _, f := range all {
		fmt.Fprintf(&out, "%s %s: %s: %s, %s\n", f.Factor, f.Claim, f.What, f.Ours, f.Theirs)
	}
	return out.String()
}

func TestOf(t *testing.T) {
	const want = `4.0× faster: Making a C object and forgetting it: 200 ns with own, 800 ns with runtime.AddCleanup
32× less memory: Forgetting 512 C objects of 256 KiB: 4.00 MiB resident with own and pace, 128 MiB resident with runtime.AddCleanup
6.6× faster: Malloc and Free of a small block: 10.0 ns with cheap, 66.0 ns with C.malloc and C.free
3.5× faster: A collection with 1,000,000 live owners: 20.0 ms with own, 70.0 ms with runtime.AddCleanup
3.0× faster: Passing a string of 20 bytes to C: 40.0 ns with an Arena, 120 ns with C.CString and C.free
`
	if got := lines(Of(whole())); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestLeftOut takes rows out of the report, one after the other. What they answer is
// not in the summary, and the other answers stay the same.
func TestLeftOut(t *testing.T) {
	all := Of(whole())
	for i := range whole().Rows {
		r := whole()
		gone := r.Rows[i]
		r.Rows = append(r.Rows[:i:i], r.Rows[i+1:]...)
		var want []Finding
		for _, f := range all {
			if f.Table != gone.Table || gone.Row == "manual" {
				want = append(want, f)
			}
		}
		if got := lines(Of(r)); got != lines(want) {
			t.Errorf("without %s/%s:\n%swant\n%s", gone.Table, gone.Row, got, lines(want))
		}
	}
	if got := Of(&result.Report{}); got != nil {
		t.Errorf("nothing was measured, and the summary is\n%s", lines(got))
	}
	replay := whole()
	replay.Replay = true
	if got := Of(replay); got != nil {
		t.Errorf("a replay has the summary\n%s", lines(got))
	}
}

// TestLosses says what is slower, and what the rounds do not show.
func TestLosses(t *testing.T) {
	report := func(ours, theirs result.Row) *result.Report { return &result.Report{Rows: []result.Row{ours, theirs}} }
	few := func(r result.Row) result.Row { r.CI95Low, r.CI95High = 0, 0; return r }
	a, b := "own-forget", "addcleanup"
	for _, tt := range []struct {
		r    *result.Report
		want string
	}{
		{report(row("release", a, 150), row("release", b, 100)), "1.5× slower false"},
		{report(row("release", a, 96), row("release", b, 100)), " no clear difference false"},
		{report(few(row("release", a, 95)), few(row("release", b, 100))), " no clear difference false"},
		{report(few(row("release", a, 50)), few(row("release", b, 100))), "2.0× faster true"},
		{report(held("own-pace", 3<<20), held("addcleanup", 2<<20)), "1.5× more memory false"},
		{report(held("own-pace", 0), held("addcleanup", 2<<20)), ""},
	} {
		got := ""
		for _, f := range Of(tt.r) {
			got = fmt.Sprintf("%s %s %v", f.Factor, f.Claim, f.Gain)
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.r.Rows, got, tt.want)
		}
	}
}

// On a busy machine a finding has processor time, if it is known, and no doubt about it.
func TestProcessorTime(t *testing.T) {
	ours, theirs := row("release", "own-forget", 200), row("release", "addcleanup", 300)
	ours.CPUNsPerOp, theirs.CPUNsPerOp = 100, 290
	r := &result.Report{Rows: []result.Row{ours, theirs}}
	for i, want := range []string{
		"2.9× faster: Making a C object and forgetting it: 100 ns of processor time with own, 290 ns of processor time with runtime.AddCleanup\n",
		"1.5× faster: Making a C object and forgetting it: 200 ns with own, 300 ns with runtime.AddCleanup\n",
	} {
		r.Rows[1].Doubts = [][]result.Doubt{{result.Waited, result.Unsteady}, {result.Unsteady}}[i]
		if all := Of(r); lines(all) != want || all[0].Doubt != (i == 1) {
			t.Errorf("doubts %v: %s doubt %v", r.Rows[1].Doubts, lines(all), all[0].Doubt)
		}
	}
}

// A finding is doubtful if one of its times is.
func TestDoubt(t *testing.T) {
	for i, r := range whole().Rows {
		report := whole()
		report.Rows[i].Doubts = []result.Doubt{result.Unsteady}
		for _, f := range Of(report) {
			want := f.Table == r.Table && r.Table != "resident" && r.Row != "manual"
			if f.Doubt != want {
				t.Errorf("%s with a doubt in %s/%s: %v", f.What, r.Table, r.Row, f.Doubt)
			}
		}
	}
}

// The row on the fewest processors is the one that counts.
func TestFewestProcessors(t *testing.T) {
	on2 := row("release", "own-forget", 999)
	on2.Procs = 2
	r := whole()
	r.Rows = append([]result.Row{on2}, r.Rows...)
	if got, want := lines(Of(r)), lines(Of(whole())); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
