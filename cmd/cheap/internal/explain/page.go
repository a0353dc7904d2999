package explain

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"strings"

	"github.com/cheapgo/cheap/internal/page/charts"
	"github.com/cheapgo/cheap/internal/page/figure"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed flame.js
	flameJS string
)

var pageTemplate = template.Must(template.New("explain").Funcs(template.FuncMap{
	"percent": figure.Percent,
}).Parse(charts.Head + pageHTML))

const (
	project     = "https://github.com/cheapgo/cheap"
	leastFrame  = 0.0005 // frames of the flame graph below that share are left out
	deepestPath = 60
)

// A view is what the template shows.
type view struct {
	Style   template.CSS
	Library template.JS
	Script  template.JS

	*Report
	Project  string
	Version  string
	Head     string
	Bars     []bar
	RestLine string
	Calls    string
	How      string
	Rows     []row
	Tips     []tip
	Flame    flame
}

// A bar is a dimension: its shares are beside each other.
type bar struct {
	Title string
	Parts []part
	Less  string // the names of the shares that are 0.0%
}

// A part is a share in a bar. Color is the number of a color of the style.
type part struct {
	Name    string
	Color   int
	Share   string
	Between string
	Width   template.CSS
}

// A row is a call site.
type row struct {
	Site, File, Purpose string
	Share               string
	Bar                 bar
}

// A tip is an advice.
type tip struct {
	Advice
	Before, After string
	URL           string
}

// A flame is the flame graph, for the script.
type flame struct {
	Names  []string `json:"names"`  // of the mechanisms
	Colors []int    `json:"colors"` // of the style
	Frames []flamed `json:"frames"`
}

// A flamed is a frame: where it begins and ends, how deep it is, its name, and the share of each
// mechanism in it.
type flamed struct {
	From  float64   `json:"from"`
	To    float64   `json:"to"`
	Depth int       `json:"depth"`
	Name  string    `json:"name"`
	Mix   []float64 `json:"mix"`
}

// colors are the colors of the mechanisms, and of the purposes.
var (
	mechanismColors = []int{2, 1, 3, 0, 4, 5, 7}
	purposeColors   = []int{6, 9, 8, 7}
)

// Page writes the report as a page with a flame graph. It needs no other file and no network.
func (r *Report) Page(w io.Writer, version string) error {
	v := view{
		Style:   template.CSS(figure.CSS + charts.CSS() + pageCSS),
		Library: template.JS(charts.Library()),
		Script:  template.JS(charts.Flame() + flameJS),
		Report:  r, Project: project, Version: version, Head: r.Headline(), RestLine: r.restLine() + " " + r.samplesLine(),
		Bars: []bar{
			newBar("By mechanism", r.Mechanisms, mechanismColors, 1),
			newBar("By purpose", r.Purposes, purposeColors, 1),
		},
	}
	if r.Calls != nil {
		v.Calls = r.callsLine()
	}
	if Of(r.Mechanisms, C).Share+Of(r.Mechanisms, Crossing).Share > 0 {
		v.How = r.calibrationLine()
	}
	sites, rest := r.mainSites()
	sites = append(sites, rest...)
	most := 0.0
	for _, s := range sites {
		most = max(most, s.Share)
	}
	for _, s := range sites {
		one := row{Site: shortName(s.Function), Share: figure.Percent(s.Share)}
		if s.File != "" {
			one.File = fmt.Sprintf("%s:%d", filepath.Base(filepath.ToSlash(s.File)), s.Line)
		} else {
			one.Site = s.Function
		}
		if s.Callee != "" {
			one.Site += " " + s.Callee
		}
		if s.Purpose != Rest {
			one.Purpose = s.Purpose
		}
		var shares []Share
		for i, share := range s.Mechanisms {
			shares = append(shares, Share{Name: mechanismNames[i].name, Share: share})
		}
		one.Bar = newBar("", shares, mechanismColors, most)
		v.Rows = append(v.Rows, one)
	}
	for _, a := range r.Advice {
		v.Tips = append(v.Tips, tip{a, figure.Percent(a.Now), figure.Percent(a.Expected), project + "/blob/main/" + a.Link})
	}
	v.Flame = r.flamePage()
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}

// leastPart is the smallest share that is not 0.0%, and has a part in a bar.
const leastPart = 0.0005

// newBar makes a bar that is as long as whole.
func newBar(title string, shares []Share, colors []int, whole float64) bar {
	b := bar{Title: title}
	var less []string
	for i, s := range shares {
		if s.Share < leastPart && s.between() == "" {
			less = append(less, s.Name)
			continue
		}
		b.Parts = append(b.Parts, part{
			Name: s.Name, Color: colors[i], Share: figure.Percent(s.Share), Between: s.between(),
			Width: template.CSS(fmt.Sprintf("width:%.3f%%", 100*s.Share/whole)),
		})
	}
	b.Less = strings.Join(less, ", ")
	return b
}

// flamePage lays the flame graph out.
func (r *Report) flamePage() flame {
	f := flame{Colors: mechanismColors}
	for _, n := range mechanismNames {
		f.Names = append(f.Names, n.name)
	}
	if r.flame != nil {
		f.add(r.flame, 0, 0)
	}
	return f
}

func (f *flame) add(n *node, from float64, depth int) {
	f.Frames = append(f.Frames, flamed{figure.Round(from, 6), figure.Round(from+n.Share, 6), depth, n.Name, rounded(n.Mix)})
	for _, c := range n.Children {
		if c.Share >= leastFrame && depth < deepestPath {
			f.add(c, from, depth+1)
		}
		from += c.Share
	}
}

func rounded(mix []float64) []float64 {
	var list []float64
	for _, share := range mix {
		list = append(list, figure.Round(share, 4))
	}
	return list
}
