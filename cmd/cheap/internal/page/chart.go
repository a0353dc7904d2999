package page

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// A chart is what charts.js draws of a section of a table, or of a part of it: a bar for
// each row, or a dot. The charts of a section have the same kind and the same sources, and
// share a legend.
type chart struct {
	ID      string   `json:"id"`
	Legend  string   `json:"legend"` // the section's ID
	Title   string   `json:"-"`      // of one of several charts: "64 bytes"
	Label   string   `json:"-"`      // what the charts of the section show, in words
	Kind    string   `json:"kind"`   // "bars" or "dots"
	Log     bool     `json:"log"`
	Unit    string   `json:"unit"`    // of the figures: "ns", "bytes" or "times"
	Sources []string `json:"sources"` // of the published figures
	Points  []point  `json:"points"`
}

// A point is one row.
type point struct {
	Name      string  `json:"name"`
	Ours      bool    `json:"ours"`
	X         int     `json:"x"` // which bar it is, from above
	Ns        float64 `json:"ns"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Time      string  `json:"time"`
	Interval  string  `json:"interval"`
	Published []mark  `json:"published"`
}

// A mark is a published figure.
type mark struct {
	Source int     `json:"source"` // index in chart.Sources
	Ns     float64 `json:"ns"`
	Time   string  `json:"time"`
}

// The largest ratios between two figures on a linear scale. In a small chart there are few
// bars, and what is compared stands close together.
const (
	logRange      = 30
	smallLogRange = 200
)

// newCharts returns the charts of a section of a table. If its rows differ in a size or in the
// number of processors, there is one for each size, or for each name of a row: a bar has a
// length that means something only beside bars of the same kind.
func newCharts(id string, t table) []chart {
	parts, ok := split(t)
	most := float64(smallLogRange)
	if !ok {
		several := result.MixesProcs(t.rows)
		parts, most = []panel{{rows: t.rows, name: func(r result.Row) string { return t.label(r.Row, r.Procs, several) }}}, logRange
	}
	unit := unitOf(t)
	log := unit == unitNs && slices.ContainsFunc(parts, func(p panel) bool { return rangeOf(p.rows) > most })
	sources := sourcesOf(t.rows, unit)
	var charts []chart
	for _, p := range parts {
		c := chart{ID: id, Legend: id, Title: p.title, Label: label(t, ok, log, unit), Kind: "bars", Log: log, Unit: unit, Sources: sources}
		if ok {
			c.ID += "." + p.key
		}
		if log {
			// A bar is as long as its figure, from 0 on, which a logarithmic scale
			// has not.
			c.Kind = "dots"
		}
		for i, r := range p.rows {
			c.Points = append(c.Points, c.point(r, p.name(r), i))
		}
		charts = append(charts, c)
	}
	return charts
}

// The units of figures.
const (
	unitNs    = "ns"
	unitBytes = "bytes"
	unitTimes = "times" // what is held, as a multiple of what is owned
)

// unitOf returns the unit of the figures that are drawn: nanoseconds if those that the
// table is about were not measured.
func unitOf(t table) string {
	switch {
	case t.Chart == result.Bytes && slices.ContainsFunc(t.rows, func(r result.Row) bool { return r.Resident > 0 }):
		return unitBytes
	case t.Chart == result.Held && slices.ContainsFunc(t.rows, func(r result.Row) bool { return r.Held > 0 }):
		return unitTimes
	}
	return unitNs
}

// rangeOf returns how many times the largest figure is the smallest, published ones
// included, because the chart has them as well. It is 0 without figures.
func rangeOf(rows []result.Row) float64 {
	low, high := math.Inf(1), 0.0
	see := func(ns float64) {
		if ns > 0 {
			low, high = min(low, ns), max(high, ns)
		}
	}
	for _, r := range rows {
		see(r.NsPerOp)
		for _, p := range r.Published {
			see(p.Ns)
		}
	}
	return high / low
}

// A panel is one of the charts of a section.
type panel struct {
	key, title string
	rows       []result.Row
	name       func(result.Row) string // of a bar
}

// split divides the rows of a table among charts. It does not if the table has one chart,
// if a row has no size, or if there is only one size or number of processors, as with
// -cpu=1.
func split(t table) ([]panel, bool) {
	switch t.Chart {
	case result.Procs:
		if !result.MixesProcs(t.rows) {
			return nil, false
		}
		return divide(t.rows, func(r result.Row) panel {
			return panel{key: r.Row, title: t.words(r.Row), name: func(r result.Row) string { return figure.Plural(r.Procs, "processor") }}
		}), true
	case result.Sizes:
		several := result.MixesProcs(t.rows)
		if slices.ContainsFunc(t.rows, func(r result.Row) bool { _, _, ok := result.SplitNumber(r.Row); return !ok }) {
			return nil, false
		}
		panels := divide(t.rows, func(r result.Row) panel {
			_, size, _ := result.SplitNumber(r.Row)
			return panel{
				key: strconv.Itoa(size), title: strings.TrimSpace(figure.Thousands(size) + " " + t.Over),
				name: func(r result.Row) string {
					series, _, _ := result.SplitNumber(r.Row)
					return t.label(series, r.Procs, several)
				},
			}
		})
		return panels, len(panels) > 1
	}
	return nil, false
}

// divide divides rows among panels, in the order in which they come.
func divide(rows []result.Row, of func(result.Row) panel) []panel {
	var all []panel
	for _, r := range rows {
		p := of(r)
		i := slices.IndexFunc(all, func(q panel) bool { return q.key == p.key })
		if i < 0 {
			i = len(all)
			all = append(all, p)
		}
		all[i].rows = append(all[i].rows, r)
	}
	return all
}

// words returns the name of a row in words.
func (t table) words(row string) string {
	words, _ := Words(t.Name, t.Over, row)
	return words
}

// label is the name of a row in words, with its number of processors if there are several.
func (t table) label(row string, procs int, several bool) string {
	if !several {
		return t.words(row)
	}
	return t.words(row) + ", " + figure.Plural(procs, "processor")
}

// isOurs reports whether a row is about this project, which has a color of its own.
func isOurs(row string) bool {
	words, _ := Words("", "", row)
	return slices.ContainsFunc(strings.Split(words, ", "), func(part string) bool {
		return slices.ContainsFunc([]string{"own.", "cheap.", "drop-in", "a list"}, func(ours string) bool { return strings.HasPrefix(part, ours) })
	})
}

// point makes a point of a row.
func (c *chart) point(r result.Row, name string, x int) point {
	p := point{
		Name: name, Ours: isOurs(r.Row), X: x,
		Ns: r.NsPerOp, Low: r.CI95Low, High: r.CI95High,
		Time: measured(r.NsPerOp), Interval: interval(r.CI95Low, r.CI95High),
	}
	if c.Unit != unitNs {
		p.Low, p.High, p.Interval = 0, 0, ""
		p.Ns, p.Time = r.Resident, together(figure.Bytes(r.Resident))
		if c.Unit == unitTimes {
			p.Ns, p.Time = r.Held, figure.Times(r.Held)
		}
		return p
	}
	for _, pub := range r.Published {
		p.Published = append(p.Published, mark{slices.Index(c.Sources, pub.Source), pub.Ns, published(pub.Ns)})
	}
	return p
}

// sourcesOf returns the sources of the figures that are drawn.
func sourcesOf(rows []result.Row, unit string) (sources []string) {
	for _, r := range rows {
		for _, p := range r.Published {
			if unit == unitNs && !slices.Contains(sources, p.Source) {
				sources = append(sources, p.Source)
			}
		}
	}
	return sources
}

// label describes what the charts of a section show.
func label(t table, several, log bool, unit string) string {
	s := "Wall-clock time"
	if t.Unit != "" {
		s = "Time for one " + t.Unit
	}
	switch unit {
	case unitBytes:
		s = "Resident memory"
	case unitTimes:
		s = "What is held, as a multiple of what live objects own"
	}
	if several {
		s += ", each chart with a scale of its own"
	}
	if log {
		s += ", on a logarithmic scale"
	}
	return s
}
