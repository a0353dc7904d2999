package present

import (
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// promised writes the bars of rows, and where the figures are.
func (t *texter) promised(rows []result.Row) {
	g := grid{columns: []column{{head: "row", left: true}, {head: "figure", left: true}, {head: "of", left: true}, {head: "measured"}, {head: "bar"}, {left: true}, {head: "limit"}}}
	for _, row := range rows {
		for _, b := range row.Bars {
			verdict := cell{b.Verdict(), plain}
			if b.Value > b.Bar {
				verdict.style = yellow
			}
			for i, c := range []cell{
				{rowAndProcs(&row, rows), plain}, {b.Figure, plain}, {b.To, dim},
				{ratioOrCount(b.Value), bold}, {ratioOrCount(b.Bar), plain}, verdict, {ratioOrCount(b.Limit), dim},
			} {
				g.columns[i].cells = append(g.columns[i].cells, c)
			}
		}
	}
	if len(g.columns[0].cells) == 0 {
		return
	}
	g.columns = slices.DeleteFunc(g.columns, func(c column) bool {
		return !slices.ContainsFunc(c.cells, func(c cell) bool { return c.text != "" })
	})
	t.out.WriteByte('\n')
	t.note("What is promised: a figure of a row, or its part of that of another row, stays under a bar. Above the limit it is worse than it was.")
	t.out.WriteString(g.text(t.p))
}

// ratioOrCount writes a figure of a bar.
func ratioOrCount(x float64) string { return figure.Exact(figure.Round(x, 3)) }
