package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// A chart is what charts.js draws of a table. Every row of the table is one
// point of one line; a bar chart is a single line without X.
type chart struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"` // "bars" or "lines"
	Log     bool     `json:"log"`
	Label   string   `json:"label"`   // what it shows, in words
	Sources []string `json:"sources"` // of the published figures
	X       []string `json:"x"`       // of lines: the places on the axis
	Lines   []line   `json:"lines"`
}

// A line is the points that are joined.
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

// logRange is how far the figures of a chart may lie apart on a linear scale.
const logRange = 30

func newChart(t table) chart {
	c := chart{ID: t.Name, Kind: "bars", Log: isWide(t.rows)}
	split, ok := splitOf(t)
	if ok {
		c.Kind = "lines"
		c.addLines(t, split)
	} else {
		c.addBars(t)
	}
	c.Label = label(t, c)
	return c
}

// isWide reports whether the figures differ by more than logRange. Those that
// are published count: they are drawn beside the others.
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

// A splitter divides a row into the line that it belongs to and its place on the
// axis.
type splitter func(result.Row) (line string, x int)

// splitOf returns how the rows of a table make lines. They make none if the
// table is drawn as bars, if a row has no place on the axis, or if all have the
// same one, as with -cpu=1.
func splitOf(t table) (splitter, bool) {
	var split splitter
	switch t.Chart {
	case result.Procs:
		split = func(r result.Row) (string, int) { return r.Row, r.Procs }
	case result.Sizes:
		several := severalProcs(t.rows)
		split = func(r result.Row) (string, int) {
			name, x := cutSize(r.Row)
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

// cutSize divides a row's name at its last word, which is a number. It returns
// -1 if it is none.
func cutSize(row string) (name string, size int) {
	i := strings.LastIndexByte(row, '-')
	size, err := strconv.Atoi(row[i+1:])
	if i < 0 || err != nil {
		return row, -1
	}
	return row[:i], size
}

func severalProcs(rows []result.Row) bool {
	return slices.ContainsFunc(rows, func(r result.Row) bool { return r.Procs != rows[0].Procs })
}

// rowName is how a row is called where rows differ in processors as well.
func rowName(row string, procs int, several bool) string {
	if !several {
		return row
	}
	return row + " (" + strconv.Itoa(procs) + ")"
}

func (c *chart) addBars(t table) {
	several := severalProcs(t.rows)
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
		c.X = append(c.X, thousands(x))
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
	// What is joined is joined from left to right.
	for _, l := range c.Lines {
		slices.SortStableFunc(l.Points, func(a, b point) int { return cmp.Compare(a.X, b.X) })
	}
}

// isOurs reports whether a row is about what this project offers, so that it can
// be told from the rest at a glance: own-..., or ...-heap and the like, with or
// without a size behind it.
func isOurs(row string) bool {
	name, _ := cutSize(row)
	words := strings.Split(name, "-")
	last := words[len(words)-1]
	return words[0] == "own" || slices.Contains([]string{"heap", "local", "arena", "dropin"}, last)
}

// point makes a point of a row, and enters the sources of its figures.
func (c *chart) point(r result.Row, name string, x int) point {
	p := point{
		Name: name, Ours: isOurs(r.Row), X: x,
		Ns: r.NsPerOp, Low: r.CI95Low, High: r.CI95High,
		Time: measured(r.NsPerOp), Interval: interval(r.CI95Low, r.CI95High),
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

// label says what a chart shows.
func label(t table, c chart) string {
	s := "Time on the clock"
	if t.Unit != "" {
		s = "Time for one " + t.Unit
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

// thousands writes n with its digits in groups of three.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
