package report

import (
	"fmt"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

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

// basesOf returns the allocators with which a replay compares the others, and what each is: libraries
// that were preloaded are among them.
func basesOf(rows []result.Row) (names, are []string) {
	for _, row := range rows {
		is := map[string]string{"native": "calls malloc from a loop in C", "libc": "calls the same malloc from Go through cgo"}[row.Row]
		if row.Preloaded {
			is = "is the malloc that a loop in C calls in a process with that library"
		}
		if is != "" && !slices.Contains(names, row.Row) {
			names, are = append(names, row.Row), append(are, is)
		}
	}
	return names, are
}

// replayColumns are those of the rows of a trace.
func replayColumns(rows []result.Row) []column {
	always := func(*result.Row) bool { return true }
	mebibytes := func(of func(*result.Memory) int64) func(r *result.Row) string {
		return func(r *result.Row) string {
			if r.Memory == nil {
				return figure.Missing
			}
			return fmt.Sprintf("%.2f MiB", float64(of(r.Memory))/(1<<20))
		}
	}
	all := []column{
		{"best", always, func(r *result.Row) string { return figure.Duration(best(r)) }, "wall-clock time of one operation in the best round"},
		{"median", always, func(r *result.Row) string { return figure.Duration(r.NsPerOp) }, "the same in the median round"},
		columns[slices.IndexFunc(columns, func(c column) bool { return c.head == "±" })],
	}
	names, are := basesOf(rows)
	for i, name := range names {
		theirs := best(find(rows, name))
		all = append(all, column{"of " + name, always, func(r *result.Row) string { return figure.Times(best(r) / theirs) },
			"the best time divided by that of " + name + ", which " + are[i]})
	}
	return append(all,
		column{"peak", hasMemory, mebibytes(func(m *result.Memory) int64 { return m.Peak }), "the most memory that was resident in a separate process, less what was resident before the first operation"},
		column{"final", hasMemory, mebibytes(func(m *result.Memory) int64 { return m.Final }), "the same, after all blocks were freed and the allocator was trimmed"})
}

// replayedAll writes the table of all traces, if there are several: a line for each allocator that has
// replayed them all, with the geometric means of its best times and of its peaks. The ratio of two
// geometric means is the geometric mean of the ratios.
func (t *text) replayedAll(r *result.Report) {
	if len(r.Tables) < 2 {
		return
	}
	var rows []result.Row
	for _, first := range r.RowsOf(r.Tables[0].Name) {
		var times, peaks []float64
		for _, row := range r.Rows {
			if row.Row != first.Row {
				continue
			}
			times = append(times, best(&row))
			if row.Memory != nil {
				peaks = append(peaks, float64(max(row.Memory.Peak, 1)))
			}
		}
		if len(times) < len(r.Tables) {
			continue
		}
		mean := result.Row{Row: first.Row, Preloaded: first.Preloaded, NsPerOp: geometricMean(times)}
		if len(peaks) == len(times) {
			mean.Memory = &result.Memory{Peak: int64(geometricMean(peaks))}
		}
		rows = append(rows, mean)
	}
	if len(rows) == 0 {
		return
	}
	t.title(fmt.Sprintf("all %d traces", len(r.Tables)))
	t.hang("", "Geometric means.")
	t.grid(gridOf("allocator", rows, slices.DeleteFunc(replayColumns(rows), func(c column) bool { return c.head == "median" || c.head == "final" })))
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
