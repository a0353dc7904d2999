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
	"github.com/cheapgo/cheap/internal/figure"
)

// A view is a report, and the one before it, from which rates are computed.
type view struct {
	now, before map[string]*inspect.Table
	passed      time.Duration // between them, or 0
}

// Frame writes a report in lines of at most width columns, and at most height lines if that is
// not 0. before is the report that was shown before it, or nil.
func Frame(r, before *inspect.Figures, width, height int) []string {
	v := view{now: tablesOf(r)}
	if before != nil {
		v.before, v.passed = tablesOf(before), r.Time.Sub(before.Time)
	}
	width = max(width, 40)
	out := []string{fmt.Sprintf("%s  %s", r.Program, r.Time.Local().Format("15:04:05"))}
	out = append(out, fold(r.Verdict.String(), width)...)
	out = append(out, wrap(v.resident(), width)...)
	out = append(out, wrap(v.container(), width)...)
	out = append(out, wrap(v.totals(), width)...)
	out = append(out, wrap(v.pace(), width)...)
	out = append(out, wrap(v.cmem(), width)...)
	out = append(out, "")

	lists := [][]string{
		v.list("libraries", "LIBRARY", "cheap_cmem_library_live_bytes", []column{
			{"BLOCKS", "cheap_cmem_library_blocks", 9, false}, {"IN USE", "cheap_cmem_library_live_bytes", 9, false},
			{"BYTES/S", "cheap_cmem_library_malloc_bytes_total", 13, true},
		}, width),
		v.list("heaps", "HEAP", "cheap_heap_held_bytes", []column{
			{"BLOCKS", "cheap_heap_blocks", 9, false}, {"ALLOCATED", "cheap_heap_allocated_bytes", 9, false},
			{"HELD", "cheap_heap_held_bytes", 9, false}, {"LIMIT", "cheap_heap_limit_bytes", 9, false}, {"MALLOCS/S", "cheap_heap_mallocs_total", 10, true},
		}, width),
		v.list("pools", "POOL", "cheap_pool_live_bytes", []column{
			{"LIVE", "cheap_pool_live", 9, false}, {"BYTES", "cheap_pool_live_bytes", 9, false},
			{"RELEASED", "cheap_pool_released_total", 9, false}, {"COLLECTED", "cheap_pool_collected_total", 9, false}, {"MADE/S", "cheap_pool_created_total", 10, true},
		}, width),
		v.list("accounts", "ACCOUNT", "cheap_account_held_bytes", []column{
			{"RESOURCES", "cheap_account_live", 9, false}, {"HELD", "cheap_account_held_bytes", 9, false}, {"LIMIT", "cheap_account_limit_bytes", 9, false},
		}, width),
		v.list("classes", "SIZE", "cheap_class_waste_bytes", []column{
			{"BLOCKS", "cheap_class_blocks", 9, false}, {"ALLOCATED", "cheap_class_allocated_bytes", 9, false},
			{"WASTE", "cheap_class_waste_bytes", 9, false}, {"SPANS", "cheap_class_spans", 9, false}, {"MALLOCS/S", "cheap_class_mallocs_total", 10, true},
		}, width),
	}
	return fit(out, lists, width, height)
}

func tablesOf(r *inspect.Figures) map[string]*inspect.Table {
	tables := map[string]*inspect.Table{}
	for i := range r.Tables {
		tables[r.Tables[i].Name] = &r.Tables[i]
	}
	return tables
}

// fit appends the lists, each cut so that all have a part of the lines that are left.
func fit(out []string, lists [][]string, width, height int) []string {
	for i, l := range lists {
		if n := len(lists) - i; height > 0 {
			left := max(height-len(out)-(n-1), 0) // a blank line between two lists
			if most := max(left/n, 2); len(l) > most {
				more := len(l) - most + 1
				l = append(slices.Clone(l[:most-1]), fmt.Sprintf("... %d more", more))
			}
		}
		if len(l) > 0 && i > 0 && out[len(out)-1] != "" {
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

func index(t *inspect.Table, metric string) int {
	return slices.IndexFunc(t.Metrics, func(h inspect.Heading) bool { return h.Name == metric })
}

func (v *view) totals() []string {
	var words []string
	for _, name := range []string{"allocated", "active", "resident", "mapped", "retained", "metadata", "idle"} {
		words = append(words, name+" "+v.text("totals", "cheap_"+name+"_bytes"))
	}
	return words
}

func (v *view) resident() []string {
	words := []string{"process:"}
	if t := v.now["resident"]; t != nil {
		for _, r := range t.Rows {
			if len(r.Labels) == 1 && len(r.Text) > 0 {
				words = append(words, r.Labels[0]+": "+r.Text[0])
			}
		}
	}
	return words
}

// container says what the cgroup of the process is charged. It is empty if there is none.
func (v *view) container() []string {
	words := []string{"container:"}
	for _, w := range []struct{ name, metric string }{
		{"charged", "charged_bytes"}, {"limit", "limit_bytes"}, {"page cache", "cache_bytes"}, {"swapped out", "swapped_bytes"}, {"killed", "kills_total"},
	} {
		text := v.text("process", "cheap_cgroup_"+w.metric)
		if w.name == "charged" && (text == "" || text == "0") {
			return nil
		}
		words = append(words, w.name+" "+text)
	}
	return words
}

func (v *view) pace() []string {
	return []string{
		"pace:",
		"collections " + v.text("pace", "cheap_pace_collections_total"),
		"released " + v.text("pace", "cheap_pace_released_bytes_total"),
		"waits " + v.text("pace", "cheap_pace_waits_total"),
		"refusals " + v.text("pace", "cheap_pace_refusals_total"),
		"held " + v.text("pace", "cheap_pace_held_bytes"),
		"limit " + v.text("pace", "cheap_pace_limit_bytes"),
	}
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
		"samples " + v.text("cmem", "cheap_cmem_samples_total"),
	}
}

// A column of a list is a metric, or how much it grows in a second.
type column struct {
	head, metric string
	width        int
	rate         bool
}

// list writes a table: its rows sorted by a metric, the largest first.
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
	if i := index(t, by); i >= 0 {
		slices.SortStableFunc(rows, func(x, y inspect.TableRow) int { return cmp.Compare(at(y.Values, i), at(x.Values, i)) })
	}
	for _, r := range rows {
		line := ""
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
		}
		label := strings.Join(r.Labels, " #")
		out = append(out, pad(label, name)+line)
	}
	return out
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
