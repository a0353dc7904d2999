// Package report writes what lab has measured: as text for people, as a page with charts, as JSON,
// and in Go's benchmark format.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
)

// A text collects the text of a report.
type text struct{ strings.Builder }

// Text writes a report for people.
func Text(w io.Writer, r *result.Report) error {
	var t text
	t.headlines(r)
	t.head(r)
	for _, table := range r.Tables {
		rows := r.RowsOf(table.Name)
		if len(rows) > 0 {
			t.table(table, rows)
		}
	}
	if len(r.Notes) > 0 {
		t.title("notes")
	}
	for _, note := range r.Notes {
		t.hang("- ", note)
	}
	t.headlines(r)
	_, err := io.WriteString(w, strings.TrimPrefix(t.String(), "\n"))
	return err
}

// hang writes a text in lines of at most 80 columns, if its words are shorter. The first one begins
// with lead, and the others are indented like it.
func (t *text) hang(lead, words string) {
	indent := utf8.RuneCountInString(lead)
	column, begins := indent, true
	t.WriteString(lead)
	for _, word := range strings.Fields(words) {
		n := utf8.RuneCountInString(word)
		if !begins && column+1+n > 80 {
			t.WriteString("\n" + strings.Repeat(" ", indent))
			column, begins = indent, true
		}
		if !begins {
			t.WriteByte(' ')
			column++
		}
		t.WriteString(word)
		column, begins = column+n, false
	}
	t.WriteByte('\n')
}

// title begins a part of the report.
func (t *text) title(words string) { t.WriteString("\n## " + words + "\n") }

// grid writes lines whose last cell, the name, is aligned to the left, and the others to the right.
func (t *text) grid(g *grid) {
	t.WriteByte('\n')
	w := tabwriter.NewWriter(t, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join(g.Heads[:len(g.Heads)-1], "\t")+"\t  "+g.Heads[len(g.Heads)-1])
	for _, l := range g.Lines {
		fmt.Fprintln(w, strings.Join(l.Cells, "\t")+"\t  "+l.Name)
	}
	w.Flush()
}

// headlines writes what the report has found, before its tables and at its end: the last lines
// are what a terminal shows.
func (t *text) headlines(r *result.Report) {
	all := headline(r)
	if len(all) > 0 {
		t.title("In short: what C memory costs here with cheap, and without it")
	}
	for _, f := range all {
		doubt := ""
		if f.Doubt {
			doubt = " " + doubtMark
		}
		t.hang(fmt.Sprintf("%-18s", f.Gains), f.What+": "+f.Ours+", "+f.Theirs+doubt)
	}
}

// head writes what comes before the tables: what a reader must know about them, how they were measured,
// and what the columns are.
func (t *text) head(r *result.Report) {
	t.WriteString("\nWhat C memory costs in Go\n")
	for _, s := range slices.Concat(warnings(r), machine(r)) {
		t.hang("", s)
	}
	t.WriteByte('\n')
	for _, c := range append(slices.Clone(columns),
		column{doubtMark, isDoubtful, nil, "before a time: other programs had the processor for a part of it, or the rounds differ by more than a quarter"},
		column{"CPU of …", func(r *result.Row) bool { return len(r.CPUVersus) > 0 }, nil, "processor time divided by that of the program on another allocator, round by round"},
		column{noisyMark, isNoisy, nil, "before a ratio: the rounds do not show which row is faster, because the machine was noisy or the rounds were few"}) {
		if has(r.Rows, c.known) {
			t.hang(c.head+strings.Repeat(" ", max(1, 14-utf8.RuneCountInString(c.head))), c.meaning)
		}
	}
}

// warnings are what a reader must know before the figures.
func warnings(r *result.Report) (all []string) {
	if r.Partial {
		all = append(all, "The run was interrupted. This is what was measured until then.")
	}
	all = append(all, r.Warnings...)
	if doubtful := r.Doubtful(); doubtful != "" {
		all = append(all, doubtful)
	}
	return all
}

// machine says on what and how the rows were measured, in a few lines.
func machine(r *result.Report) []string {
	m := &r.Machine
	facts := []string{m.CPU}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, name+value)
		}
	}
	if m.Cores > 0 {
		add("", figure.Plural(m.Cores, "core"))
	}
	add("", m.OS+"/"+m.Arch)
	lines := []string{strings.Join(facts, ", ")}
	facts = []string{m.Go}
	add("GOGC=", m.GOGC)
	add("C's malloc: ", m.Malloc)
	add("transparent huge pages: ", m.HugePages)
	lines = append(lines, strings.Join(facts, ", "), "measured on "+m.Date)
	if r.Command != "" {
		lines[2] += " by " + r.Command
	}
	return lines
}

// about says what the rows of a table are.
func about(table *result.Table) string {
	if table.Unit == "" {
		return table.About
	}
	return strings.TrimSpace(table.About + " Times are for one " + table.Unit + ".")
}

func (t *text) table(table result.Table, rows []result.Row) {
	t.title(table.Name + ": " + table.Title)
	if words := about(&table); words != "" {
		t.hang("", words)
	}
	for _, s := range result.Sections(rows) {
		if s.Title != "" {
			t.WriteString("\n" + s.Title + ".\n")
		}
		t.grid(rowsGrid(s.Rows))
	}
	if g := promises(rows); g != nil {
		t.WriteString("\nWhat is promised: a figure of a row, or its part of that of another row, stays\nunder a bar. Above the limit it is worse than it was.\n")
		t.grid(g)
	}
	for i, n := range result.Notes(rows) {
		t.gapBefore(i)
		t.hang("- ", n.Rows+": "+n.Text)
	}
	published := 0
	for _, l := range rowsGrid(rows).Lines {
		if l.Published != "" {
			if published == 0 {
				t.WriteString("\nPublished elsewhere:\n")
			}
			published++
			t.hang("- ", l.Name+": "+l.Published)
		}
	}
	for i, s := range table.Sources {
		t.gapBefore(i)
		t.hang("- ", s.Name+": "+source(&s))
	}
}

// gapBefore writes an empty line before the first of several.
func (t *text) gapBefore(i int) {
	if i == 0 {
		t.WriteByte('\n')
	}
}

// source names a source in a sentence.
func source(s *result.Source) string {
	machine := s.Machine
	if machine != "" {
		machine = "machine: " + machine
	}
	return strings.Join(slices.DeleteFunc([]string{s.Author, s.Title, s.Date, machine, s.URL}, func(s string) bool { return s == "" }), ", ")
}
