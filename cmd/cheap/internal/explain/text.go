package explain

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// sitesShown is how many call sites a text has.
const sitesShown = 12

// Text writes the report as text.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, line := range wrap(r.Answer(), 100) {
		b.WriteString(line + "\n")
	}
	for _, line := range wrap(r.TooFew(), 100) {
		b.WriteString(line + "\n")
	}
	b.WriteString(r.Headline() + "\n")
	for _, note := range r.Notes {
		b.WriteString("Note: " + note + "\n")
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nby mechanism\t\t\tby purpose\n")
	for i, s := range r.Mechanisms {
		fmt.Fprintf(t, "  %s\t%6s\t%s", s.Name, figure.Percent(s.Share), s.between())
		if i < len(r.Purposes) {
			fmt.Fprintf(t, "\t  %s\t%6s", r.Purposes[i].Name, figure.Percent(r.Purposes[i].Share))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	b.WriteString("\n" + r.restLine() + "\n" + r.samplesLine() + "\n")
	if c := Of(r.Mechanisms, Collection); c.Share > 0 && r.Roots > 0 {
		fmt.Fprintf(&b, "Of the collections, a share of %s is for the records of cleanups and finalizers.\n", figure.Percent(r.Roots))
	}
	if r.Checks > 0 {
		fmt.Fprintf(&b, "Of the crossings, a share of %s is cgo's checks of pointers in arguments.\n", figure.Percent(r.Checks))
	}
	if r.Calls != nil {
		b.WriteString(r.callsLine() + "\n")
	}
	if Of(r.Mechanisms, C).Share+Of(r.Mechanisms, Crossing).Share > 0 {
		b.WriteString(r.calibrationLine() + "\n")
	}

	b.WriteString("\nby call site\n")
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "   all\t")
	for _, n := range shortMechanisms {
		fmt.Fprintf(t, "%6s\t", n)
	}
	fmt.Fprintln(t, " site")
	rows, rest := r.mainSites()
	for _, s := range append(rows, rest...) {
		fmt.Fprintf(t, "%6s\t", figure.Percent(s.Share))
		for _, share := range s.Mechanisms {
			text := "·"
			if share >= 0.0005 {
				text = figure.Percent(share)
			}
			fmt.Fprintf(t, "%6s\t", text)
		}
		fmt.Fprintf(t, " %s\n", s.label())
	}
	t.Flush()

	if len(r.Advice) > 0 {
		b.WriteString("\nwhat would change it\n")
		for i, a := range r.Advice {
			then, basis := fmt.Sprintf(", then about %s", figure.Percent(a.Expected)), "Expected from: "+a.Basis+"."
			if a.Open {
				then, basis = "", ""
			}
			fmt.Fprintf(&b, "%2d. %s: %s of the processor time%s.\n", i+1, a.Site, figure.Percent(a.Now), then)
			for _, text := range []string{a.Text, basis, a.Link} {
				for _, line := range wrap(text, 92) {
					b.WriteString("    " + line + "\n")
				}
			}
			for line := range strings.Lines(a.Sketch) {
				b.WriteString("        " + line)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shortMechanisms are the heads of the columns, in the order of mechanismNames.
var shortMechanisms = []string{"C", "cross", "callb", "alloc", "locks", "GC", "rest"}

// Headline says what the report is of, in one line.
func (r *Report) Headline() string {
	text := r.Source
	if r.Go != "" {
		text += ", " + r.Go
	} else if r.Names != "" {
		text += ", Go " + r.Names
	}
	if r.Duration > 0 {
		text += ", " + r.Duration.Round(10*time.Millisecond).String() + " on the clock"
	}
	return text + fmt.Sprintf(", %s on processors, %s", r.CPU.Round(10*time.Millisecond), figure.Plural(int(r.Samples), "sample"))
}

// between is the range of a share, "" if it is narrow.
func (s Share) between() string {
	if s.High-s.Low < 0.01 {
		return ""
	}
	return figure.Percent(s.Low) + " to " + figure.Percent(s.High)
}

func (r *Report) restLine() string {
	var parts []string
	for _, s := range r.Rest {
		parts = append(parts, s.Name+" "+figure.Percent(s.Share))
	}
	if len(parts) == 0 {
		return "The rest by mechanism is nothing."
	}
	return "The rest by mechanism: " + strings.Join(parts, ", ") + "."
}

// samplesLine says how far a share can be from the truth because samples are few: two standard
// errors.
func (r *Report) samplesLine() string {
	points := 200 * math.Sqrt(0.3*0.7/math.Max(1, float64(r.Samples)))
	return fmt.Sprintf("With %s, a share of 30%% may be off by %.1f points.", figure.Plural(int(r.Samples), "sample"), points)
}

func (r *Report) callsLine() string {
	text := fmt.Sprintf("The runtime has counted %s of C. At %s each, which is the price here, they take %s of the processor time; the profile says %s.",
		figure.Plural(int(r.Calls.Count), "call"), figure.Duration(r.Calibration.CallNs), figure.Percent(r.Calls.Share),
		figure.Percent(Of(r.Mechanisms, Crossing).Share-r.Checks))
	if r.Checks > 0 {
		text = strings.TrimSuffix(text, ".") + " without the checks of arguments."
	}
	if r.Calls.Disagree {
		text += " The two disagree: calls may be more expensive in this program than in the calibration, or the profile has too few samples."
	}
	return strings.Join(wrap(text, 100), "\n")
}

func (r *Report) calibrationLine() string {
	cal := r.Calibration
	text := fmt.Sprintf("C itself is what the profile shows in calls of C, less %s of entersyscall and exitsyscall, and %s of callbacks (%s, %s).",
		figure.Times(cal.PerCall.Value), figure.Times(cal.PerCallback.Value), cal.Go, cal.From)
	if r.Exact {
		text = "The profile has the instruction at which C was interrupted. So C itself, calls of it and callbacks are told apart by it, not estimated."
	}
	return strings.Join(wrap(text, 100), "\n")
}

// mainSites returns the largest call sites that call C or serve a purpose, and sums of the
// others.
func (r *Report) mainSites() (rows, rest []Site) {
	goCode := Site{Function: "other Go code", Mechanisms: make([]float64, len(mechanismNames)), Purpose: Rest}
	more := Site{Function: "other calls", Mechanisms: make([]float64, len(mechanismNames)), Purpose: Rest}
	nowhere := Site{Function: "without a call site: collections, the scheduler", Mechanisms: make([]float64, len(mechanismNames)), Purpose: Rest}
	add := func(to *Site, s Site) {
		to.Share += s.Share
		for i, share := range s.Mechanisms {
			to.Mechanisms[i] += share
		}
	}
	for _, s := range r.Sites {
		switch {
		case s.Function == "":
			add(&nowhere, s)
		case s.Callee == "" && s.Purpose == Rest:
			add(&goCode, s)
		case len(rows) < sitesShown && s.Share >= 0.001:
			rows = append(rows, s)
		default:
			add(&more, s)
		}
	}
	for _, s := range []Site{more, goCode, nowhere} {
		if s.Share > 0 {
			rest = append(rest, s)
		}
	}
	return rows, rest
}

// label names a site in a table.
func (s Site) label() string {
	if s.Line == 0 && s.Callee == "" {
		return s.Function
	}
	text := s.place()
	if s.Purpose != Rest {
		text += " (" + s.Purpose + ")"
	}
	return text
}

// wrap breaks a text into lines of at most width characters, where words allow it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
