package blackbox

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// WriteText writes a report for people. Names are without what a terminal takes for a command.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	p := r.Process
	fmt.Fprintf(&b, "%s, process %d, %s %s\n", figure.Printable(p.Program), p.PID, figure.Printable(p.Go), figure.Printable(p.System))
	fmt.Fprintf(&b, "  started  %s\n", moment(p.Started))
	for i, line := range r.fate() {
		head := ""
		if i == 0 {
			head = "ended"
			if r.State == Running {
				head = "runs"
			}
		}
		fmt.Fprintf(&b, "  %-7s  %s\n", head, line)
	}
	if r.Last == nil && r.Damaged > 0 {
		b.WriteString("  record   none is whole\n")
	} else if r.Last == nil {
		b.WriteString("  record   none was written\n")
	} else {
		fmt.Fprintf(&b, "  record   %s of %s, %v after the start\n", figure.Thousands(int(r.Last.Number)), moment(r.Last.Time), r.Last.Time.Sub(p.Started).Round(time.Millisecond))
		r.Last.write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// fate says in lines how the process has ended.
func (r *Report) fate() (lines []string) {
	switch r.State {
	case Running:
		lines = append(lines, "still, or a process that it has forked")
	case Stopped:
		lines = append(lines, "in order: it has called Stop")
	case Ended:
		lines = append(lines, "without Stop: it was killed, it has crashed, or it has called os.Exit")
	default:
		lines = append(lines, "not known: it has not called Stop, and may be running")
	}
	if r.KilledSince > 0 {
		lines = append(lines, fmt.Sprintf("the kernel has killed %s of its cgroup for want of memory since the record", figure.Plural(int(r.KilledSince), "process")))
	}
	if c := r.container(); r.State == Ended && r.KilledSince <= 0 && c != nil && c.Limit > 0 && c.Charged-c.Cache >= c.Limit/20*19 {
		lines = append(lines, "the container was at its limit: most likely the kernel has killed the process")
	}
	if r.Damaged > 0 {
		lines = append(lines, "while it wrote a record, or the file was cut short: that record is lost")
	}
	return lines
}

// container returns what is known of the container; nil if nothing is.
func (r *Report) container() *Container {
	if r.Last == nil {
		return nil
	}
	return r.Last.Container
}

// write writes a record.
func (r *Record) write(b *strings.Builder) {
	if r.Verdict != "" {
		fmt.Fprintf(b, "\n%s\n", figure.Printable(r.Verdict))
		if r.Advice != "" {
			fmt.Fprintf(b, "  %s\n", figure.Printable(r.Advice))
		}
	}
	if c := r.Container; c != nil {
		fmt.Fprintf(b, "\ncontainer\n  %s\n", c)
	}
	if len(r.Parts) > 0 {
		fmt.Fprintf(b, "\nresident, %s in all", bytesText(r.Resident))
		if r.Swap > 0 {
			fmt.Fprintf(b, ", and %s swapped out", bytesText(r.Swap))
		}
		b.WriteByte('\n')
		writeFigures(b, r.Parts, r.Resident)
	}
	for _, list := range []struct {
		title   string
		figures []Figure
	}{{"C in use, by library", r.Libraries}, {"pools", r.Pools}, {"heaps", r.Heaps}} {
		if len(list.figures) > 0 {
			fmt.Fprintf(b, "\n%s\n", list.title)
			writeFigures(b, list.figures, 0)
		}
	}
	writeStacks(b, "C in use, by stack", r.C)
	writeStacks(b, "open owners, by the stack that made them", r.Owners)
	writeStacks(b, "blocks of heaps, by stack", r.Blocks)
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "%s\n", figure.Printable(n))
	}
}

// String says what the container is charged, in a line.
func (c *Container) String() string {
	text := bytesText(c.Charged)
	if c.Limit > 0 {
		text += fmt.Sprintf(" of %s", bytesText(c.Limit))
	}
	text += " charged"
	add := func(n int64, format string, args ...any) {
		if n > 0 {
			text += fmt.Sprintf(format, args...)
		}
	}
	if c.Cache >= c.Charged/100 {
		add(c.Cache, ", %s of it cached files", bytesText(c.Cache))
	}
	add(c.Swap, ", %s swapped out", bytesText(c.Swap))
	add(c.High, ", slowed down from %s on", bytesText(c.High))
	add(c.OOM, ", limit met %s", figure.Plural(int(c.OOM), "time"))
	add(c.OOMKills, ", %s killed", figure.Plural(int(c.OOMKills), "process"))
	if c.Pressure > 0 {
		text += fmt.Sprintf(", %.1f%% of the last 10 s waited for memory", c.Pressure)
	}
	return text
}

// writeFigures writes a table; with a whole, each line has its share of that.
func writeFigures(b *strings.Builder, list []Figure, whole int64) {
	for _, f := range list {
		fmt.Fprintf(b, "%10s", bytesText(f.Bytes))
		if whole > 0 {
			fmt.Fprintf(b, "%5.0f%%", 100*float64(f.Bytes)/float64(whole))
		}
		fmt.Fprintf(b, "  %s", figure.Printable(f.Name))
		if f.Count > 0 {
			fmt.Fprintf(b, " (%s)", figure.Thousands(int(f.Count)))
		}
		if f.Swap > 0 {
			fmt.Fprintf(b, ", and %s swapped out", bytesText(f.Swap))
		}
		b.WriteByte('\n')
	}
}

func writeStacks(b *strings.Builder, title string, list []Stack) {
	if len(list) > 0 {
		fmt.Fprintf(b, "\n%s\n", title)
	}
	for _, s := range list {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%10s  %s", bytesText(s.Bytes), figure.Printable(s.Name)), " ") + "\n")
		for _, call := range s.Calls {
			fmt.Fprintf(b, "%12s%s\n", "", figure.Printable(call))
		}
	}
}

// bytesText writes a number of bytes with three digits and a unit.
func bytesText(n int64) string {
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	return figure.Bytes(float64(n))
}

// Line says in one line what holds the memory: what the container is charged, the largest parts, libraries,
// pools and heaps, who has made the most of what is open and in use, and the verdict. Module cmem has to be
// in the program for the libraries, and [inspect.EnableLeaks] called for who has made owners.
func (r *Record) Line() string {
	var all []string
	for _, list := range []struct {
		what    string
		figures []Figure
		most    int
	}{{"", r.Parts, 4}, {"library ", r.Libraries, 2}, {"pool ", r.Pools, 2}, {"heap ", r.Heaps, 2}} {
		for _, f := range list.figures[:min(list.most, len(list.figures))] {
			all = append(all, fmt.Sprintf("%s%s %s", list.what, figure.Printable(f.Name), bytesText(f.Bytes)))
		}
	}
	text := ""
	if r.Container != nil {
		text = r.Container.String() + ": "
	}
	text += strings.Join(all, ", ")
	if len(r.Owners) > 0 && len(r.Owners[0].Calls) > 0 {
		text += fmt.Sprintf("; owners of %s were made by %s", figure.Printable(r.Owners[0].Name), figure.Printable(r.Owners[0].own()))
	}
	if len(r.C) > 0 {
		function, _, _ := strings.Cut(r.C[0].own(), " ")
		if !strings.Contains(r.Verdict, function) { // else it is said below
			text += "; C in use was allocated by " + figure.Printable(r.C[0].own())
		}
	}
	if r.Verdict != "" {
		text += "; " + figure.Printable(r.Verdict)
		if r.Advice != "" {
			text += ": " + figure.Printable(r.Advice)
		}
	}
	return text
}

// own returns the innermost call of package main, or the outermost call if there is none.
func (s *Stack) own() string {
	for _, call := range s.Calls {
		if strings.HasPrefix(call, "main.") {
			return call
		}
	}
	if len(s.Calls) == 0 {
		return s.Name
	}
	return s.Calls[len(s.Calls)-1]
}
