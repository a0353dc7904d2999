package present

import (
	"fmt"
	"math"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// replayedAll writes the table of all traces, if there are several: a line for each
// allocator that has replayed them all, with its best time on each, and the geometric
// mean of these. The ratio of two geometric means is the geometric mean of the ratios.
func (t *texter) replayedAll(r *result.Report) {
	var traces []string
	for _, table := range r.Tables {
		if len(r.RowsOf(table.Name)) > 0 {
			traces = append(traces, table.Name)
		}
	}
	if len(traces) < 2 {
		return
	}
	var names []string
	means, peaks := make(map[string]float64), make(map[string]float64)
	times := make(map[string][]float64)
	for _, row := range r.RowsOf(traces[0]) {
		rows := ofAllocator(r, row.Row)
		if len(rows) < len(traces) {
			continue
		}
		names = append(names, row.Row)
		var mem []float64
		for _, row := range rows {
			times[row.Row] = append(times[row.Row], best(&row))
			if row.Memory != nil {
				mem = append(mem, float64(row.Memory.Peak))
			}
		}
		means[row.Row] = geometricMean(times[row.Row])
		if len(mem) == len(traces) {
			peaks[row.Row] = geometricMean(mem)
		}
	}
	if len(names) == 0 {
		return
	}

	t.title(fmt.Sprintf("all %d traces", len(traces)), "")
	allocators, mean := column{head: "allocator", left: true}, column{head: "geometric mean"}
	for _, name := range names {
		allocators.cells = append(allocators.cells, cell{name, plain})
		mean.cells = append(mean.cells, cell{figure.Duration(means[name]), plain})
	}
	g := &grid{columns: []column{allocators}}
	for i, trace := range traces {
		c := column{group: "best", head: trace}
		for _, name := range names {
			c.cells = append(c.cells, cell{figure.Duration(times[name][i]), plain})
		}
		g.columns = append(g.columns, c)
	}
	g.columns = append(g.columns, mean)
	perTrace := len(traces)
	for _, base := range replayedWith(r.RowsOf(traces[0])) {
		if slices.Contains(names, base.name) {
			g.columns = append(g.columns, ratios("of "+base.name, "geometric mean", names, means, base.name))
		}
	}
	if peaks["native"] > 0 {
		g.columns = append(g.columns, ratios("peak of native", "", names, peaks, "native"))
	}
	if g.width() > t.columns { // the times on each trace stand in its table
		g.columns = slices.Delete(g.columns, 1, 1+perTrace)
	}
	t.out.WriteByte('\n')
	t.out.WriteString(g.text(t.p))
}

// ratios returns a column with each value divided by that of a base.
func ratios(head, group string, names []string, values map[string]float64, base string) column {
	c := column{group: group, head: head}
	for _, name := range names {
		text := ""
		if v, ok := values[name]; ok {
			text = figure.Times(v / values[base])
		}
		c.cells = append(c.cells, cell{text, plain})
	}
	return c
}

// ofAllocator returns the rows of an allocator, one for each trace that it has replayed.
func ofAllocator(r *result.Report, name string) []result.Row {
	var rows []result.Row
	for _, row := range r.Rows {
		if row.Row == name {
			rows = append(rows, row)
		}
	}
	return rows
}

func geometricMean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}
