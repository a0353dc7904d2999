package present

import (
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// An axis says how rows form series, and the place of each row in its series.
type axis struct {
	head  string // over the places
	split func(row *result.Row) (series string, at int, ok bool)
	base  func(name string) string // the series of a row with which others are compared
}

// procsAxis is for tables over processors.
var procsAxis = axis{
	head:  "procs",
	split: func(row *result.Row) (string, int, bool) { return row.Row, row.Procs, true },
	base:  func(name string) string { return name },
}

// sizesAxis is for tables over the number at the end of row names.
func sizesAxis(head string) axis {
	return axis{
		head:  head,
		split: func(row *result.Row) (string, int, bool) { return result.SplitNumber(row.Row) },
		base: func(name string) string {
			if series, _, ok := result.SplitNumber(name); ok {
				return series
			}
			return name
		},
	}
}

// sizes writes a table over sizes, one for each number of processors. Rows without
// a size are in a separate table.
func (t *texter) sizes(table result.Table, rows []result.Row) {
	var procs []int
	for _, row := range rows {
		if !slices.Contains(procs, row.Procs) {
			procs = append(procs, row.Procs)
		}
	}
	for _, n := range procs {
		var sized, others []result.Row
		for _, row := range rows {
			if row.Procs != n {
				continue
			}
			if _, _, ok := result.SplitNumber(row.Row); ok {
				sized = append(sized, row)
			} else {
				others = append(others, row)
			}
		}
		if len(procs) > 1 || n != 1 {
			t.out.WriteByte('\n')
			t.note("On " + figure.Plural(n, "processor") + ".")
		}
		if len(others) > 0 {
			t.bars(others)
		}
		if len(sized) > 0 {
			t.pivot(sized, sizesAxis(sizesHead(table)))
		}
	}
}

// sizesHead returns what the numbers at the end of a table's row names count.
func sizesHead(table result.Table) string {
	if table.Over != "" {
		return table.Over
	}
	return "size"
}

// A series is the columns of rows that differ only in their place.
type series struct {
	name    string
	columns []column
}

// pivot writes a table with a line for each place, and columns for each series.
// Series that do not fit beside each other stand below each other.
func (t *texter) pivot(rows []result.Row, over axis) {
	var legend []mark
	keys, list := t.series(rows, over, &legend)
	for _, part := range parts(keys, list, t.columns) {
		t.out.WriteByte('\n')
		t.out.WriteString(part.text(t.p))
	}
	t.marks(legend)
}

// series divides rows into series. It returns the column of places, and the series.
func (t *texter) series(rows []result.Row, over axis, legend *[]mark) (column, []series) {
	var names []string
	var places []int
	at := make(map[string]map[int]result.Row)
	for _, row := range rows {
		name, place, _ := over.split(&row)
		if at[name] == nil {
			names = append(names, name)
			at[name] = make(map[int]result.Row)
		}
		at[name][place] = row
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	slices.Sort(places)

	keys := column{head: over.head}
	for _, place := range places {
		keys.cells = append(keys.cells, cell{figure.Thousands(place), plain})
	}
	oneKind := len(sourcesIn(rows)) == 1
	var list []series
	for _, name := range names {
		line := make([]result.Row, len(places))
		for i, place := range places {
			line[i] = at[name][place]
		}
		s := series{name, seriesColumns(line, over, legend)}
		for i := range s.columns {
			c := &s.columns[i]
			if c.group == publishedGroup && oneKind {
				c.head = "published"
			}
			c.group = name
		}
		list = append(list, s)
	}
	return keys, list
}

func sourcesIn(rows []result.Row) []string {
	var sources []string
	for _, row := range rows {
		for _, p := range row.Published {
			if !slices.Contains(sources, p.Source) {
				sources = append(sources, p.Source)
			}
		}
	}
	return sources
}

// seriesColumns returns the columns of a series. A row without a name is a place
// at which nothing was measured.
func seriesColumns(line []result.Row, over axis, legend *[]mark) []column {
	time, pm, ratio := column{head: "time"}, column{head: "±"}, column{head: "ratio"}
	var bases []string
	for _, row := range line {
		if row.Row == "" {
			time.cells = append(time.cells, cell{figure.Missing, plain})
		} else {
			time.cells = append(time.cells, timeCell(&row))
		}
		pm.cells = append(pm.cells, cell{spread(&row), dim})
		ratio.cells = append(ratio.cells, ratioCell(row.Versus))
		if row.Versus != nil {
			if base := over.base(row.Versus.To); !slices.Contains(bases, base) {
				bases = append(bases, base)
			}
		}
	}
	align(time.cells, doubtMark)
	list := []column{time}
	if slices.ContainsFunc(line, is(knowsSpread)) {
		list = append(list, pm)
	}
	if len(bases) == 1 {
		ratio.head = "of " + bases[0]
	}
	if len(bases) > 0 {
		align(ratio.cells, " ~")
		list = append(list, ratio)
	}
	return append(list, publishedColumns(line, legend)...)
}

// parts divides series among grids that are narrow enough. If one grid is enough
// without the column ±, that column is left out.
func parts(keys column, list []series, columns int) []*grid {
	all := join(keys, list)
	if all.width() <= columns {
		return []*grid{all}
	}
	bare := join(keys, list)
	bare.columns = slices.DeleteFunc(bare.columns, func(c column) bool { return c.head == "±" })
	if bare.width() <= columns {
		return []*grid{bare}
	}
	var grids []*grid
	for len(list) > 0 {
		n := 1
		for n < len(list) && join(keys, list[:n+1]).width() <= columns {
			n++
		}
		grids = append(grids, join(keys, list[:n]))
		list = list[n:]
	}
	return grids
}

// join makes a grid of places and series.
func join(keys column, list []series) *grid {
	g := &grid{columns: []column{keys}}
	for _, s := range list {
		g.columns = append(g.columns, s.columns...)
	}
	return g
}
