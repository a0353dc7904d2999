package present

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// Text writes a report for people, in lines as wide as look says unless a name is very
// long.
func Text(w io.Writer, r *result.Report, look Look) error {
	t := newTexter(look)
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

func newTexter(look Look) *texter { return &texter{p: painter(look.Color), columns: look.columns()} }

func (t *texter) line(s style, text string) {
	t.out.WriteString(t.p.paint(s, text))
	t.out.WriteByte('\n')
}

// note writes sentences.
func (t *texter) note(text string) { t.out.WriteString(t.hang("", "", text)) }

// title writes the line that a table begins with.
func (t *texter) title(name, text string) {
	title := name
	if text != "" {
		title += ": " + text
	}
	rule := strings.Repeat("━", max(2, t.columns-4-length(title)))
	t.out.WriteString("\n" + t.p.paint(dim, "━━") + " " + t.p.paint(bold, title) + " " + t.p.paint(dim, rule) + "\n")
}

func (t *texter) head(r *result.Report) {
	title := "What C memory costs in Go, measured by cheap bench"
	if r.Replay {
		title = "What real programs allocated, replayed by cheap replay"
	}
	t.line(bold, title)
	for _, line := range machineLines(&r.Machine) {
		t.note(line)
	}
	if r.Command != "" {
		t.note(r.Command + ", version " + r.Version)
	}
	if r.Partial {
		t.line(yellow, "The run was interrupted. This is what was measured until then.")
	}
	for _, warning := range r.Warnings {
		t.warning(warning)
	}
	if doubtful := r.Doubtful(); doubtful != "" {
		t.warning(doubtful)
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
	has := func(f func(*result.Row) bool) bool { return slices.ContainsFunc(r.Rows, is(f)) }
	lines := make(map[string]bool) // tables with a line for each row, which have more columns
	for _, table := range r.Tables {
		lines[table.Name] = !slices.Contains([]result.Chart{result.Procs, result.Sizes, result.Peers}, table.Chart)
	}
	hasLine := func(f func(*result.Row) bool) bool {
		return has(func(row *result.Row) bool { return lines[row.Table] && f(row) })
	}
	entry := t.explain
	beside := has(func(row *result.Row) bool { return len(row.CPUVersus) > 0 })
	if !beside || len(r.Tables) > 1 {
		entry("time", "wall-clock time of one operation: the median of all rounds")
		if has(isDoubtful) {
			entry("!", "behind a time: other programs had the processor for a part of it, or the rounds differ by more than a quarter")
		}
		if has(knowsSpread) {
			entry("±", spreadMeans)
		}
	}
	if beside || hasLine(cpuMatters) {
		entry("CPU", "processor time of the whole process for one operation, in all threads")
	}
	if beside {
		entry("CPU of …", "the same divided by that of another allocator, round by round")
	}
	if has(isResident) {
		entry("resident", "the most memory of the process during a round, less what it had before")
	}
	if has(holds) {
		entry("held", "resources of C that live for each that a live object owns, when what is unreachable has been collected")
	}
	if has(knowsP99) {
		entry("p99", "one operation in a hundred takes longer")
	}
	if hasLine(allocates) {
		entry("allocs, B", "allocations in the Go heap, and their bytes, for one operation")
	}
	if has(func(r *result.Row) bool { return r.Versus != nil }) && (!beside || len(r.Tables) > 1) {
		entry("of …, ratio", "the time divided by that of another row, round by round: 2.00× takes twice as long; "+
			"the other row is named in the head or beside the ratio, or its line says base")
	}
	if has(isNoisy) {
		entry("~", "behind a ratio: the rounds do not show which row is faster, because the machine was noisy or the rounds were few")
	}
	if has(func(r *result.Row) bool { return len(r.Published) > 0 }) {
		entry("published", "figures of the sources under the table, in ns: other machines, other versions of Go")
	}
}

// explain writes a word of the legend.
func (t *texter) explain(word, text string) { t.entry(word, 14, text) }

// spreadMeans explains the column ±.
const spreadMeans = "how far the median is from the farther bound of its 95 % confidence interval"

// entry writes a word, and a text that begins at a column.
func (t *texter) entry(word string, at int, text string) {
	lead := word + strings.Repeat(" ", max(0, at-length(word)))
	t.out.WriteString(t.p.paint(bold, word) + strings.TrimPrefix(t.hang(lead, strings.Repeat(" ", at), text), word))
}

func knowsSpread(r *result.Row) bool { return r.CI95High > 0 }

// allocates reports whether a row allocates in the Go heap. Less than half a byte
// is the runtime's own.
func allocates(r *result.Row) bool { return r.AllocsPerOp >= 0.005 || r.GoBytesPerOp >= 0.5 }

// doubtMark stands behind a doubtful time.
const doubtMark = " !"

func isDoubtful(r *result.Row) bool { return len(r.Doubts) > 0 }

// timeCell writes the time of a row, and marks it if it is doubtful.
func timeCell(r *result.Row) cell {
	if isDoubtful(r) {
		return cell{figure.Duration(r.NsPerOp) + doubtMark, yellow}
	}
	return cell{figure.Duration(r.NsPerOp), plain}
}

// warning writes sentences that a reader should not miss.
func (t *texter) warning(text string) {
	for line := range strings.Lines(t.hang("", "", text)) {
		t.line(yellow, strings.TrimSuffix(line, "\n"))
	}
}

// isResident reports whether the resident memory of a row is known.
func isResident(r *result.Row) bool { return r.Resident > 0 }

// holds reports whether it is known what the live objects of a row hold.
func holds(r *result.Row) bool { return r.Held > 0 }

// knowsP99 reports whether the row has single operations that were timed.
func knowsP99(r *result.Row) bool { return r.P99 > 0 }

func isNoisy(r *result.Row) bool {
	return r.Versus != nil && r.Versus.Noisy || slices.ContainsFunc(r.CPUVersus, func(v result.Ratio) bool { return v.Noisy })
}

// cpuMatters reports whether a row's processor time differs from its time: by work
// in other threads, or by waiting.
func cpuMatters(r *result.Row) bool {
	if r.CPUNsPerOp <= 0 {
		return false
	}
	ratio := r.CPUNsPerOp / r.NsPerOp
	return ratio < 0.9 || ratio > 1.1
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
	switch {
	case replay:
		t.replayed(rows)
	case table.Chart == result.Procs:
		t.pivot(rows, procsAxis)
	case table.Chart == result.Sizes:
		t.sizes(table, rows)
	case table.Chart == result.Peers:
		t.procsOf(rows)
		t.peers(rows)
	default:
		t.procsOf(rows)
		for _, s := range result.Sections(rows) {
			if s.Title != "" {
				t.out.WriteByte('\n')
				t.note(s.Title + ".")
			}
			t.bars(s.Rows)
		}
	}
	t.promised(rows)
	t.rowNotes(rows)
	t.sources(table.Sources)
	t.profiles(rows)
}

// procsOf writes the number of processors of a table whose rows have the same one.
func (t *texter) procsOf(rows []result.Row) {
	if n := rows[0].Procs; n != 1 && !result.MixesProcs(rows) {
		t.note("On " + figure.Plural(n, "processor") + ".")
	}
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
