// Package headline says in a few lines what a report of `cheap bench` has found: what a
// program gains by this module, on this machine. All figures are those of the run. What
// the run did not measure is left out.
package headline

import (
	"fmt"
	"slices"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// A Finding compares a row of this module with one that a program has without it.
type Finding struct {
	Table  string // that the figures are from
	Factor string // "3.4×", or "" if there is no difference
	Claim  string // what the factor says: "faster", "slower", "less memory", "no clear difference"
	What   string // what was compared: "Making a C object and forgetting it"
	Ours   Side
	Theirs Side
	Gain   bool // ours is the better one
	Doubt  bool // the time of one of the rows is doubtful
}

// A Side is one of the two rows of a finding.
type Side struct {
	Name   string // what a program uses: "own", "runtime.AddCleanup"
	Figure string // "262 ns"
	Of     string // what the figure is of, "" where that goes without saying: "resident", "of processor time"
	Value  float64
}

// String is the side in words: "262 ns with own".
func (s Side) String() string {
	of := s.Of
	if of != "" {
		of += " "
	}
	return s.Figure + " " + of + "with " + s.Name
}

// Share is how large the figure of a side is beside the larger one, from 0 to 1.
func (f Finding) Share(s Side) float64 { return s.Value / max(f.Ours.Value, f.Theirs.Value) }

// A question is a finding whose figures are not known yet.
type question struct {
	table        string
	what         string
	ours, theirs string // rows
	with         string // what a program uses that has ours
	without      string // and that has theirs
	figure       quantity
}

// questions lists what a report may answer, in the order of the answers.
var questions = []question{
	{
		"release", "Making a C object and forgetting it", "own-forget", "addcleanup",
		"own", "runtime.AddCleanup", times,
	},
	{
		"resident", "Forgetting 512 C objects of 256 KiB", "own-pace", "addcleanup",
		"own and pace", "runtime.AddCleanup", memory,
	},
	{
		"allocators", "Malloc and Free of a small block", "temporary-data-heap", "temporary-data-malloc",
		"cheap", "C.malloc and C.free", times,
	},
	{
		"live", "A collection with 1,000,000 live owners", "own-1000000", "addcleanup-1000000",
		"own", "runtime.AddCleanup", times,
	},
	{
		"strings", "Passing a string of 20 bytes to C", "arena-20", "cstring-20",
		"an Arena", "C.CString and C.free", times,
	},
}

// A quantity is a figure of a row.
type quantity struct {
	of           func(*result.Row) float64
	write        func(float64) string
	is           string // Side.Of
	better, less string // what it is to have a smaller figure, and a larger one
	intervals    bool   // rows have an interval of it
}

var (
	// processor is times on a machine that was busy: the clock went on while other
	// programs had the processor, so processor time is what the rows took.
	processor = quantity{func(r *result.Row) float64 { return r.CPUNsPerOp }, figure.Duration, "of processor time", "faster", "slower", false}
	times     = quantity{func(r *result.Row) float64 { return r.NsPerOp }, figure.Duration, "", "faster", "slower", true}
	memory    = quantity{func(r *result.Row) float64 { return r.Resident }, figure.Bytes, "resident", "less memory", "more memory", false}
)

// Of returns what a report has found. It is empty for a report of `cheap replay`.
func Of(r *result.Report) []Finding {
	if r.Replay {
		return nil
	}
	var all []Finding
	for _, q := range questions {
		ours, theirs := find(r, q.table, q.ours), find(r, q.table, q.theirs)
		if ours == nil || theirs == nil || q.figure.of(ours) <= 0 || q.figure.of(theirs) <= 0 {
			continue
		}
		all = append(all, q.answer(ours, theirs))
	}
	return all
}

// Rows returns the rows that answer a question, each as table/row. On a busy machine they
// should be measured before the time is over.
func Rows() (all []string) {
	for _, q := range questions {
		all = append(all, q.table+"/"+q.ours, q.table+"/"+q.theirs)
	}
	return all
}

// find returns a row on the fewest processors that it was measured on, nil if it was
// not measured.
func find(r *result.Report, table, name string) (found *result.Row) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Table == table && row.Row == name && (found == nil || row.Procs < found.Procs) {
			found = row
		}
	}
	return found
}

func (q question) answer(ours, theirs *result.Row) Finding {
	waited := slices.Contains(slices.Concat(ours.Doubts, theirs.Doubts), result.Waited)
	if q.figure.intervals && waited && ours.CPUNsPerOp > 0 && theirs.CPUNsPerOp > 0 {
		q.figure = processor
	}
	a, b := q.figure.of(ours), q.figure.of(theirs)
	f := Finding{
		Table: q.table, What: q.what,
		Doubt:  q.figure.intervals && len(ours.Doubts)+len(theirs.Doubts) > 0,
		Ours:   Side{q.with, q.figure.write(a), q.figure.is, a},
		Theirs: Side{q.without, q.figure.write(b), q.figure.is, b},
	}
	switch {
	case !q.figure.differ(ours, theirs):
		f.Claim = "no clear difference"
	case a < b:
		f.Factor, f.Claim, f.Gain = factor(b/a), q.figure.better, true
	default:
		f.Factor, f.Claim = factor(a/b), q.figure.less
	}
	return f
}

// alike is how far from 1 a ratio may be to say nothing where there is no interval.
const alike = 1.1

// differ reports whether the rounds show which row is better: the intervals of the
// medians do not overlap, or, where there are none, the ratio is far from 1.
func (q quantity) differ(ours, theirs *result.Row) bool {
	if !q.intervals || ours.CI95High == 0 || theirs.CI95High == 0 {
		ratio := q.of(ours) / q.of(theirs)
		return ratio > alike || ratio < 1/alike
	}
	return ours.CI95High < theirs.CI95Low || theirs.CI95High < ours.CI95Low
}

// factor writes a factor above 1 for people who read it once: two digits are enough.
func factor(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f×", x)
	}
	return fmt.Sprintf("%.0f×", x)
}
