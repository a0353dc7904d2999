// Package page writes a report of `cheap bench` as one HTML file with charts.
//
// The file needs no other file and no network. It contains its style, its script,
// the figures, and Apache ECharts, which draws the charts in the browser
// (echarts/README.md says how that file was made). Go decides what is drawn and
// writes the tables: without JavaScript, only the charts are missing. charts.js
// decides how the charts look.
package page

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed charts.js
	chartsJS string
	//go:embed echarts/echarts.min.js
	echartsJS string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// A view is what the template shows.
type view struct {
	Style   template.CSS
	Library template.JS
	Script  template.JS

	Summary string // one line
	Facts   []fact // of the machine
	Partial bool
	Notes   []string
	Tables  []tableView
	Charts  []chart // of the tables, for the script
}

// A fact is a property of the machine.
type fact struct{ Name, Value string }

// Write writes r to w as an HTML page. If the page cannot be made, nothing is
// written.
func Write(w io.Writer, r *result.Report) error {
	v := view{
		Style:   template.CSS(pageCSS),
		Library: template.JS(echartsJS),
		Script:  template.JS(chartsJS),
		Summary: summary(r.Machine),
		Facts:   facts(r.Machine),
		Partial: r.Partial,
		Notes:   r.Notes,
	}
	for _, of := range r.Tables {
		t := table{of, r.RowsOf(of.Name)}
		if len(t.rows) == 0 {
			continue
		}
		c := newChart(t)
		v.Charts = append(v.Charts, c)
		v.Tables = append(v.Tables, newTableView(t, c.Label))
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, v); err != nil {
		return err
	}
	_, err := page.WriteTo(w)
	return err
}

// A table is a table of the report with its rows.
type table struct {
	result.Table
	rows []result.Row
}
