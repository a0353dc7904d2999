// Package page writes a report of `cheap bench` as one HTML file with charts.
//
// The file needs no other file and no network. It contains its style, its script,
// the figures, and Apache ECharts, which draws the charts in the browser
// (package charts). Go decides what is drawn and
// writes the tables: without JavaScript, only the charts are missing. charts.js
// decides how the charts look.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/internal/charts"
	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed charts.js
	chartsJS string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// A view is what the template shows.
type view struct {
	Style   template.CSS
	Library template.JS
	Script  template.JS

	Summary string // one line
	InShort []card
	Kind    Kind
	Project string // its address
	Version string
	Command string
	Warns   []string
	Facts   []fact // of the machine
	Partial bool
	Doubts  string // how many rows are doubtful
	Notes   []string
	Tables  []tableView
	Charts  []chart // of the tables, for the script
}

// A card is a finding, with a bar for each side.
type card struct {
	headline.Finding
	Bars []bar
}

type bar struct {
	headline.Side
	Ours  bool
	Width template.CSS
}

func cards(r *result.Report) (all []card) {
	for _, f := range headline.Of(r) {
		c := card{Finding: f}
		for i, s := range []headline.Side{f.Ours, f.Theirs} {
			c.Bars = append(c.Bars, bar{s, i == 0, template.CSS(fmt.Sprintf("width:%.1f%%", 100*f.Share(s)))})
		}
		all = append(all, c)
	}
	return all
}

// A fact is a property of the machine.
type fact struct{ Name, Value string }

// project is the address of the project.
const project = "https://github.com/cheapgo/cheap"

// A Kind says which of the runs a page is of. A page is replaced by one of its own kind
// only.
type Kind string

// The kinds.
const (
	Whole Kind = "whole" // all tables, with the settings of the command
	Quick Kind = "quick" // the same in less time
	Part  Kind = "part"  // some rows, other settings, or a run that was interrupted
)

// KindOf returns the kind of a page from its first bytes, "" if it is no page of
// `cheap bench`.
func KindOf(head []byte) Kind {
	_, rest, _ := bytes.Cut(head, []byte(`<meta name="cheap-bench" content="`))
	kind, _, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		return ""
	}
	return Kind(kind)
}

// Write writes r to w as an HTML page. If the page cannot be made, nothing is
// written.
func Write(w io.Writer, r *result.Report, kind Kind) error {
	v := view{
		Style:   template.CSS(figure.CSS + pageCSS),
		Library: template.JS(charts.Library()),
		Script:  template.JS(chartsJS),
		Summary: summary(r.Machine),
		InShort: cards(r),
		Kind:    kind,
		Project: project,
		Version: r.Version,
		Command: r.Command,
		Warns:   r.Warnings,
		Facts:   facts(r.Machine),
		Partial: r.Partial,
		Doubts:  r.Doubtful(),
		Notes:   r.Notes,
	}
	for _, of := range ordered(r.Tables) {
		t := table{of, r.RowsOf(of.Name)}
		if len(t.rows) == 0 {
			continue
		}
		of, charts := newTableView(t)
		v.Charts = append(v.Charts, charts...)
		v.Tables = append(v.Tables, of)
	}
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, v); err != nil {
		return err
	}
	_, err := page.WriteTo(w)
	return err
}

// ordered returns tables in the order of the page: first those that the cards are of.
func ordered(tables []result.Table) []result.Table {
	var first []string
	for _, row := range headline.Rows() {
		table, _, _ := strings.Cut(row, "/")
		first = append(first, table)
	}
	place := func(t result.Table) int {
		if i := slices.Index(first, t.Name); i >= 0 {
			return i
		}
		return len(first)
	}
	return slices.SortedStableFunc(slices.Values(tables), func(a, b result.Table) int { return place(a) - place(b) })
}

// A table is a table of the report with its rows.
type table struct {
	result.Table
	rows []result.Row
}
