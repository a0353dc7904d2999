package tables

import (
	"slices"
	"strings"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A promise is that a figure of a row, divided by that of another row, stays under a bar.
type promise struct {
	work, than string // as docs/reference/figures.md has them
	table      string
	row, to    string // to is "" for a figure that is not divided
	figure     measure.Figure
	bar        float64

	// The least and the most that was measured on one P and on two: on the first machine of
	// docs/reference/figures.md, and on another one.
	here, there [2]span
}

// A span is the least and the most of what was measured, zero if nothing was.
type span struct{ least, most float64 }

// margin is what the regression limit is above the most that was measured.
const margin = 1.25

// limit returns the regression limit of a promise: the most that was measured with procs
// processors and a margin, or the bar if that is more. Where nothing was measured on one P, what was
// measured on two counts, and the other way round.
func (p *promise) limit(procs int) float64 {
	i := min(procs, 2) - 1
	most := max(p.here[i].most, p.there[i].most)
	if most == 0 {
		most = max(p.here[1-i].most, p.there[1-i].most)
	}
	return max(p.bar, margin*most)
}

// least is the number of processors from which on the promise is given.
func (p *promise) least() int {
	if strings.HasSuffix(p.row, "-parallel") || p.figure.Name == measure.Slowdown.Name {
		return 2
	}
	return 1
}

// promiseTo gives the rows of tables their bars.
func promiseTo(all []measure.Table) []measure.Table {
	for i := range promises {
		p := &promises[i]
		for _, t := range all {
			for j := range t.Rows {
				if t.Name == p.table && t.Rows[j].Name == p.row {
					t.Rows[j].Bars = append(t.Rows[j].Bars, measure.Bar{Figure: p.figure, To: p.to, Most: p.bar, Limit: p.limit, Procs: p.least()})
				}
			}
		}
	}
	return all
}

// Promised returns the rows about which there are promises, and those that they are compared with.
func Promised() []measure.Table {
	var some []measure.Table
	for _, t := range All() {
		needed := make(map[string]bool)
		for _, r := range t.Rows {
			for _, b := range r.Bars {
				needed[r.Name], needed[b.To] = true, true
			}
		}
		t.Rows = slices.DeleteFunc(t.Rows, func(r measure.Row) bool { return !needed[r.Name] })
		if len(t.Rows) > 0 {
			some = append(some, t)
		}
	}
	return some
}
