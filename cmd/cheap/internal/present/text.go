// Package present writes the reports of `cheap bench` and `cheap replay`: as text
// for people, as JSON, and in Go's benchmark format.
package present

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// Text writes a report for people, in lines as wide as the terminal unless a name is very
// long.
func Text(w io.Writer, r *result.Report, terminal Terminal) error {
	t := newTexter(terminal)
	t.head(r)
	for _, table := range r.Tables {
		if rows := r.RowsOf(table.Name); len(rows) > 0 {
			t.table(table, rows, r.Replay)
		}
	}
	if r.Replay {
		t.replayedAll(r)
	}
	t.foot(r)
	_, err := io.WriteString(w, t.out.String())
	return err
}

// A texter collects the text of a report.
type texter struct {
	out     strings.Builder
	p       painter
	columns int
}

func newTexter(terminal Terminal) *texter {
	return &texter{p: painter(terminal.Color), columns: terminal.columns()}
}

func (t *texter) line(s style, text string) {
	t.out.WriteString(t.p.paint(s, text))
	t.out.WriteByte('\n')
}

// note writes sentences.
func (t *texter) note(text string) { t.out.WriteString(t.hang("", "", text)) }

// gap writes an empty line, but for the first.
func (t *texter) gap() {
	if t.out.Len() > 0 {
		t.out.WriteByte('\n')
	}
}

// title writes the line that a table begins with.
func (t *texter) title(name, text string) {
	title := name
	if text != "" {
		title += ": " + text
	}
	rule := strings.Repeat("━", max(2, t.columns-4-length(title)))
	t.gap()
	t.out.WriteString(t.p.paint(dim, "━━") + " " + t.p.paint(bold, title) + " " + t.p.paint(dim, rule) + "\n")
}

// head writes what comes before the tables: what was found, what a reader must know about that, and
// how it was measured.
func (t *texter) head(r *result.Report) {
	t.headlines(r)
	t.gap()
	title := "What C memory costs in Go, measured by cheap bench"
	if r.Replay {
		title = "What real programs allocated, replayed by cheap replay"
	}
	t.line(bold, title)
	if r.Partial {
		t.warning("The run was interrupted. This is what was measured until then.")
	}
	for _, warning := range r.Warnings {
		t.warning(warning)
	}
	if doubtful := r.Doubtful(); doubtful != "" {
		t.warning(doubtful)
	}
	for _, line := range machineLines(&r.Machine) {
		t.note(line)
	}
	if r.Command != "" {
		t.note(r.Command + ", version " + r.Version)
	}
	t.out.WriteByte('\n')
	if r.Replay {
		t.replayLegend(r)
	} else {
		t.legend(r)
	}
}

// machineLines describes a machine in a few lines.
func machineLines(m *result.Machine) []string {
	var lines []string
	add := func(parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		if len(parts) > 0 {
			lines = append(lines, strings.Join(parts, ", "))
		}
	}
	platform, gogc, malloc, pages, cores, date := "", "", "", "", "", ""
	if m.OS != "" {
		platform = m.OS + "/" + m.Arch
	}
	if m.GOGC != "" {
		gogc = "GOGC=" + m.GOGC
	}
	if m.Malloc != "" {
		malloc = "C's malloc: " + m.Malloc
	}
	if m.HugePages != "" {
		pages = "transparent huge pages: " + m.HugePages
	}
	if m.Cores > 0 {
		cores = figure.Plural(m.Cores, "core")
	}
	if m.Date != "" {
		date = "measured on " + day(m.Date)
	}
	add(m.CPU, cores, platform)
	add(m.Go, gogc, malloc, pages)
	add(date)
	return lines
}

// day writes a date for people. A date that is not in the form of RFC 3339 stays
// as it is.
func day(date string) string {
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return date
	}
	return at.Format("2006-01-02 15:04 MST")
}

// legend explains the columns, those that the report has.
func (t *texter) legend(r *result.Report) {
	beside := has(r.Rows, isBeside)
	for _, f := range figureColumns {
		if has(r.Rows, f.known) || beside && f.head == "CPU" {
			t.explain(f.head, f.meaning)
		}
	}
	for _, mark := range []struct {
		name, meaning string
		known         func(*result.Row) bool
	}{
		{"!", "behind a time: other programs had the processor for a part of it, or the rounds differ by more than a quarter", isDoubtful},
		{"of …, ratio", "the time divided by that of another row, round by round: 2.00× takes twice as long; the other row is named in the head or beside the ratio", func(r *result.Row) bool { return r.Versus != nil && !isBeside(r) }},
		{"CPU of …", "processor time divided by that of the program on another allocator, round by round", isBeside},
		{"~", "behind a ratio: the rounds do not show which row is faster, because the machine was noisy or the rounds were few", isNoisy},
		{"published", "figures of the sources under the table: other machines, other versions of Go", isPublished},
	} {
		if has(r.Rows, mark.known) {
			t.explain(mark.name, mark.meaning)
		}
	}
}

// explain writes a word of the legend, and a text that begins at a column.
func (t *texter) explain(word, text string) {
	const at = 14
	lead := word + strings.Repeat(" ", max(0, at-length(word)))
	t.out.WriteString(t.p.paint(bold, word) + strings.TrimPrefix(t.hang(lead, strings.Repeat(" ", at), text), word))
}

// warning writes sentences that a reader should not miss.
func (t *texter) warning(text string) {
	for line := range strings.Lines(t.hang("", "", text)) {
		t.line(yellow, strings.TrimSuffix(line, "\n"))
	}
}

func (t *texter) table(table result.Table, rows []result.Row, replay bool) {
	t.title(table.Name, table.Title)
	about := table.About
	if table.Unit != "" {
		about = strings.TrimSpace(about + " Times are for one " + table.Unit + ".")
	}
	if about != "" {
		t.note(about)
	}
	if replay {
		t.replayed(rows)
		t.rowNotes(rows)
		return
	}
	if n := rows[0].Procs; n != 1 && !result.MixesProcs(rows) {
		t.note("On " + figure.Plural(n, "processor") + ".")
	}
	for _, s := range result.Sections(rows) {
		if s.Title != "" {
			t.out.WriteByte('\n')
			t.note(s.Title + ".")
		}
		t.lines(s.Rows)
	}
	t.promised(rows)
	t.rowNotes(rows)
	t.sources(table.Sources)
}

// rowNotes writes the notes of rows.
func (t *texter) rowNotes(rows []result.Row) {
	notes := result.Notes(rows)
	if len(notes) > 0 {
		t.out.WriteByte('\n')
	}
	for _, n := range notes {
		t.out.WriteString(t.hang("", "    ", n.Rows+": "+n.Text))
	}
}

func (t *texter) sources(sources []result.Source) {
	if len(sources) > 0 {
		t.out.WriteByte('\n')
	}
	for _, s := range sources {
		t.out.WriteString(t.p.paint(cyan, s.Name) + strings.TrimPrefix(t.hang(s.Name, "    ", ": "+sourceText(&s)), s.Name))
	}
}

// sourceText names a source in a sentence.
func sourceText(s *result.Source) string {
	text := s.Author
	if s.Title != "" {
		if text != "" {
			text += ", "
		}
		text += "“" + s.Title + "”"
	}
	if s.Date != "" {
		text += ", " + s.Date
	}
	text = strings.TrimPrefix(text, ", ")
	if s.Machine != "" {
		text += ". Machine: " + s.Machine
	}
	if s.URL != "" {
		text += ". " + s.URL
	}
	return text
}

func (t *texter) foot(r *result.Report) {
	if len(r.Rows) == 0 {
		t.line(plain, "Nothing was measured.")
	}
	if len(r.Notes) > 0 {
		t.title("notes", "")
	}
	for _, note := range r.Notes {
		t.out.WriteString(t.hang("- ", "  ", note))
	}
	t.headlines(r)
}
