package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strconv"

	"github.com/cheapgo/cheap/internal/page/charts"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed charts.js
	chartsJS string
)

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"source": source}).Parse(charts.Head + pageHTML))

// A view is what the template shows: a report with what is made of it.
type view struct {
	*result.Report
	Style           template.CSS
	Library, Script template.JS

	Headline []finding
	Warnings []string
	Facts    []string // of the machine
	Tables   []tableView
	Charts   []*chart
}

// A tableView is a table as the template shows it.
type tableView struct {
	result.Table
	About    string
	Parts    []part
	Promises *grid
	Notes    []result.Note
}

// A part is a section of a table.
type part struct {
	Title string
	Chart *chart
	Grid  *grid
}

// Page writes a report as one HTML file, which needs no other file and no network: it has its style, its
// scripts, the figures, and Apache ECharts, which draws the charts (package charts). Without JavaScript,
// only the charts are missing.
func Page(w io.Writer, r *result.Report) error {
	v := view{
		Report: r, Style: template.CSS(figure.CSS + pageCSS), Library: template.JS(charts.Library()), Script: template.JS(chartsJS),
		Headline: headline(r), Warnings: warnings(r), Facts: machine(r),
	}
	for _, table := range r.Tables {
		rows := r.RowsOf(table.Name)
		if len(rows) == 0 {
			continue
		}
		t := tableView{Table: table, About: about(&table), Promises: promises(rows), Notes: result.Notes(rows)}
		for i, s := range result.Sections(rows) {
			p := part{s.Title, newChart(&table, s.Rows), rowsGrid(s.Rows)}
			p.Chart.ID = table.Name + "-" + strconv.Itoa(i)
			t.Parts = append(t.Parts, p)
			v.Charts = append(v.Charts, p.Chart)
		}
		v.Tables = append(v.Tables, t)
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, v); err != nil {
		return err
	}
	_, err := page.WriteTo(w)
	return err
}

// A chart is what charts.js draws of a part of a table: a bar for each row, or a line over sizes or
// processors.
type chart struct {
	ID     string   `json:"id"`
	What   string   `json:"-"` // what is drawn
	Lines  bool     `json:"lines"`
	Unit   string   `json:"unit"` // of the figures: "ns", "bytes" or "times"
	Names  []string `json:"names"`
	Over   string   `json:"over"` // what the names of lines are
	Series []series `json:"series"`
}

// series are figures of one color. The figures of others are drawn as points.
type series struct {
	Name      string  `json:"name"`
	Published bool    `json:"published"`
	Points    []point `json:"points"`
}

type point struct {
	At    int     `json:"at"` // the name
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

func newChart(table *result.Table, rows []result.Row) *chart {
	c := &chart{Unit: "ns", What: "Time for one " + table.Unit}
	of := func(r *result.Row) (float64, string) { return r.NsPerOp, figure.Duration(r.NsPerOp) }
	switch {
	case table.Chart == result.Bytes && has(rows, func(r *result.Row) bool { return r.Resident > 0 }):
		c.What, c.Unit, of = "Resident memory", "bytes", func(r *result.Row) (float64, string) { return r.Resident, figure.Bytes(r.Resident) }
	case table.Chart == result.Held && has(rows, func(r *result.Row) bool { return r.Held > 0 }):
		c.What, c.Unit, of = "What is held, as a multiple of what live objects own", "times", func(r *result.Row) (float64, string) { return r.Held, figure.Times(r.Held) }
	}
	several := result.MixesProcs(rows)
	place := func(r *result.Row) (series, name string) {
		if several {
			return "measured here", r.Row + " on " + figure.Thousands(r.Procs)
		}
		return "measured here", r.Row
	}
	switch {
	case table.Chart == result.Procs && several:
		c.Lines, c.Over = true, "processors"
		place = func(r *result.Row) (string, string) { return r.Row, figure.Thousands(r.Procs) }
	case table.Chart == result.Sizes && !several && !has(rows, func(r *result.Row) bool { _, _, ok := result.SplitNumber(r.Row); return !ok }):
		c.Lines, c.Over = true, table.Over
		place = func(r *result.Row) (string, string) {
			series, n, _ := result.SplitNumber(r.Row)
			return series, figure.Thousands(n)
		}
	}
	for i := range rows {
		in, name := place(&rows[i])
		at := slices.Index(c.Names, name)
		if at < 0 {
			at, c.Names = len(c.Names), append(c.Names, name)
		}
		value, text := of(&rows[i])
		c.add(in, false, point{at, value, text})
		if c.Unit == "ns" {
			for _, p := range rows[i].Published {
				c.add(p.Source, true, point{at, p.Ns, figure.Exact(p.Ns) + " ns"})
			}
		}
	}
	return c
}

func (c *chart) add(name string, published bool, p point) {
	i := slices.IndexFunc(c.Series, func(s series) bool { return s.Name == name && s.Published == published })
	if i < 0 {
		i, c.Series = len(c.Series), append(c.Series, series{Name: name, Published: published})
	}
	c.Series[i].Points = append(c.Series[i].Points, p)
}
