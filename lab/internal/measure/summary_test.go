package measure

import (
	"slices"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

func samples(walls ...float64) *unit {
	u := &unit{table: &Table{}, row: &Row{Name: "other"}}
	for _, w := range walls {
		u.samples = append(u.samples, sample{N: 10, Wall: 10 * w, CPU: 10 / w})
	}
	return u
}

func TestRatio(t *testing.T) {
	// The machine was slow in the third round, for both.
	r := ratio(samples(20, 22, 60, 20, 20, 20), samples(10, 11, 30, 10, 10, 10), wallTime)
	if r.To != "other" || r.Ratio != 2 || r.CI95Low != 2 || r.CI95High != 2 || r.Noisy {
		t.Errorf("%+v", r)
	}
	if r := ratio(samples(1, 1, 1, 2, 2, 2), samples(2, 2, 2, 1, 1, 1), wallTime); !r.Noisy || r.CI95Low != 0.5 || r.CI95High != 2 {
		t.Errorf("%+v", r)
	}
	if r := ratio(samples(1, 1, 1), samples(2, 2, 2), wallTime); !r.Noisy || r.Ratio != 0.5 || r.CI95High != 0 {
		t.Errorf("%+v", r)
	}
	if r := ratio(samples(2, 2, 2), samples(1, 1, 1), cpuTimeOf); r.Ratio != 0.5 {
		t.Errorf("of processor times: %+v", r)
	}
}

// TestCPUVersus compares rows. The clock says the opposite of what processor times say.
func TestCPUVersus(t *testing.T) {
	told := func(name string, wall, cpu float64, cpuVersus ...string) Row {
		return Row{Name: name, Group: "g", N: 10, CPUVersus: cpuVersus, Open: func(int) (Work, error) {
			return Work{Time: func(n int) (float64, float64, error) { return float64(n) * wall, float64(n) * cpu, nil }}, nil
		}}
	}
	report, err := Run(t.Context(), fakeTable(told("a", 1, 8, "b", "c", "none"), told("b", 2, 2), told("c", 4, 16)), Options{Count: 6})
	testcall.Must(t, err)
	v := report.Rows[0].CPUVersus
	if len(v) != 2 || v[0].To != "b" || v[0].Ratio != 4 || v[0].CI95High != 4 || v[1].To != "c" || v[1].Ratio != 0.5 || report.Rows[1].CPUVersus != nil {
		t.Errorf("%+v and %+v", v, report.Rows[1].CPUVersus)
	}
}

// A row that had a processor for a part of the time only is doubtful.
func TestSummarizeDoubts(t *testing.T) {
	for cpu, want := range map[float64]int{500: 1, 1800: 0} {
		u := &unit{table: &Table{}, row: &Row{}, procs: 1, samples: []sample{{N: 1, Wall: 1800, CPU: cpu}}}
		if got := new(run).summarize(u); len(got.Doubts) != want {
			t.Errorf("1800 ns with %v ns of processor time: %v", cpu, got.Doubts)
		}
	}
}

// A row that waits by itself is not doubted for it, and one with figures besides times has
// their medians.
func TestFigures(t *testing.T) {
	for _, waits := range []bool{false, true} {
		u := &unit{table: &Table{}, row: &Row{Waits: waits}, procs: 1}
		for i := range 3 {
			u.samples = append(u.samples, sample{N: 1, Wall: 100, CPU: 10, Figures: Figures{Held: float64(i + 1), P99: float64(10 * i)}})
		}
		got := new(run).summarize(u)
		if got.Held != 2 || got.P99 != 10 {
			t.Errorf("held %v, p99 %v", got.Held, got.P99)
		}
		if doubted := slices.Contains(got.Doubts, result.Waited); doubted == waits {
			t.Errorf("Waits is %v, and the doubts are %v", waits, got.Doubts)
		}
	}
}

// TestBars compares figures with their bars: of another row, of none, and on more processors.
func TestBars(t *testing.T) {
	limit := func(procs int) float64 { return 1 + float64(procs) }
	ours := Row{Name: "ours", Group: "g", Bars: []Bar{
		{Figure: Time, To: "theirs", Most: 1.5, Limit: limit},
		{Figure: Time, To: "missing", Most: 1, Limit: limit},
		{Figure: Peak, To: "theirs", Most: 1, Limit: limit}, // 0 by 0 is unknown
		{Figure: HeapBytes, Most: 20, Limit: limit},
		{Figure: Slowdown, To: "theirs", Most: 1, Limit: limit},
		{Figure: CPU, To: "theirs", Most: 1, Limit: limit, Procs: 2},
	}}
	table := &Table{Rows: []Row{ours, {Name: "theirs", Group: "g"}}}
	r := &run{Options: &Options{Bars: true}}
	add := func(row, procs int, walls ...float64) {
		u := &unit{table: table, row: &table.Rows[row], procs: procs}
		for _, wall := range walls {
			u.samples = append(u.samples, sample{N: 1, Wall: wall, CPU: 3, Figures: Figures{HeapBytes: 7}})
		}
		r.units = append(r.units, u)
	}
	add(0, 1, 200, 400, 600)
	add(1, 1, 100, 100, 100)
	add(0, 2, 100, 200, 600)
	add(1, 2, 100, 100, 200)
	r.units = append(r.units, &unit{table: table, row: &Row{Name: "missing", Group: "g"}, procs: 1})
	bar := func(figure, to string, value, bar, limit float64) result.Bar {
		return result.Bar{Figure: figure, To: to, Value: value, Bar: bar, Limit: limit}
	}
	one := []result.Bar{bar("time", "theirs", 4, 1.5, 2), bar("bytes of the Go heap", "", 7, 20, 2)}
	if got := r.bars(r.units[0]); !slices.Equal(got, one) || !got[0].Regressed() || got[0].Verdict() != "above the limit" || got[1].Verdict() != "above the limit" {
		t.Errorf("on one: %+v", got)
	}
	two := []result.Bar{bar("time", "theirs", 2, 1.5, 3), bar("bytes of the Go heap", "", 7, 20, 3), bar("time, of that on one P", "theirs", 0.5, 1, 3), bar("processor time", "theirs", 1, 1, 3)}
	if got := r.bars(r.units[2]); !slices.Equal(got, two) || got[0].Verdict() != "missed" || got[2].Verdict() != "met" {
		t.Errorf("on two: %+v", got)
	}
	r.Bars = false
	if got := r.summarize(r.units[0]); got.Bars != nil {
		t.Errorf("without Options.Bars: %+v", got.Bars)
	}
}
