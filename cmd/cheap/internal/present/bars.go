package present

import (
	"cmp"
	"slices"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// The groups of columns.
const (
	measuredGroup  = "measured here"
	publishedGroup = "published, ns"
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
		procs.cells = append(procs.cells, cell{thousands(row.Procs), plain})
	}

	g := &grid{columns: []column{names}}
	if mixesProcs(rows) {
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
	g.fit()

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

// fit takes columns away until the grid is narrow enough, those first that
// matter least. JSON has them all.
func (g *grid) fit() {
	for _, head := range []string{"B", "allocs", "±"} {
		if g.width() <= columns {
			return
		}
		g.columns = slices.DeleteFunc(g.columns, func(c column) bool { return c.head == head })
	}
}

// timeColumns returns the columns of what was measured of each row by itself,
// without those that say nothing.
func timeColumns(rows []result.Row) []column {
	list := []column{{head: "time"}, {head: "±"}, {head: "CPU"}, {head: "allocs"}, {head: "B"}}
	shown := []bool{true, slices.ContainsFunc(rows, is(knowsSpread)), slices.ContainsFunc(rows, is(cpuMatters)),
		slices.ContainsFunc(rows, is(allocates)), slices.ContainsFunc(rows, is(allocates))}
	for _, row := range rows {
		cpu := missing
		if row.CPUNsPerOp > 0 {
			cpu = duration(row.CPUNsPerOp)
		}
		for i, c := range []cell{
			{duration(row.NsPerOp), plain},
			{spread(&row), dim},
			{cpu, plain},
			{count(row.AllocsPerOp), plain},
			{count(row.GoBytesPerOp), plain},
		} {
			list[i].cells = append(list[i].cells, c)
		}
	}
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

// spread writes how far the bounds of the confidence interval are from the
// median, the farther one, "" where there are none.
func spread(r *result.Row) string {
	if !knowsSpread(r) || r.NsPerOp <= 0 {
		return ""
	}
	return percent(max(r.CI95High-r.NsPerOp, r.NsPerOp-r.CI95Low) / r.NsPerOp)
}

// ratioColumns returns the columns that set rows beside others, and the rows
// that have an empty line before them. Where all are set beside one row, it is
// in the head. Where there are blocks, each with one row that the others are set
// beside, that row says base. Else a column names it.
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
		of.cells = append(of.cells, cell{baseName(&row, starts != nil), plain})
	}
	return []column{ratio, of}, breaks
}

// basesOf returns the rows that others are set beside.
func basesOf(rows []result.Row) []string {
	var bases []string
	for _, row := range rows {
		if row.Versus != nil && !slices.Contains(bases, row.Versus.To) {
			bases = append(bases, row.Versus.To)
		}
	}
	return bases
}

// baseName names the row that a row is set beside. Where both are in one block,
// the words that their names begin with alike are left out.
func baseName(row *result.Row, short bool) string {
	if row.Versus == nil {
		return ""
	}
	to := row.Versus.To
	if !short {
		return to
	}
	cut := 0
	for i := 0; i < min(len(to), len(row.Row)) && to[i] == row.Row[i]; i++ {
		if to[i] == '-' {
			cut = i + 1
		}
	}
	return to[cut:]
}

func ratioCell(v *result.Ratio) cell {
	switch {
	case v == nil:
		return cell{}
	case v.Noisy:
		return cell{times(v.Ratio) + " ~", yellow}
	}
	return cell{times(v.Ratio), plain}
}

// blocks returns the rows at which blocks begin: a block is a row that is set
// beside none, and those behind it, which are set beside rows of the block. It
// returns nil where the rows are in no such order, and whether each block has
// one base only.
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
