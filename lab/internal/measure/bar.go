package measure

import (
	"math"

	"github.com/cheapgo/cheap/internal/page/result"
)

// A Bar is what a figure of a row is promised to stay under.
type Bar struct {
	Figure Figure
	To     string // the row of the group by whose figure it is divided, "" if it is not
	Most   float64

	// Limit returns the regression limit: above it something has become worse than it was.
	Limit func(procs int) float64

	Procs int // the least number of processors
}

// A Figure is what a Bar is about.
type Figure struct {
	Name string
	of   func(sample) float64
}

// The figures of a round.
var (
	Time      = Figure{"time", wallTime}
	CPU       = Figure{"processor time", cpuTimeOf}
	Peak      = Figure{"most live in C", func(s sample) float64 { return float64(s.Peak) }}
	HeapBytes = Figure{"bytes of the Go heap", func(s sample) float64 { return s.HeapBytes }}
	P999      = Figure{"time of the slowest", func(s sample) float64 { return s.P999 }}

	// Slowdown is the time divided by that of the same row on one processor, in the same round.
	Slowdown = Figure{Name: "time, of that on one P"}
)

// bars compares the figures of a unit with what is promised.
func (r *run) bars(u *unit) []result.Bar {
	var all []result.Bar
	for _, b := range u.row.Bars {
		ours, ok := r.figures(u, b.Figure)
		if b.To != "" && ok {
			var theirs []float64
			if theirs, ok = r.figures(r.on(b.To, u), b.Figure); ok {
				ours = divided(ours, theirs)
			}
		}
		value := median(ours)
		if !ok || u.procs < b.Procs || math.IsNaN(value) || math.IsInf(value, 0) {
			continue // a row that it needs was not measured, or the system does not say
		}
		all = append(all, result.Bar{Figure: b.Figure.Name, To: b.To, Value: value, Bar: b.Most, Limit: b.Limit(u.procs)})
	}
	return all
}

// on returns the unit of another row on the processors of u, nil if it was not measured.
func (r *run) on(row string, u *unit) *unit { return r.beside(u, row, u.procs) }

// figures returns a figure of each round, and false if a unit that it needs was not measured.
func (r *run) figures(u *unit, f Figure) ([]float64, bool) {
	if u == nil {
		return nil, false
	}
	if f.of != nil {
		return u.each(f.of), true
	}
	one := r.beside(u, u.row.Name, 1)
	if one == nil || u.procs == 1 {
		return nil, false
	}
	return divided(u.each(wallTime), one.each(wallTime)), true
}

// divided divides the figures of rounds by those of another unit in the same rounds.
func divided(ours, theirs []float64) []float64 {
	pairs := make([]float64, min(len(ours), len(theirs)))
	for i := range pairs {
		pairs[i] = ours[i] / theirs[i]
	}
	return pairs
}
