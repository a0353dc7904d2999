// Package heappage writes what a program had in its C heap, over time and by stack, as one HTML file.
//
// The file needs no other file and no network. Go writes the verdict, the places and the sums; page.js draws the
// chart over time, and a flame graph of what is asked for:
//
//	in use at the end         InUse
//	in use at the peak        Peak
//	old                       of each stack the less of what was in use after nine tenths of the time, and at the end
//	between two moments       what is in use more at the second than at the first
//	temporary                 Allocated - InUse
//	allocated                 Allocated
package heappage

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/page/charts"
	"github.com/cheapgo/cheap/internal/page/figure"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

var pageTemplate = template.Must(template.New("heap").Funcs(template.FuncMap{
	"bytes":  func(n int64) string { return figure.Bytes(float64(n)) },
	"plural": func(n int64, what string) string { return figure.Plural(int(n), what) },
}).Parse(charts.Head + pageHTML))

// A Recording is what the page shows. Bytes and calls are estimates if they come from samples.
type Recording struct {
	Program string // its name
	Version string // of the command, or ""
	Verdict string
	Do      string   // what the verdict says is to be done, or ""
	Facts   []string // sentences: how much was allocated, how it was sampled
	Rate    string   // how sure the numbers are
	Runs    bool     // the program runs on: the end is now, and what was in use at the peak is not known

	Places  []Place
	Series  []Series // of the points, from below
	Points  []Point  // in the order of their times
	Moments []Moment // in the order of their times; the last one is the end
	Stacks  []Stack

	// Renewed is how many bytes were freed that are of no stack, as they were allocated before the recording began. Growth
	// of no more than that may be a full cache that renews itself.
	Renewed int64
}

// A Place is a line of the program that has bytes in use.
type Place struct {
	Name   string
	By     string // the function of a library or of C that it has called, or ""
	Bytes  int64
	Blocks int64
	At     []int64 // bytes in use, by moment, or nil
	Caller string  // the line that has called the place, or two with their shares, or ""
	Labels string  // of three quarters of the bytes, as of a Stack, or ""
	Grew   string  // by how much and since when, if that has grown until the end; Rank sets it

	Follows bool // the place before it is of the same function; Rank sets it

	more int64 // the bytes by which it has grown
}

// Function returns the function of the place, which the name begins with.
func (p Place) Function() string { return strings.TrimSuffix(p.Name, " "+p.Line()) }

// Line returns the file and the line with which the name ends, or "".
func (p Place) Line() string {
	if i := strings.LastIndexByte(p.Name, ' '); i > 0 && strings.Contains(p.Name[i:], ":") {
		return p.Name[i+1:]
	}
	return ""
}

// A Series is a part of the resident memory over time.
type Series struct {
	Name  string
	Color int // of the style
}

// A Point says what the resident memory was for at a moment.
type Point struct {
	At    time.Duration // since the first moment
	Bytes []int64       // of each series
}

// A Moment is one at which the bytes in use of all stacks are known. Two of them can be compared.
type Moment struct {
	At time.Duration
}

// Labels returns the library of a sample of a profile, and the labels of its goroutine, such as "route=/a".
func Labels(of map[string][]string) (library string, all []string) {
	for key, values := range of {
		for i, v := range values {
			if key == "library" && i == 0 {
				library = v
				continue
			}
			all = append(all, key+"="+v)
		}
	}
	slices.Sort(all)
	return library, all
}

// A Stack has allocated.
type Stack struct {
	Frames  []string // functions, the outermost first
	Library string
	Thread  string
	Labels  string // of the goroutine, such as "route=/a tenant=7", or ""

	Allocated int64 // bytes since the program began
	InUse     int64 // bytes at the end
	Peak      int64 // bytes when all stacks together had the most

	At []int64 // bytes in use, by moment. Those of the first moments may be missing: they are 0, and the last ones are there
}

// most is the largest number that a stack has in a flame graph.
func (s *Stack) most() int64 {
	n := max(s.Allocated, s.InUse, s.Peak)
	for _, b := range s.At {
		n = max(n, b)
	}
	return n
}

const (
	mostStacks = 2000 // in the page; the others are one stack for each library
	mostFrames = 60   // of a stack, from the outermost on
)

const otherStacks = "[other stacks]"

// few returns at most mostStacks stacks and those that stand for the others, of mostFrames frames at most.
func few(all []Stack, moments int) []Stack {
	all = slices.Clone(all)
	for i := range all {
		s := &all[i]
		s.Frames = s.Frames[:min(len(s.Frames), mostFrames)]
		s.At = slices.Concat(make([]int64, max(moments-len(s.At), 0)), s.At)
	}
	slices.SortStableFunc(all, func(x, y Stack) int { return cmp.Compare(y.most(), x.most()) })
	if len(all) <= mostStacks {
		return all
	}
	rest := map[string]int{} // by library, in kept
	kept := all[:mostStacks:mostStacks]
	for _, s := range all[mostStacks:] {
		i, ok := rest[s.Library]
		if !ok {
			i = len(kept)
			rest[s.Library] = i
			kept = append(kept, Stack{Frames: []string{otherStacks}, Library: s.Library, Thread: otherStacks, At: make([]int64, moments)})
		}
		o := &kept[i]
		o.Allocated, o.InUse, o.Peak = o.Allocated+s.Allocated, o.InUse+s.InUse, o.Peak+s.Peak
		for m, n := range s.At {
			o.At[m] += n
		}
	}
	return kept
}

// ofCgo matches the functions that cgo writes between Go and C. A graph is half as deep without them.
var ofCgo = regexp.MustCompile(`^_cgo_[0-9a-f]+_C2?func_|\._C2?func_`)

// data is what the script gets. Names stand for themselves once, and others are numbers of them.
type data struct {
	Names  []string   `json:"names"`
	Stacks []dataOf   `json:"stacks"`
	Times  []float64  `json:"times"` // of the moments, in seconds
	Series [][]int64  `json:"series"`
	Points []float64  `json:"points"` // times of the series
	Of     []seriesOf `json:"of"`
}

type seriesOf struct {
	Name  string `json:"name"`
	Color int    `json:"color"`
}

type dataOf struct {
	Frames  []int   `json:"f"`
	Library int     `json:"l"`
	Thread  int     `json:"t"`
	Labels  int     `json:"g"`
	Values  []int64 `json:"v"` // allocated, in use, at the peak
	At      []int64 `json:"a"` // by moment
}

func (r *Recording) data() data {
	d := data{Names: []string{}, Of: []seriesOf{}, Stacks: []dataOf{}, Times: []float64{}, Points: []float64{}, Series: make([][]int64, len(r.Series))}
	for i, of := range r.Series {
		d.Of = append(d.Of, seriesOf(of))
		d.Series[i] = []int64{}
	}
	index := map[string]int{}
	name := func(s string) int {
		i, ok := index[s]
		if !ok {
			i = len(d.Names)
			index[s] = i
			d.Names = append(d.Names, s)
		}
		return i
	}
	for _, m := range r.Moments {
		d.Times = append(d.Times, thousandths(m.At))
	}
	for _, s := range few(r.Stacks, len(r.Moments)) {
		of := dataOf{
			Frames: []int{}, Library: name(s.Library), Thread: name(s.Thread), Labels: name(cmp.Or(s.Labels, "no label")),
			Values: []int64{s.Allocated, s.InUse, s.Peak}, At: s.At,
		}
		for i, f := range s.Frames {
			if i == 0 || !ofCgo.MatchString(f) {
				of.Frames = append(of.Frames, name(f))
			}
		}
		d.Stacks = append(d.Stacks, of)
	}
	for _, p := range r.Points {
		d.Points = append(d.Points, thousandths(p.At))
		for i, n := range p.Bytes {
			d.Series[i] = append(d.Series[i], n)
		}
	}
	return d
}

// thousandths returns a time in seconds, to a thousandth: a program may end after three.
func thousandths(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// A view is what the template shows.
type view struct {
	*Recording
	Style           template.CSS
	Library, Script template.JS
	Project         string
	Data            data
	HasLabels       bool
	HasGrown        bool     // any place has
	Lines           []string // of the places
}

// Write writes the page.
func (r *Recording) Write(w io.Writer) error {
	v := view{
		Recording: r, Style: template.CSS(figure.CSS + charts.CSS() + pageCSS), Library: template.JS(charts.Library()), Script: template.JS(charts.Flame() + pageJS),
		Project: "https://github.com/cheapgo/cheap", Data: r.data(),
		HasGrown:  slices.ContainsFunc(r.Places, func(p Place) bool { return p.Grew != "" }),
		HasLabels: slices.ContainsFunc(r.Stacks, func(s Stack) bool { return s.Labels != "" }),
	}
	for _, p := range r.Places {
		v.Lines = append(v.Lines, r.line(p))
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}
