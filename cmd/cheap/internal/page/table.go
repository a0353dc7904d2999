package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// A tableView is a table of the report as the template shows it. Empty columns are
// left out.
type tableView struct {
	ID, Title   string
	Lead, About string // the first sentences of what is measured, and the others
	Parts       []partView
	Notes       []result.Note
	Bars        []barView
	Sources     []sourceView

	HasProcs, HasVersus, HasPublished, HasCPU, HasCPUVersus, HasIntervals, HasNoise, HasResident, HasHeld, HasP99, HasGo bool
}

// A partView is a section of a table, with charts of its own.
type partView struct {
	ID      string
	Title   string // "" of the first part
	Caption string // of the charts, "" if it is that of the part before
	Charts  []chart
	Rows    []rowView
}

// A rowView is a row of a table.
type rowView struct {
	Name, ID       string // in words, and for the flag -run
	Procs          string
	Time, Interval string
	Versus         *versusView
	Published      []publishedView
	CPU            string
	CPUVersus      []versusView
	Resident       string // memory
	Held, P99      string
	Doubt          string // why the time says little
	Allocs, Bytes  string
	Starts         bool // the first row of its name
}

// A versusView is how a row compares with another one.
type versusView struct {
	Ratio, Interval string
	To              string // what distinguishes the other row, in words
	Noisy           bool
}

type publishedView struct{ Time, Source string }

// A barView is what is promised of a row.
type barView struct{ Row, Figure, To, Value, Bar, Verdict, Limit string }

// A sourceView is a source in the list under a table.
type sourceView struct {
	Name, Title, URL string
	Details          string // author, date and machine
}

// newTableView makes the view of a table, and its charts.
func newTableView(t table) (tableView, []chart) {
	v := tableView{
		ID: t.Name, Title: cmp.Or(t.Title, t.Name),
		HasProcs: result.MixesProcs(t.rows),
	}
	v.Lead, v.About = lead(t.About)
	var charts []chart
	for i, s := range result.Sections(t.rows) {
		part := partView{ID: t.Name, Title: s.Title}
		if i > 0 {
			part.ID += "-" + strconv.Itoa(i+1)
		}
		part.Charts = newCharts(part.ID, table{t.Table, s.Rows})
		if part.Caption = part.Charts[0].Label; i > 0 && part.Caption == v.Parts[i-1].Charts[0].Label {
			part.Caption = ""
		}
		charts = append(charts, part.Charts...)
		last := ""
		for _, r := range s.Rows {
			row := t.view(r)
			row.Starts = r.Row != last
			last = r.Row
			part.Rows = append(part.Rows, row)
		}
		v.Parts = append(v.Parts, part)
	}
	for _, r := range t.rows {
		row := t.view(r)
		v.HasVersus = v.HasVersus || row.Versus != nil
		v.HasNoise = v.HasNoise || row.Versus != nil && row.Versus.Noisy ||
			slices.ContainsFunc(row.CPUVersus, func(v versusView) bool { return v.Noisy })
		v.HasPublished = v.HasPublished || len(row.Published) > 0
		v.HasCPU = v.HasCPU || row.CPU != ""
		v.HasCPUVersus = v.HasCPUVersus || len(row.CPUVersus) > 0
		v.HasHeld = v.HasHeld || row.Held != ""
		v.HasP99 = v.HasP99 || row.P99 != ""
		v.HasResident = v.HasResident || row.Resident != ""
		v.HasIntervals = v.HasIntervals || row.Interval != ""
		v.HasGo = v.HasGo || row.Allocs != "0" || row.Bytes != "0"
		for _, b := range r.Bars {
			number := func(x float64) string { return figure.Exact(figure.Round(x, 3)) }
			v.Bars = append(v.Bars, barView{t.label(r.Row, r.Procs, v.HasProcs), b.Figure, t.words(b.To), number(b.Value), number(b.Bar), b.Verdict(), number(b.Limit)})
		}
	}
	v.Notes = result.Notes(t.rows)
	for i, n := range v.Notes {
		names := strings.Split(n.Rows, ", ")
		for k, name := range names {
			names[k] = t.words(name)
		}
		v.Notes[i].Rows = strings.Join(names, "; ")
	}
	for _, s := range t.Sources {
		v.Sources = append(v.Sources, newSourceView(s))
	}
	return v, charts
}

// leastLead is how many characters say what is measured: a shorter sentence is not alone.
const leastLead = 80

// lead divides a text into its first sentences and the others.
func lead(text string) (first, others string) {
	for others = text; len(first) < leastLead && others != ""; {
		sentence, rest, _ := strings.Cut(others, ". ")
		if rest != "" {
			sentence += ". "
		}
		first, others = first+sentence, rest
	}
	return strings.TrimSpace(first), others
}

// view makes the view of a row.
func (t table) view(r result.Row) rowView {
	v := rowView{
		Name: t.words(r.Row), ID: t.Name + "/" + r.Row, Procs: figure.Thousands(r.Procs),
		Time: measured(r.NsPerOp), Interval: interval(r.CI95Low, r.CI95High),
		Allocs: figure.Count(r.AllocsPerOp), Bytes: figure.Count(r.GoBytesPerOp),
	}
	if r.CPUNsPerOp > 0 {
		v.CPU = measured(r.CPUNsPerOp)
	}
	v.Doubt = doubt(r.Doubts)
	if r.Resident > 0 {
		v.Resident = together(figure.Bytes(r.Resident))
	}
	if r.Held > 0 {
		v.Held = figure.Times(r.Held)
	}
	if r.P99 > 0 {
		v.P99 = measured(r.P99)
	}
	for _, p := range r.Published {
		v.Published = append(v.Published, publishedView{published(p.Ns), p.Source})
	}
	if ratio := r.Versus; ratio != nil {
		versus := t.versus(r.Row, ratio)
		v.Versus = &versus
	}
	for _, ratio := range r.CPUVersus {
		v.CPUVersus = append(v.CPUVersus, t.versus(r.Row, &ratio))
	}
	return v
}

func (t table) versus(row string, ratio *result.Ratio) versusView {
	v := versusView{Ratio: figure.Times(ratio.Ratio), To: t.words(result.ShortTo(row, ratio.To)), Noisy: ratio.Noisy}
	if ratio.CI95Low != 0 || ratio.CI95High != 0 {
		v.Interval = together(strings.TrimSuffix(figure.Times(ratio.CI95Low), "×") + " – " + figure.Times(ratio.CI95High))
	}
	return v
}

// doubt says in words why a time says little.
func doubt(of []result.Doubt) string {
	var reasons []string
	for _, d := range of {
		switch d {
		case result.Waited:
			reasons = append(reasons, "Other programs had the processor for a part of the time.")
		case result.Unsteady:
			reasons = append(reasons, "The rounds differ by more than a quarter.")
		}
	}
	return strings.Join(reasons, " ")
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
