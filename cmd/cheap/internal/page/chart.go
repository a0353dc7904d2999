package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/figure"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// A chart is what charts.js draws of a section of a table. Each row is one point of one
// line. A chart of bars or dots is a single line without X.
type chart struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"` // "bars", "dots" or "lines"
	Log     bool     `json:"log"`
	Bytes   bool     `json:"bytes"`   // figures are bytes, not nanoseconds
	Label   string   `json:"label"`   // what the chart shows, in words
	Sources []string `json:"sources"` // of the published figures
	X       []string `json:"x"`       // the places on the axis; nil for bars
	Lines   []line   `json:"lines"`
}

// A line is points that are joined.
type line struct {
	Name   string  `json:"name"`
	Points []point `json:"points"`
}

// A point is one row.
type point struct {
	Name      string  `json:"name"`
	Ours      bool    `json:"ours"`
	X         int     `json:"x"` // index in chart.X, or of the bar
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

// logRange is the largest ratio between two figures on a linear scale.
const logRange = 30

func newChart(t table) chart {
	c := chart{ID: t.Name, Kind: "bars", Bytes: t.Chart == result.Bytes && slices.ContainsFunc(t.rows, func(r result.Row) bool { return r.Resident > 0 })}
	c.Log = !c.Bytes && isWide(t.rows)
	split, ok := splitOf(t)
	if ok {
		c.Kind = "lines"
		c.addLines(t, split)
	} else {
		c.addBars(t)
		if c.Log {
			// A bar is as long as its figure, from 0 on, which a logarithmic scale
			// has not.
			c.Kind = "dots"
		}
	}
	c.Label = label(t, c)
	return c
}

// isWide reports whether the figures differ by more than logRange, published ones
// included, because the chart has them as well.
func isWide(rows []result.Row) bool {
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
	return high > logRange*low
}

// A splitter returns the line that a row belongs to, and the row's place on the
// axis.
type splitter func(result.Row) (line string, x int)

// splitOf returns how the rows of a table form lines. They form none if the table
// is drawn as bars, if a row has no place on the axis, or if all rows have the
// same place, as with -cpu=1.
func splitOf(t table) (splitter, bool) {
	var split splitter
	switch t.Chart {
	case result.Procs:
		split = func(r result.Row) (string, int) { return r.Row, r.Procs }
	case result.Sizes:
		several := result.MixesProcs(t.rows)
		split = func(r result.Row) (string, int) {
			name, x, ok := result.SplitNumber(r.Row)
			if !ok {
				x = -1
			}
			return rowName(name, r.Procs, several), x
		}
	default:
		return nil, false
	}
	_, first := split(t.rows[0])
	differ := false
	for _, r := range t.rows {
		_, x := split(r)
		if x < 0 {
			return nil, false
		}
		differ = differ || x != first
	}
	return split, differ
}

// rowName is the name of a row, with its number of processors if there are several.
func rowName(row string, procs int, several bool) string {
	if !several {
		return row
	}
	return row + " (" + strconv.Itoa(procs) + ")"
}

func (c *chart) addBars(t table) {
	several := result.MixesProcs(t.rows)
	bars := line{Name: "measured"}
	for i, r := range t.rows {
		bars.Points = append(bars.Points, c.point(r, rowName(r.Row, r.Procs, several), i))
	}
	c.Lines = []line{bars}
}

func (c *chart) addLines(t table, split splitter) {
	var xs []int
	for _, r := range t.rows {
		_, x := split(r)
		xs = append(xs, x)
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	for _, x := range xs {
		c.X = append(c.X, figure.Thousands(x))
	}
	index := make(map[string]int)
	for _, r := range t.rows {
		name, x := split(r)
		i, ok := index[name]
		if !ok {
			i = len(c.Lines)
			index[name] = i
			c.Lines = append(c.Lines, line{Name: name})
		}
		place, _ := slices.BinarySearch(xs, x)
		c.Lines[i].Points = append(c.Lines[i].Points, c.point(r, name, place))
	}
	// Points are joined from left to right.
	for _, l := range c.Lines {
		slices.SortStableFunc(l.Points, func(a, b point) int { return cmp.Compare(a.X, b.X) })
	}
}

// isOurs reports whether a row is about this project, which has a color of its own:
// own-..., or ...-heap and the like, with or without a size behind it.
func isOurs(row string) bool {
	name, _, _ := result.SplitNumber(row)
	words := strings.Split(name, "-")
	last := words[len(words)-1]
	return words[0] == "own" || slices.Contains([]string{"heap", "local", "arena", "dropin"}, last)
}

// point makes a point of a row, and adds the sources of its figures.
func (c *chart) point(r result.Row, name string, x int) point {
	p := point{
		Name: name, Ours: isOurs(r.Row), X: x,
		Ns: r.NsPerOp, Low: r.CI95Low, High: r.CI95High,
		Time: measured(r.NsPerOp), Interval: interval(r.CI95Low, r.CI95High),
	}
	if c.Bytes {
		p.Ns, p.Low, p.High, p.Time, p.Interval = r.Resident, 0, 0, together(figure.Bytes(r.Resident)), ""
		return p
	}
	for _, pub := range r.Published {
		p.Published = append(p.Published, mark{c.source(pub.Source), pub.Ns, published(pub.Ns)})
	}
	return p
}

func (c *chart) source(name string) int {
	i := slices.Index(c.Sources, name)
	if i < 0 {
		i = len(c.Sources)
		c.Sources = append(c.Sources, name)
	}
	return i
}

// label describes what a chart shows.
func label(t table, c chart) string {
	s := "Wall-clock time"
	if t.Unit != "" {
		s = "Time for one " + t.Unit
	}
	if c.Bytes {
		return "Resident memory"
	}
	if c.Kind == "lines" && t.Chart == result.Procs {
		s += ", by number of processors"
	} else if c.Kind == "lines" && t.Over != "" {
		s += ", by " + t.Over
	}
	if c.Log {
		s += ", on a logarithmic scale"
	}
	return s
}
