package present

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// Compare writes two reports side by side, for people.
// It marks the changes that are unlikely to be chance.
func Compare(w io.Writer, old, new *result.Report, look Look) error {
	t := newTexter(look)
	t.line(bold, "Two reports of cheap bench, side by side")
	t.machines(&old.Machine, &new.Machine)

	before := make(map[rowKey]result.Row)
	for _, row := range old.Rows {
		before[keyOf(&row)] = row
	}
	var all []pair
	body := newTexter(look)
	for _, table := range new.Tables {
		var pairs []pair
		for _, row := range new.RowsOf(table.Name) {
			if was, ok := before[keyOf(&row)]; ok {
				pairs = append(pairs, newPair(was, row))
			}
		}
		if len(pairs) > 0 {
			body.title(table.Name, table.Title)
			body.pairs(pairs)
			all = append(all, pairs...)
		}
	}
	t.summary(all)
	t.largest(all)
	t.out.WriteString(body.out.String())
	t.onlyIn("old", old, new)
	t.onlyIn("new", new, old)
	_, err := io.WriteString(w, t.out.String())
	return err
}

// machines describes the machines of the reports, and names their differences.
func (t *texter) machines(old, new *result.Machine) {
	for _, m := range []struct {
		name string
		is   *result.Machine
	}{{"old", old}, {"new", new}} {
		t.entry(m.name, 5, strings.Join(machineLines(m.is), "; "))
	}
	var differs []string
	for _, f := range []struct{ name, old, new string }{
		{"CPU", old.CPU, new.CPU},
		{"cores", fmt.Sprint(old.Cores), fmt.Sprint(new.Cores)},
		{"system", old.OS + "/" + old.Arch, new.OS + "/" + new.Arch},
		{"Go version", old.Go, new.Go},
		{"GOGC", old.GOGC, new.GOGC},
		{"malloc", old.Malloc, new.Malloc},
		{"huge pages", cmp.Or(old.HugePages, new.HugePages), new.HugePages}, // an older report does not say
	} {
		if f.old != f.new {
			differs = append(differs, f.name)
		}
	}
	if len(differs) > 0 {
		t.line(yellow, "The reports differ in "+strings.Join(differs, ", ")+", which may explain a change.")
	}
	t.out.WriteByte('\n')
}

// A pair is one row in two reports.
type pair struct {
	old, new result.Row
	benchmath.Comparison
}

func newPair(old, new result.Row) pair {
	sample := func(row *result.Row) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(rounds(row)), &benchmath.DefaultThresholds)
	}
	return pair{old, new, benchmath.AssumeNothing.Compare(sample(&old), sample(&new))}
}

// significant reports whether the change is unlikely to be chance.
func (p *pair) significant() bool {
	return p.P <= p.Alpha && p.old.NsPerOp != p.new.NsPerOp && p.old.NsPerOp > 0
}

// tooFew reports whether there were too few rounds to find any change.
func (p *pair) tooFew() bool { return !p.significant() && len(p.Warnings) > 0 }

// change describes the difference, in words and in color.
func (p *pair) change() cell {
	switch {
	case p.tooFew():
		return cell{"?", yellow}
	case !p.significant():
		return cell{"~", dim}
	case p.new.NsPerOp < p.old.NsPerOp:
		return cell{figure.Percent(1-p.new.NsPerOp/p.old.NsPerOp) + " faster", green}
	}
	return cell{figure.Percent(p.new.NsPerOp/p.old.NsPerOp-1) + " slower", red}
}

// ratio returns the new time divided by the old one.
func (p *pair) ratio() float64 { return p.new.NsPerOp / p.old.NsPerOp }

// chance writes the probability that chance makes such a difference.
func (p *pair) chance() string {
	switch {
	case p.tooFew():
		return figure.Missing
	case p.P < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p.P)
}

// pairs writes the rows of both reports, and behind their times the memory of those that
// have been compared by that.
func (t *texter) pairs(pairs []pair) {
	t.times(pairs)
	if pairs = slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !p.resident() }); len(pairs) > 0 {
		t.memory(pairs)
	}
}

func (t *texter) times(pairs []pair) {
	list := []column{
		{head: "row", left: true}, {head: "procs"},
		{group: "old", head: "time"}, {group: "old", head: "±"},
		{group: "new", head: "time"}, {group: "new", head: "±"},
		{head: "change"}, {head: "p"},
	}
	for _, p := range pairs {
		for i, c := range []cell{
			{p.new.Row, plain}, {figure.Thousands(p.new.Procs), plain},
			{figure.Duration(p.old.NsPerOp), plain}, {spread(&p.old), dim},
			{figure.Duration(p.new.NsPerOp), plain}, {spread(&p.new), dim},
			p.change(), {p.chance(), dim},
		} {
			list[i].cells = append(list[i].cells, c)
		}
	}
	if !slices.ContainsFunc(pairs, func(p pair) bool { return p.new.Procs != 1 }) {
		list = slices.Delete(list, 1, 2)
	}
	g := &grid{columns: list}
	g.fit(t.columns)
	t.out.WriteString(g.text(t.p))
}

// resident reports whether both reports have the resident memory of the row.
func (p *pair) resident() bool { return p.old.Resident > 0 && p.new.Resident > 0 }

// alikeMemory is how far the ratio of two sizes may be from 1 to say nothing: a report has
// no rounds of them.
const alikeMemory = 1.1

// memoryChange describes the difference of the resident memory.
func (p *pair) memoryChange() cell {
	switch ratio := p.new.Resident / p.old.Resident; {
	case ratio > alikeMemory:
		return cell{figure.Percent(ratio-1) + " more", red}
	case ratio < 1/alikeMemory:
		return cell{figure.Percent(1-ratio) + " less", green}
	}
	return cell{"~", dim}
}

// memory writes the resident memory of rows in both reports.
func (t *texter) memory(pairs []pair) {
	list := []column{{head: "row", left: true}, {group: "resident", head: "old"}, {group: "resident", head: "new"}, {head: "change"}}
	for _, p := range pairs {
		for i, c := range []cell{
			{rowName(&p.new), plain}, {figure.Bytes(p.old.Resident), plain}, {figure.Bytes(p.new.Resident), plain}, p.memoryChange(),
		} {
			list[i].cells = append(list[i].cells, c)
		}
	}
	g := &grid{columns: list}
	t.out.WriteByte('\n')
	t.out.WriteString(g.text(t.p))
}

// rowName names a row, with its number of processors if that is not 1.
func rowName(row *result.Row) string {
	if row.Procs == 1 {
		return row.Row
	}
	return row.Row + " on " + figure.Plural(row.Procs, "processor")
}

// shownChanges is how many changes stand together before the tables.
const shownChanges = 20

// largest writes the largest changes, from all tables.
func (t *texter) largest(pairs []pair) {
	changes := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return !p.significant() })
	if len(changes) == 0 {
		return
	}
	size := func(p pair) float64 { return math.Abs(math.Log(p.ratio())) }
	slices.SortStableFunc(changes, func(a, b pair) int { return cmp.Compare(size(b), size(a)) })
	title := "largest first"
	if len(changes) > shownChanges {
		title = fmt.Sprintf("the largest %d of %d", shownChanges, len(changes))
		changes = changes[:shownChanges]
	}
	for i := range changes {
		changes[i].new.Row = changes[i].new.Table + "/" + changes[i].new.Row
	}
	t.title("changes", title)
	t.times(changes)
}

func (t *texter) summary(pairs []pair) {
	if len(pairs) == 0 {
		t.line(plain, "The reports have no row in common.")
		return
	}
	var faster, slower, same, tooFew int
	for _, p := range pairs {
		switch {
		case p.tooFew():
			tooFew++
		case !p.significant():
			same++
		case p.new.NsPerOp < p.old.NsPerOp:
			faster++
		default:
			slower++
		}
	}
	t.line(bold, fmt.Sprintf("Of %s in both, %d became faster and %d slower.", figure.Plural(len(pairs), "row"), faster, slower))
	t.note("A row became faster or slower if its rounds differ by more than chance explains " +
		"(Mann-Whitney U test, p at most 0.05; one in twenty rows that did not change passes it, too).")
	if memory := memorySummary(pairs); memory != "" {
		t.note(memory)
	}
	if same > 0 {
		t.note(fmt.Sprintf("No such difference (~): %s.", figure.Plural(same, "row")))
	}
	if tooFew > 0 {
		t.note(fmt.Sprintf("Too few rounds to find any change (?): %s. Four rounds in each report are enough (-count).",
			figure.Plural(tooFew, "row")))
	}
}

// memorySummary says how the resident memory of rows changed, "" if no row of both has it.
func memorySummary(pairs []pair) string {
	all, less, more := 0, 0, 0
	for _, p := range pairs {
		if !p.resident() {
			continue
		}
		all++
		switch p.memoryChange().style {
		case green:
			less++
		case red:
			more++
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("Resident memory, of %s in both: less in %d, more in %d, by more than a tenth.", figure.Plural(all, "row"), less, more)
}

// onlyIn names the rows of one report that the other does not have.
func (t *texter) onlyIn(name string, one, other *result.Report) {
	has := make(map[rowKey]bool)
	for _, row := range other.Rows {
		has[keyOf(&row)] = true
	}
	var names []string
	for _, row := range one.Rows {
		if !has[keyOf(&row)] {
			names = append(names, row.Table+"/"+rowName(&row)+",")
		}
	}
	if len(names) > 0 {
		text := t.hangWords("", "    ", append([]string{"Only in the " + name + " report:"}, names...))
		t.out.WriteString("\n" + strings.TrimSuffix(text, ",\n") + "\n")
	}
}
