package present

import (
	"cmp"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// The groups of columns.
const (
	measuredGroup  = "measured here"
	publishedGroup = "published, ns"
	publishedShort = "published" // the legend has the unit
)

// bars writes a table that has a line for each row, those of one number of
// processors after those of another.
func (t *texter) bars(rows []result.Row) {
	rows = groupedByProcs(rows)
	var legend []mark
	published := publishedColumns(rows, &legend)
	names := column{head: "row", left: true}
	procs := column{head: "procs"}
	for _, row := range rows {
		names.cells = append(names.cells, cell{row.Row, plain})
		procs.cells = append(procs.cells, cell{figure.Thousands(row.Procs), plain})
	}

	g := &grid{columns: []column{names}}
	if result.MixesProcs(rows) {
		g.columns = append(g.columns, procs)
	}
	ratios, breaks := ratioColumns(rows)
	g.breaks = breaks
	measured := slices.Concat(timeColumns(rows), ratios)
	if len(published) > 0 {
		for i := range measured {
			measured[i].group = measuredGroup
		}
	}
	g.columns = slices.Concat(g.columns, measured, published)
	g.fit(t.columns)

	t.out.WriteByte('\n')
	t.out.WriteString(g.text(t.p))
	t.marks(legend)
}

// groupedByProcs sorts rows by when their number of processors comes first.
func groupedByProcs(rows []result.Row) []result.Row {
	var order []int
	for _, row := range rows {
		if !slices.Contains(order, row.Procs) {
			order = append(order, row.Procs)
		}
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b result.Row) int {
		return cmp.Compare(slices.Index(order, a.Procs), slices.Index(order, b.Procs))
	})
	return rows
}

// fit removes columns until the grid is narrow enough, the least important ones
// first, and shortens the name of a group. JSON has all of them.
func (g *grid) fit(columns int) {
	for _, head := range []string{"B", "allocs", "±", "final", "median", publishedGroup, "CPU"} {
		if g.width() <= columns {
			return
		}
		g.columns = slices.DeleteFunc(g.columns, func(c column) bool { return c.head == head })
		for i := range g.columns {
			if g.columns[i].group == head {
				g.columns[i].group = publishedShort
			}
		}
	}
}

// timeColumns returns the columns of the rows' own figures. A column that says
// nothing is left out.
func timeColumns(rows []result.Row) []column {
	list := []column{{head: "held"}, {head: "resident"}, {head: "time"}, {head: "±"}, {head: "p99"}, {head: "CPU"}, {head: "allocs"}, {head: "B"}}
	shown := []bool{slices.ContainsFunc(rows, is(holds)), slices.ContainsFunc(rows, is(isResident)), true, slices.ContainsFunc(rows, is(knowsSpread)), slices.ContainsFunc(rows, is(knowsP99)), slices.ContainsFunc(rows, is(cpuMatters)),
		slices.ContainsFunc(rows, is(allocates)), slices.ContainsFunc(rows, is(allocates))}
	for _, row := range rows {
		cpu := figure.Missing
		if row.CPUNsPerOp > 0 {
			cpu = figure.Duration(row.CPUNsPerOp)
		}
		memory := figure.Missing
		if row.Resident > 0 {
			memory = figure.Bytes(row.Resident)
		}
		held, p99 := figure.Missing, figure.Missing
		if holds(&row) {
			held = figure.Times(row.Held)
		}
		if knowsP99(&row) {
			p99 = figure.Duration(row.P99)
		}
		for i, c := range []cell{
			{held, bold},
			{memory, bold},
			timeCell(&row),
			{spread(&row), dim},
			{p99, plain},
			{cpu, plain},
			{figure.Count(row.AllocsPerOp), plain},
			{figure.Count(row.GoBytesPerOp), plain},
		} {
			list[i].cells = append(list[i].cells, c)
		}
	}
	align(list[2].cells, doubtMark)
	var columns []column
	for i, c := range list {
		if shown[i] {
			columns = append(columns, c)
		}
	}
	return columns
}

func is(f func(*result.Row) bool) func(result.Row) bool {
	return func(r result.Row) bool { return f(&r) }
}

// spread writes how far the median is from the farther bound of its confidence
// interval, "" if there is no interval.
func spread(r *result.Row) string {
	if !knowsSpread(r) || r.NsPerOp <= 0 {
		return ""
	}
	return figure.Percent(max(r.CI95High-r.NsPerOp, r.NsPerOp-r.CI95Low) / r.NsPerOp)
}

// ratioColumns returns the columns that compare rows with others, and the rows
// that have an empty line before them. If all rows are compared with one, the
// head names that row. If the rows are in blocks, and those of a block are
// compared with one row of it, that row says base. Otherwise a column names the
// other row.
func ratioColumns(rows []result.Row) ([]column, map[int]bool) {
	breaks := make(map[int]bool)
	for i := range rows {
		breaks[i] = i > 0 && rows[i].Procs != rows[i-1].Procs
	}
	bases := basesOf(rows)
	if len(bases) == 0 {
		return nil, breaks
	}
	ratio := column{head: "ratio"}
	for _, row := range rows {
		ratio.cells = append(ratio.cells, ratioCell(row.Versus))
	}
	if len(bases) == 1 {
		ratio.head = "of " + bases[0]
		align(ratio.cells, " ~")
		return []column{ratio}, breaks
	}

	starts, oneBase := blocks(rows, bases)
	for i := range starts {
		breaks[i] = i > 0
	}
	if starts != nil && oneBase {
		for i, row := range rows {
			if row.Versus == nil && slices.Contains(bases, row.Row) {
				ratio.cells[i] = cell{"base", dim}
			}
		}
		align(ratio.cells, " ~")
		return []column{ratio}, breaks
	}
	align(ratio.cells, " ~")
	of := column{head: "of", left: true}
	for _, row := range rows {
		base := ""
		if row.Versus != nil {
			base = row.Versus.To
		}
		if starts != nil { // the row is in the same block
			base = result.ShortTo(row.Row, base)
		}
		of.cells = append(of.cells, cell{base, plain})
	}
	return []column{ratio, of}, breaks
}

// basesOf returns the names of the rows with which others are compared.
func basesOf(rows []result.Row) []string {
	var bases []string
	for _, row := range rows {
		if row.Versus != nil && !slices.Contains(bases, row.Versus.To) {
			bases = append(bases, row.Versus.To)
		}
	}
	return bases
}

func ratioCell(v *result.Ratio) cell {
	switch {
	case v == nil:
		return cell{}
	case v.Noisy:
		return cell{figure.Times(v.Ratio) + " ~", yellow}
	}
	return cell{figure.Times(v.Ratio), plain}
}

// blocks returns the rows at which blocks begin. A block is a row that is compared
// with none, and the rows behind it, which are compared with rows of the block. If
// the rows are not in such an order, starts is nil. OneBase says whether each block
// has one base only.
func blocks(rows []result.Row, bases []string) (starts map[int]bool, oneBase bool) {
	starts, oneBase = make(map[int]bool), true
	var first string
	inBlock := make(map[string]bool)
	for i, row := range rows {
		if row.Versus == nil && slices.Contains(bases, row.Row) {
			starts[i] = true
			first = row.Row
			clear(inBlock)
		}
		inBlock[row.Row] = true
		if row.Versus == nil {
			continue
		}
		if !inBlock[row.Versus.To] {
			return nil, false
		}
		oneBase = oneBase && row.Versus.To == first
	}
	return starts, oneBase
}
