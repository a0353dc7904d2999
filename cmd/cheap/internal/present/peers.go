package present

import (
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// peers writes a table that has a line for each row that is compared by processor
// time, and columns for the rows with which it is compared. Names of rows end in that
// of an allocator. Without processor times it is a table as others.
func (t *texter) peers(rows []result.Row) {
	lines := slices.DeleteFunc(slices.Clone(rows), func(r result.Row) bool { return len(r.CPUVersus) == 0 })
	if len(lines) == 0 {
		t.bars(rows)
		return
	}
	lines = groupedByProcs(lines)
	others, ours := allocatorsBeside(lines)
	names, procs, cpu := column{head: "row", left: true}, column{head: "procs"}, column{head: "CPU"}
	for _, row := range lines {
		names.cells = append(names.cells, cell{row.Row, plain})
		procs.cells = append(procs.cells, cell{figure.Thousands(row.Procs), plain})
		cpu.cells = append(cpu.cells, cell{figure.Duration(row.CPUNsPerOp), plain})
	}
	for _, name := range ours {
		names.cells = append(names.cells, cell{"geometric mean, " + name, plain})
		procs.cells = append(procs.cells, cell{})
		cpu.cells = append(cpu.cells, cell{})
	}
	g := &grid{columns: []column{names}, breaks: map[int]bool{len(lines): true}}
	for i := range lines {
		g.breaks[i] = i > 0 && lines[i].Procs != lines[i-1].Procs
	}
	if result.MixesProcs(lines) {
		g.columns = append(g.columns, procs)
	}
	g.columns = append(g.columns, cpu)
	for _, name := range others {
		g.columns = append(g.columns, besideColumn(lines, name, ours))
	}
	g.columns = append(g.columns, residentColumns(rows, lines, ours)...)
	t.narrow(g, lines)
	t.out.WriteByte('\n')
	t.out.WriteString(g.text(t.p))
}

// narrow removes columns until the grid is as narrow as the text, the least important
// ones first. A sentence replaces the column procs, unless lines differ in nothing else.
func (t *texter) narrow(g *grid, lines []result.Row) {
	for _, drop := range []func(column) bool{
		func(c column) bool { return c.head == "MiB" },
		func(c column) bool { return c.head == "procs" && t.procsInWords(lines) },
		func(c column) bool { return strings.HasPrefix(c.head, residentGroup) },
	} {
		if g.width() <= t.columns {
			return
		}
		g.columns = slices.DeleteFunc(g.columns, drop)
		if c := &g.columns[len(g.columns)-1]; c.group == residentGroup {
			c.group, c.head = "", residentGroup+" "+c.head // in lines, which needs less room
		}
	}
}

// procsInWords writes which lines are on which number of processors. It reports false,
// and writes nothing, if there are lines of one name, or more than two numbers.
func (t *texter) procsInWords(lines []result.Row) bool {
	last := lines[len(lines)-1].Procs
	first := slices.DeleteFunc(slices.Clone(lines), func(r result.Row) bool { return r.Procs == last })
	var names []string
	for _, row := range first {
		name := strings.TrimSuffix(row.Row, "-"+allocatorOf(row.Row))
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		same := func(r result.Row) bool { return r.Row == row.Row && r.Procs != row.Procs }
		if row.Procs != first[0].Procs || slices.ContainsFunc(lines, same) {
			return false
		}
	}
	t.note("On " + figure.Plural(first[0].Procs, "processor") + ": " + strings.Join(names, ", ") + "; the others on " + figure.Thousands(last) + ".")
	return true
}

// allocatorOf returns the end of the name of a row.
func allocatorOf(row string) string { return row[strings.LastIndexByte(row, '-')+1:] }

// allocatorsBeside returns the allocators with which lines are compared, and those of
// the lines.
func allocatorsBeside(lines []result.Row) (others, ours []string) {
	for _, row := range lines {
		if name := allocatorOf(row.Row); !slices.Contains(ours, name) {
			ours = append(ours, name)
		}
		for _, r := range row.CPUVersus {
			if name := allocatorOf(r.To); !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	return others, ours
}

// besideColumn returns the ratios of processor times to those of an allocator.
func besideColumn(lines []result.Row, name string, ours []string) column {
	c := column{group: "CPU of", head: name}
	of := make(map[string][]float64)
	for _, row := range lines {
		i := slices.IndexFunc(row.CPUVersus, func(r result.Ratio) bool { return allocatorOf(r.To) == name })
		if i < 0 {
			c.cells = append(c.cells, cell{figure.Missing, plain})
			continue
		}
		c.cells = append(c.cells, ratioCell(&row.CPUVersus[i]))
		of[allocatorOf(row.Row)] = append(of[allocatorOf(row.Row)], row.CPUVersus[i].Ratio)
	}
	c.cells = append(c.cells, meanCells(of, ours)...)
	align(c.cells, " ~")
	return c
}

// residentGroup is the group of the columns of memory.
const residentGroup = "resident"

// residentColumns returns the resident memory of lines, and its ratios to that of the
// first allocator with which each is compared. It returns nothing if it is unknown.
func residentColumns(rows, lines []result.Row, ours []string) []column {
	type key struct {
		row   string
		procs int
	}
	bytes := make(map[key]float64)
	for _, row := range rows {
		bytes[key{row.Row, row.Procs}] = row.Resident
	}
	base := allocatorOf(lines[0].CPUVersus[0].To)
	memory, ratio := column{group: residentGroup, head: "MiB"}, column{group: residentGroup, head: "of " + base}
	of := make(map[string][]float64)
	known := false
	for _, row := range lines {
		mib, part := cell{figure.Missing, plain}, cell{figure.Missing, plain}
		if row.Resident > 0 {
			mib.text = strings.TrimSuffix(figure.MiB(row.Resident), " MiB")
			known = true
		}
		if theirs := bytes[key{row.CPUVersus[0].To, row.Procs}]; row.Resident > 0 && theirs > 0 && allocatorOf(row.CPUVersus[0].To) == base {
			r := row.Resident / theirs
			part.text = figure.Times(r)
			of[allocatorOf(row.Row)] = append(of[allocatorOf(row.Row)], r)
		}
		memory.cells, ratio.cells = append(memory.cells, mib), append(ratio.cells, part)
	}
	if !known {
		return nil
	}
	for range ours {
		memory.cells = append(memory.cells, cell{})
	}
	ratio.cells = append(ratio.cells, meanCells(of, ours)...)
	return []column{memory, ratio}
}

// meanCells returns the geometric mean of each allocator.
func meanCells(of map[string][]float64, ours []string) (cells []cell) {
	for _, name := range ours {
		text := figure.Missing
		if ratios := of[name]; len(ratios) > 0 {
			text = figure.Times(geometricMean(ratios))
		}
		cells = append(cells, cell{text, plain})
	}
	return cells
}
