// Package top writes the figures of package inspect for a terminal.
package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/pagejson"
)

// A view is a report, and the one before it, from which rates are computed.
type view struct {
	now, before map[string]*pagejson.Table
	passed      time.Duration // between them, or 0
	sort        string        // a key of Keys, or ""
}

// A Screen is what Frame writes.
type Screen struct {
	Now, Before *pagejson.Figures        // Before is the report that was shown before, or nil
	Suspects    *pagejson.SuspectFigures // or nil
	Sort        string                   // a key of Keys, or ""
	Width       int                      // columns of a line, at most
	Height      int                      // lines, at most; 0 if there is no bound
}

// Keys says by what the lists can be sorted, and the first letter of each is its key. The first is the
// default.
var Keys = []string{"bytes", "count", "rate", "name"}

// Frame writes the lines of a screen: what holds the memory and what does not fit together, the parts of
// the resident memory, the largest suspects, and lists.
func Frame(s Screen) []string {
	r := s.Now
	v := view{now: tablesOf(r), sort: s.Sort}
	if s.Before != nil {
		v.before, v.passed = tablesOf(s.Before), r.Time.Sub(s.Before.Time)
	}
	width := max(s.Width, 40)
	out := []string{title(s, width)}
	if o := r.Overview; o == nil {
		out = append(out, fold(inspect.Verdict(r.Verdict).String(), width)...)
	} else {
		out = append(out, fold(o.Sentence+" "+o.Next, width)...)
		for _, w := range o.Warnings {
			out = append(out, fold("! "+w, width)...)
		}
		out = append(out, bar(o, width)...)
	}
	out = append(out, wrap(v.container(), width)...)
	out = append(out, wrap(v.pace(), width)...)
	out = append(out, wrap(v.cmem(), width)...)
	out = append(out, "")
	if lines := suspects(s.Suspects, width); len(lines) > 1 {
		out = append(append(out, lines...), "")
	}

	threads := v.list("threads", "THREADS OF", "cheap_threads", []column{
		{"THREADS", "cheap_threads", 9, false}, {"IDLE", "cheap_threads_idle", 9, false}, {"STACKS", "cheap_threads_stack_bytes", 9, false},
	}, width)
	if len(threads) == 2 {
		threads = nil // only Go's
	}
	lists := [][]string{
		v.list("pools", "POOL", "cheap_pool_live_bytes", []column{
			{"OWNERS", "cheap_pool_live", 9, false}, {"BYTES", "cheap_pool_live_bytes", 9, false},
			{"NOT CLOSED", "cheap_pool_collected_total", 10, false}, {"MADE/S", "cheap_pool_created_total", 10, true},
		}, width),
		v.list("libraries", "LIBRARY", "cheap_cmem_library_live_bytes", []column{
			{"BLOCKS", "cheap_cmem_library_blocks", 9, false}, {"BYTES", "cheap_cmem_library_live_bytes", 9, false},
			{"BYTES/S", "cheap_cmem_library_malloc_bytes_total", 13, true},
		}, width),
		v.list("heaps", "HEAP", "cheap_heap_held_bytes", []column{
			{"BLOCKS", "cheap_heap_blocks", 9, false}, {"BYTES", "cheap_heap_allocated_bytes", 9, false},
			{"HELD", "cheap_heap_held_bytes", 9, false}, {"LIMIT", "cheap_heap_limit_bytes", 9, false}, {"MALLOCS/S", "cheap_heap_mallocs_total", 10, true},
		}, width),
		v.list("accounts", "ACCOUNT", "cheap_account_held_bytes", []column{
			{"RESOURCES", "cheap_account_live", 9, false}, {"BYTES", "cheap_account_held_bytes", 9, false}, {"LIMIT", "cheap_account_limit_bytes", 9, false},
		}, width),
		threads,
		v.list("caches", "CACHE", "cheap_cache_asked_bytes_total", []column{
			{"ASKED", "cheap_cache_asked_bytes_total", 9, false}, {"FREED", "cheap_cache_freed_bytes_total", 9, false}, {"TIME", "cheap_cache_seconds_total", 9, false},
		}, width),
	}
	return fit(out, slices.DeleteFunc(lists, func(l []string) bool { return len(l) < 2 }), width, s.Height)
}

// title names the program, and in a terminal the keys.
func title(s Screen, width int) string {
	line := fmt.Sprintf("%s  %s", figure.Printable(s.Now.Program), s.Now.Time.Local().Format("15:04:05"))
	if s.Height == 0 {
		return line
	}
	keys := ""
	for _, k := range Keys {
		if k == cmp.Or(s.Sort, Keys[0]) {
			k = "[" + k + "]"
		}
		keys += " " + k
	}
	keys = "sort:" + keys + "  q ends"
	if n := utf8.RuneCountInString(line) + 2 + len(keys); n <= width {
		line += strings.Repeat(" ", width-n+2) + keys
	}
	return line
}

// letters stand for the parts of the resident memory in the bar, in the order of Overview.Parts.
const letters = "GHCFMSPA-"

// bar writes the parts of the resident memory as letters in a line, with the limit as a bar, and what the
// letters stand for.
func bar(o *pagejson.Overview, width int) []string {
	if o.Resident <= 0 {
		return nil
	}
	text := fmt.Sprintf("Resident %s, no limit", figure.Bytes(o.Resident))
	if o.Limit > 0 {
		text = fmt.Sprintf("Resident %s, limit %s (%s)", figure.Bytes(o.Resident), figure.Bytes(o.Limit), o.LimitOf)
	}
	all, line := max(o.Resident, o.Limit), make([]byte, width)
	for i := range line {
		line[i] = ' '
	}
	at := 0.0
	for i, p := range o.Parts {
		if i >= len(letters) || !(p.Bytes > 0) {
			continue
		}
		from := at
		at += p.Bytes / all * float64(width)
		for k := int(from + 0.5); k < min(int(at+0.5), width); k++ {
			line[k] = letters[i]
		}
	}
	var legend []string
	for _, l := range o.Legend {
		text := l.Name + " " + l.Text
		if l.Part >= 0 && l.Part < len(letters) {
			text = letters[l.Part:l.Part+1] + ": " + text
		}
		legend = append(legend, text)
	}
	if o.Limit > 0 {
		line[min(int(o.Limit/all*float64(width)), width-1)] = '|'
	}
	out := append([]string{text, string(line)}, wrap(legend, width)...)
	if o.Pace != "" {
		out = append(out, fold("Pace: "+o.Pace, width)...)
	}
	return out
}

// suspects writes the largest suspects, where they are, and what there is of them, in two lines at most, or
// why there are none.
func suspects(f *pagejson.SuspectFigures, width int) []string {
	if f == nil {
		return nil
	}
	out := []string{"SUSPECT"}
	for _, s := range f.Largest {
		lines := fold(s.Line+": "+s.Text, width)
		out = append(out, lines[:min(len(lines), 2)]...)
	}
	if len(f.Largest) == 0 && f.None != "" {
		out = append(out, fold(f.None, width)...)
	}
	return out
}

func tablesOf(r *pagejson.Figures) map[string]*pagejson.Table {
	tables := map[string]*pagejson.Table{}
	for i := range r.Tables {
		tables[r.Tables[i].Name] = &r.Tables[i]
	}
	return tables
}

// fit appends the lists. Those for which there are too few lines are cut, so that each has a row, and the
// last ones are left out if that cannot be.
func fit(out []string, lists [][]string, width, height int) []string {
	const least = 2 // the head, and a row

	// A blank line is between two lists.
	if fits := (height - len(out) + 1) / (least + 1); height > 0 {
		lists = lists[:min(max(fits, 0), len(lists))]
	}
	for i, l := range lists {
		if height > 0 {
			most := height - len(out) - (least+1)*len(lists[i+1:])
			if i > 0 {
				most--
			}
			if len(l) > most {
				l = append([]string{headOf(l[0], most-1, len(l)-1)}, l[1:most]...)
			}
		}
		if i > 0 && out[len(out)-1] != "" {
			out = append(out, "")
		}
		out = append(out, l...)
	}
	if height > 0 && len(out) > height {
		out = out[:height]
	}
	for i, line := range out {
		out[i] = strings.TrimRight(cut(line, width), " ")
	}
	return out
}

// headOf says in the head of a list how many of its rows are shown, if there is room.
func headOf(head string, shown, all int) string {
	name, rest, _ := strings.Cut(head, " ")
	text := fmt.Sprintf("%s, %d of %d", name, shown, all)
	if n := len(text) - len(name); strings.TrimLeft(rest[:min(n, len(rest))], " ") == "" {
		return text + head[min(len(text), len(head)):]
	}
	return head
}

// text returns a value of a table without labels, and "" if there is none.
func (v *view) text(table, metric string) string {
	t := v.now[table]
	if t == nil || len(t.Rows) == 0 {
		return ""
	}
	if i := index(t, metric); i >= 0 && i < len(t.Rows[0].Text) {
		return t.Rows[0].Text[i]
	}
	return ""
}

func index(t *pagejson.Table, metric string) int {
	return slices.IndexFunc(t.Metrics, func(h pagejson.Heading) bool { return h.Name == metric })
}

// container says what the cgroup of the process is charged. It is empty if there is none, or it has no limit
// and nothing was killed.
func (v *view) container() []string {
	if limit := v.text("process", "cheap_cgroup_limit_bytes"); (limit == "" || limit == "0") && v.text("process", "cheap_cgroup_kills_total") == "0" {
		return nil
	}
	words := []string{"container:"}
	for _, w := range []struct{ name, metric string }{
		{"charged", "charged_bytes"}, {"limit", "limit_bytes"}, {"page cache", "cache_bytes"}, {"swapped out", "swapped_bytes"}, {"killed", "kills_total"},
	} {
		text := v.text("process", "cheap_cgroup_"+w.metric)
		if w.name == "charged" && (text == "" || text == "0") {
			return nil
		}
		if text != "0" {
			words = append(words, w.name+" "+text)
		}
	}
	return words
}

// pace says what package pace has done. It is empty if it does nothing.
func (v *view) pace() []string {
	words := []string{"pace:"}
	for _, w := range []struct{ name, metric string }{
		{"collections", "collections_total"}, {"released", "released_bytes_total"}, {"waits", "waits_total"}, {"refusals", "refusals_total"},
		{"limit", "limit_bytes"}, {"held in accounts", "held_bytes"},
	} {
		if w.name == "held in accounts" && len(words) == 1 {
			return nil
		}
		if text := v.text("pace", "cheap_pace_"+w.metric); text != "" && text != "0" {
			words = append(words, w.name+" "+text)
		}
	}
	if len(words) == 1 {
		return nil
	}
	return words
}

// cmem says what the C heap has, or why that is not known. It is empty if the program does not
// import module cmem.
func (v *view) cmem() []string {
	t := v.now["cmem"]
	switch {
	case t == nil:
		return nil
	case t.Note != "":
		return strings.Fields("C heap: " + t.Note)
	}
	return []string{
		"C heap:",
		"in use about " + v.text("cmem", "cheap_cmem_live_bytes") + " ± " + v.text("cmem", "cheap_cmem_live_error_bytes"),
		"mallocs " + v.text("cmem", "cheap_cmem_mallocs_total"),
		"frees " + v.text("cmem", "cheap_cmem_frees_total"),
	}
}

// A column of a list is a metric, or how much it grows in a second.
type column struct {
	head, metric string
	width        int
	rate         bool
}

// list writes a table: its rows sorted by a metric, the largest first. Rows of zeros are left out.
func (v *view) list(table, head, by string, columns []column, width int) []string {
	t := v.now[table]
	if t == nil || t.Note != "" {
		return nil
	}
	name := width
	line := ""
	for _, c := range columns {
		name -= c.width + 1
		line += fmt.Sprintf(" %*s", c.width, c.head)
	}
	name = max(name, 8)
	out := []string{pad(head, name) + line}
	rows := slices.Clone(t.Rows)
	v.order(rows, t, by, columns)
	for _, r := range rows {
		line, used := "", false
		for _, c := range columns {
			i := index(t, c.metric)
			text := ""
			switch {
			case i < 0 || i >= len(r.Text):
			case !c.rate:
				text = r.Text[i]
			case v.passed > 0:
				if was, ok := v.was(table, r.Labels, c.metric); ok {
					text = figure.Thousands(int(max(r.Values[i]-was, 0) / v.passed.Seconds()))
				}
			}
			line += fmt.Sprintf(" %*s", c.width, text)
			used = used || text != "" && text != "0" && !strings.HasSuffix(c.metric, "_limit_bytes")
		}
		if !used {
			continue
		}
		label := strings.Join(r.Labels, " #")
		out = append(out, pad(label, name)+line)
	}
	return out
}

// order sorts rows by what was asked for: a metric of bytes is the default.
func (v *view) order(rows []pagejson.TableRow, t *pagejson.Table, by string, columns []column) {
	rate := false
	switch v.sort {
	case "name":
		slices.SortStableFunc(rows, func(x, y pagejson.TableRow) int { return slices.Compare(x.Labels, y.Labels) })
		return
	case "count":
		by = columns[0].metric
	case "rate":
		if last := columns[len(columns)-1]; last.rate {
			by, rate = last.metric, true
		}
	}
	i := index(t, by)
	if i < 0 {
		return
	}
	value := func(r pagejson.TableRow) float64 {
		if !rate {
			return at(r.Values, i)
		}
		was, _ := v.was(t.Name, r.Labels, by)
		return at(r.Values, i) - was
	}
	slices.SortStableFunc(rows, func(x, y pagejson.TableRow) int { return cmp.Compare(value(y), value(x)) })
}

// was returns the value of a row in the report before.
func (v *view) was(table string, labels []string, metric string) (float64, bool) {
	t := v.before[table]
	if t == nil {
		return 0, false
	}
	for _, r := range t.Rows {
		if slices.Equal(r.Labels, labels) {
			if i := index(t, metric); i >= 0 && i < len(r.Values) {
				return r.Values[i], true
			}
		}
	}
	return 0, false
}

func at(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return 0
}

// Fold breaks those lines of a text that are longer than width, each below what follows its label, and leaves out what is below
// height, unless that is 0.
func Fold(text string, width, height int) (out []string) {
	for line := range strings.Lines(text) {
		label := ""
		if i := strings.LastIndex(line, "  "); i >= 0 {
			label = line[:i+2]
		}
		for i, part := range fold(line[len(label):], width-len(label)) {
			if i > 0 {
				label = strings.Repeat(" ", len(label))
			}
			out = append(out, label+part)
		}
	}
	if height > 0 {
		out = out[:min(height, len(out))]
	}
	return out
}

// fold breaks a sentence into lines of at most width columns.
func fold(text string, width int) []string { return join(strings.Fields(text), " ", width) }

// wrap joins words to lines of at most width columns.
func wrap(words []string, width int) []string { return join(words, "  ", width) }

// join joins words to lines of at most width columns, with a space between two.
func join(words []string, space string, width int) []string {
	if len(words) == 0 {
		return nil
	}
	var lines []string
	line := ""
	for _, w := range words {
		switch {
		case line == "":
			line = w
		case utf8.RuneCountInString(line)+len(space)+utf8.RuneCountInString(w) <= width:
			line += space + w
		default:
			lines, line = append(lines, line), "  "+w
		}
	}
	return append(lines, line)
}

// pad makes s width columns wide.
func pad(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", width-utf8.RuneCountInString(s))
}

// cut makes s at most width columns wide. What is cut off is shown by three dots. Names come
// from another program, so what a terminal would take for a command is left out.
func cut(s string, width int) string {
	r := []rune(figure.Printable(s))
	if len(r) > width {
		r = append(r[:max(width-3, 0)], '.', '.', '.')
	}
	return string(r)
}
