package present

import (
	"fmt"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// The allocators with which a replay compares the others.
var replayBases = []struct{ name, is string }{
	{"native", "calls malloc from a loop in C"},
	{"libc", "calls the same malloc from Go through cgo"},
}

// replayedWith returns the allocators that the rows are compared with, those that rows has.
// Libraries that were preloaded are among them.
func replayedWith(rows []result.Row) []struct{ name, is string } {
	bases := slices.Clone(replayBases)
	for _, row := range rows {
		base := struct{ name, is string }{row.Row, "is the malloc that a loop in C calls in a process with that library"}
		if row.Preloaded && !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	return slices.DeleteFunc(bases, func(b struct{ name, is string }) bool { return indexOf(rows, b.name) < 0 })
}

// indexOf returns the index of the first row with the name, or -1.
func indexOf(rows []result.Row, name string) int {
	return slices.IndexFunc(rows, func(r result.Row) bool { return r.Row == name })
}

// best returns the time of the fastest round.
func best(row *result.Row) float64 { return slices.Min(rounds(row)) }

// replayed writes the table of a trace: a line for each allocator.
func (t *texter) replayed(rows []result.Row) {
	names, fastest, median, pm := column{head: "allocator", left: true}, column{head: "best"}, column{head: "median"}, column{head: "±"}
	peak, final := column{group: "resident memory", head: "peak"}, column{group: "resident memory", head: "final"}
	for _, row := range rows {
		names.cells = append(names.cells, cell{row.Row, plain})
		fastest.cells = append(fastest.cells, cell{figure.Duration(best(&row)), plain})
		median.cells = append(median.cells, cell{figure.Duration(row.NsPerOp), plain})
		pm.cells = append(pm.cells, cell{spread(&row), dim})
		if m := row.Memory; m != nil {
			peak.cells = append(peak.cells, cell{mebibytes(m.Peak), plain})
			final.cells = append(final.cells, cell{mebibytes(m.Final), plain})
		}
	}
	g := &grid{columns: []column{names, fastest, median}}
	if slices.ContainsFunc(rows, is(knowsSpread)) {
		g.columns = append(g.columns, pm)
	}
	for _, base := range replayedWith(rows) {
		i := indexOf(rows, base.name)
		ratio := column{head: "of " + base.name}
		for _, row := range rows {
			ratio.cells = append(ratio.cells, cell{figure.Times(best(&row) / best(&rows[i])), plain})
		}
		g.columns = append(g.columns, ratio)
	}
	if slices.ContainsFunc(rows, is(hasMemory)) {
		g.columns = append(g.columns, peak, final)
	}
	g.fit(t.columns)
	t.out.WriteByte('\n')
	t.out.WriteString(g.text(t.p))
}

// replayLegend explains the columns, those that the report has.
func (t *texter) replayLegend(r *result.Report) {
	t.explain("best, median", "wall-clock time of one operation, in the best and in the median round")
	if slices.ContainsFunc(r.Rows, is(knowsSpread)) {
		t.explain("±", spreadMeans)
	}
	for _, base := range replayedWith(r.Rows) {
		t.explain("of "+base.name, "the best time divided by that of "+base.name+", which "+base.is)
	}
	if slices.ContainsFunc(r.Rows, is(hasMemory)) {
		t.explain("peak", "the most memory that was resident in a separate process, less what was resident before the first operation")
		t.explain("final", "the same, after all blocks were freed and the allocator was trimmed")
	}
}

func hasMemory(row *result.Row) bool { return row.Memory != nil }

// mebibytes writes a number of bytes in MiB.
func mebibytes(n int64) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }

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
