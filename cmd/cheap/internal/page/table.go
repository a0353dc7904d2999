package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// A tableView is a table of the report as the template shows it. Columns in
// which no row has anything are left out.
type tableView struct {
	ID, Title, About string
	Caption          string // of the chart
	Rows             []rowView
	Notes            []noteView
	Profiles         []profileView
	Sources          []sourceView

	HasProcs, HasVersus, HasPublished, HasCPU, HasIntervals, HasNoise bool
}

// A rowView is a row of a table.
type rowView struct {
	Name, Procs    string
	Time, Interval string
	Versus         *versusView
	Published      []publishedView
	CPU            string
	Allocs, Bytes  string
	Starts         bool // it is the first of those of its name
}

// A versusView is how a row compares with another one.
type versusView struct {
	Ratio, Interval string
	To, ShortTo     string // the other row
	Noisy           bool
}

type publishedView struct{ Time, Source string }

// A noteView is what is to be known about some rows.
type noteView struct{ Rows, Text string }

// notesOf returns the notes of rows, each once.
func notesOf(rows []result.Row) []noteView {
	var texts []string
	names := make(map[string][]string)
	for _, r := range rows {
		if r.Note == "" {
			continue
		}
		if names[r.Note] == nil {
			texts = append(texts, r.Note)
		}
		if !slices.Contains(names[r.Note], r.Row) {
			names[r.Note] = append(names[r.Note], r.Row)
		}
	}
	var notes []noteView
	for _, text := range texts {
		notes = append(notes, noteView{strings.Join(names[text], ", "), text})
	}
	return notes
}

// A profileView is where the CPU time of a row went.
type profileView struct {
	Row    string
	Shares []shareView
}

type shareView struct{ Function, Share string }

// A sourceView is a source in the list under a table.
type sourceView struct {
	Name, Title, URL string
	Details          string // author, date and machine
}

func newTableView(t table, caption string) tableView {
	v := tableView{
		ID: t.Name, Title: cmp.Or(t.Title, t.Name), About: t.About,
		Caption:  caption,
		HasProcs: severalProcs(t.rows),
	}
	last := ""
	for _, r := range t.rows {
		row := newRowView(r)
		row.Starts = r.Row != last
		last = r.Row
		v.Rows = append(v.Rows, row)
		v.HasVersus = v.HasVersus || row.Versus != nil
		v.HasNoise = v.HasNoise || row.Versus != nil && row.Versus.Noisy
		v.HasPublished = v.HasPublished || len(row.Published) > 0
		v.HasCPU = v.HasCPU || row.CPU != ""
		v.HasIntervals = v.HasIntervals || row.Interval != ""
		if len(r.Profile) > 0 {
			v.Profiles = append(v.Profiles, newProfileView(rowName(r.Row, r.Procs, v.HasProcs), r.Profile))
		}
	}
	v.Notes = notesOf(t.rows)
	for _, s := range t.Sources {
		v.Sources = append(v.Sources, newSourceView(s))
	}
	return v
}

func newRowView(r result.Row) rowView {
	v := rowView{
		Name: r.Row, Procs: thousands(r.Procs),
		Time: measured(r.NsPerOp), Interval: interval(r.CI95Low, r.CI95High),
		Allocs: count(r.AllocsPerOp), Bytes: count(r.GoBytesPerOp),
	}
	if r.CPUNsPerOp > 0 {
		v.CPU = measured(r.CPUNsPerOp)
	}
	for _, p := range r.Published {
		v.Published = append(v.Published, publishedView{published(p.Ns), p.Source})
	}
	if ratio := r.Versus; ratio != nil {
		v.Versus = &versusView{Ratio: times(ratio.Ratio), To: ratio.To, ShortTo: shortTo(r.Row, ratio.To), Noisy: ratio.Noisy}
		if ratio.CI95Low != 0 || ratio.CI95High != 0 {
			v.Versus.Interval = fixed(ratio.CI95Low, 3) + "\u00a0–\u00a0" + fixed(ratio.CI95High, 3)
		}
	}
	return v
}

// shortTo returns the words of a row's name that tell it from the row beside
// which it is named. Words that both end or begin with are left out.
func shortTo(row, to string) string {
	a, b := strings.Split(row, "-"), strings.Split(to, "-")
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if len(b) == 0 {
		return to
	}
	return strings.Join(b, "-")
}

func newProfileView(row string, shares []result.Share) profileView {
	v := profileView{Row: row}
	for _, s := range shares {
		v.Shares = append(v.Shares, shareView{s.Function, percent(s.Share)})
	}
	return v
}

func newSourceView(s result.Source) sourceView {
	machine := s.Machine
	if machine != "" {
		machine = "machine: " + machine
	}
	known := []string{s.Author, s.Date, machine}
	known = slices.DeleteFunc(known, func(s string) bool { return s == "" })
	return sourceView{
		Name: s.Name, Title: cmp.Or(s.Title, s.Name), URL: s.URL,
		Details: strings.Join(known, ", "),
	}
}
