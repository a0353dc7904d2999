package present

import (
	"fmt"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// A base is an allocator with which a replay compares the others.
type base struct{ name, is string }

// basesOf returns the allocators that the rows of a trace are compared with. Libraries that were
// preloaded are among them.
func basesOf(rows []result.Row) []base {
	bases := []base{
		{"native", "calls malloc from a loop in C"},
		{"libc", "calls the same malloc from Go through cgo"},
	}
	for _, row := range rows {
		b := base{row.Row, "is the malloc that a loop in C calls in a process with that library"}
		if row.Preloaded && !slices.Contains(bases, b) {
			bases = append(bases, b)
		}
	}
	return slices.DeleteFunc(bases, func(b base) bool { return find(rows, b.name) == nil })
}

// find returns the first row with a name, or nil.
func find(rows []result.Row, name string) *result.Row {
	i := slices.IndexFunc(rows, func(r result.Row) bool { return r.Row == name })
	if i < 0 {
		return nil
	}
	return &rows[i]
}

// best returns the time of the fastest round.
func best(row *result.Row) float64 { return slices.Min(rounds(row)) }

func hasMemory(row *result.Row) bool { return row.Memory != nil }

// replayed writes the table of a trace: a line for each allocator.
func (t *texter) replayed(rows []result.Row) {
	g := &grid{columns: []column{
		names("allocator", rows, func(r *result.Row) string { return r.Row }),
		columnOf("best", rows, func(r *result.Row) cell { return cell{figure.Duration(best(r)), plain} }),
		columnOf("median", rows, func(r *result.Row) cell { return cell{figure.Duration(r.NsPerOp), plain} }),
	}}
	if has(rows, knowsSpread) {
		g.columns = append(g.columns, columnOf("±", rows, spread))
	}
	for _, b := range basesOf(rows) {
		theirs := best(find(rows, b.name))
		g.columns = append(g.columns, columnOf("of "+b.name, rows, func(r *result.Row) cell { return cell{figure.Times(best(r) / theirs), plain} }))
	}
	if has(rows, hasMemory) {
		mebibytes := func(of func(*result.Memory) int64) func(r *result.Row) cell {
			return func(r *result.Row) cell {
				if r.Memory == nil {
					return cell{figure.Missing, plain}
				}
				return cell{fmt.Sprintf("%.2f MiB", float64(of(r.Memory))/(1<<20)), plain}
			}
		}
		g.columns = append(g.columns, columnOf("peak", rows, mebibytes(func(m *result.Memory) int64 { return m.Peak })),
			columnOf("final", rows, mebibytes(func(m *result.Memory) int64 { return m.Final })))
	}
	g.fit(t.columns, "±", "final", "median")
	t.out.WriteString("\n" + g.text(t.p))
}

// replayLegend explains the columns, those that the report has.
func (t *texter) replayLegend(r *result.Report) {
	t.explain("best, median", "wall-clock time of one operation, in the best and in the median round")
	if has(r.Rows, knowsSpread) {
		t.explain("±", spreadMeans)
	}
	for _, b := range basesOf(r.Rows) {
		t.explain("of "+b.name, "the best time divided by that of "+b.name+", which "+b.is)
	}
	if has(r.Rows, hasMemory) {
		t.explain("peak", "the most memory that was resident in a separate process, less what was resident before the first operation")
		t.explain("final", "the same, after all blocks were freed and the allocator was trimmed")
	}
}

// replayedAll writes the table of all traces, if there are several: a line for each
// allocator that has replayed them all, with the geometric mean of its best times. The ratio of
// two geometric means is the geometric mean of the ratios.
func (t *texter) replayedAll(r *result.Report) {
	traces := len(r.Tables)
	if traces < 2 {
		return
	}
	var rows []result.Row // one for each allocator
	means, peaks := make(map[string]float64), make(map[string]float64)
	for _, first := range r.RowsOf(r.Tables[0].Name) {
		var times, mem []float64
		for _, row := range r.Rows {
			if row.Row != first.Row {
				continue
			}
			times = append(times, best(&row))
			if row.Memory != nil {
				mem = append(mem, float64(row.Memory.Peak))
			}
		}
		if len(times) < traces {
			continue
		}
		rows = append(rows, first)
		means[first.Row] = geometricMean(times)
		if len(mem) == traces {
			peaks[first.Row] = geometricMean(mem)
		}
	}
	if len(rows) == 0 {
		return
	}
	of := func(values map[string]float64, base string) func(r *result.Row) cell {
		return func(r *result.Row) cell { return unlessZero(values[r.Row]/values[base], figure.Times, plain) }
	}
	g := &grid{columns: []column{
		names("allocator", rows, func(r *result.Row) string { return r.Row }),
		columnOf("geometric mean", rows, func(r *result.Row) cell { return cell{figure.Duration(means[r.Row]), plain} }),
	}}
	for _, b := range basesOf(rows) {
		g.columns = append(g.columns, columnOf("of "+b.name, rows, of(means, b.name)))
	}
	if peaks["native"] > 0 {
		g.columns = append(g.columns, columnOf("peak of native", rows, of(peaks, "native")))
	}
	t.title(fmt.Sprintf("all %d traces", traces), "")
	t.out.WriteString("\n" + g.text(t.p))
}

// A replayedRow is the JSON of a trace on an allocator. Resident memory is null
// where it was not measured.
type replayedRow struct {
	Trace         string  `json:"trace"`            // its name
	Allocator     string  `json:"allocator"`        // its name
	Ops           int     `json:"ops"`              // operations in a round
	NsPerOp       float64 `json:"ns_per_op"`        // nanoseconds of wall-clock time for one operation, in the best round
	NsPerOpMedian float64 `json:"ns_per_op_median"` // the same in the median round
	PeakRSSBytes  *int64  `json:"peak_rss_bytes"`   // the most memory that was resident, less what was resident before; null if it was not measured
	FinalRSSBytes *int64  `json:"final_rss_bytes"`  // the same after all blocks were freed and the allocator was trimmed; null if it was not measured
}

func newReplayedRow(row *result.Row) replayedRow {
	out := replayedRow{Trace: row.Table, Allocator: row.Row, Ops: row.Ops, NsPerOp: best(row), NsPerOpMedian: row.NsPerOp}
	if m := row.Memory; m != nil {
		out.PeakRSSBytes, out.FinalRSSBytes = &m.Peak, &m.Final
	}
	return out
}
