package report

import (
	"fmt"
	"slices"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
)

// A finding compares a row of this module with one that a program has without it, on this machine.
type finding struct {
	Table  string // that the figures are from
	Gains  string // "3.4× faster", "1.2× slower", "5.1× less memory", "no clear difference"
	What   string // what was compared: "Making a C object and forgetting it"
	Ours   string // "262 ns with own"
	Theirs string
	Gain   bool // ours is the better one
	Doubt  bool // the time of one of the rows is doubtful
}

// A question is a finding whose figures are not known yet.
type question struct {
	table        string
	what         string
	ours, theirs string // rows
	with         string // what a program uses that has ours
	without      string // and that has theirs
	memory       bool   // what is resident is compared, and not times
}

// questions lists what a report may answer, in the order of the answers.
var questions = []question{
	{"release", "Making a C object and forgetting it", "own-forget", "addcleanup", "own", "runtime.AddCleanup", false},
	{"resident", "Forgetting 512 C objects of 256 KiB", "own-pace", "addcleanup", "own and a limit of 64 MiB", "runtime.AddCleanup", true},
	{"allocators", "Malloc and Free of a small block", "temporary-data-heap", "temporary-data-malloc", "cheap", "C.malloc and C.free", false},
	{"live", "A collection with 1,000,000 live owners", "own-1000000", "addcleanup-1000000", "own", "runtime.AddCleanup", false},
	{"strings", "Passing a string of 20 bytes to C", "arena-20", "cstring-20", "an Arena", "C.CString and C.free", false},
}

// HeadlineRows returns the rows that answer a question, each as table/row. On a busy machine they
// should be measured before the time is over.
func HeadlineRows() (all []string) {
	for _, q := range questions {
		all = append(all, q.table+"/"+q.ours, q.table+"/"+q.theirs)
	}
	return all
}

// headline says in a few lines what a report has found. What the run did not measure is left out.
func headline(r *result.Report) []finding {
	var all []finding
	for _, q := range questions {
		ours, theirs := onFewest(r, q.table, q.ours), onFewest(r, q.table, q.theirs)
		if ours != nil && theirs != nil && (!q.memory || ours.Resident > 0 && theirs.Resident > 0) {
			all = append(all, q.answer(ours, theirs))
		}
	}
	return all
}

// onFewest finds a row on the fewest processors that it was measured on, nil if it was not measured.
func onFewest(r *result.Report, table, name string) (found *result.Row) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Table == table && row.Row == name && (found == nil || row.Procs < found.Procs) {
			found = row
		}
	}
	return found
}

func (q question) answer(ours, theirs *result.Row) finding {
	doubts := slices.Concat(ours.Doubts, theirs.Doubts)
	a, b, of, write, better, worse := ours.NsPerOp, theirs.NsPerOp, "", figure.Duration, "faster", "slower"
	clear := ours.CI95High < theirs.CI95Low || theirs.CI95High < ours.CI95Low
	switch {
	case q.memory:
		a, b, of, write, better, worse = ours.Resident, theirs.Resident, "resident ", figure.Bytes, "less memory", "more memory"
		doubts, clear = nil, differ(a, b)
	case slices.Contains(doubts, result.Waited) && ours.CPUNsPerOp > 0 && theirs.CPUNsPerOp > 0:
		// The clock went on while other programs had the processor: processor time is what the rows took.
		a, b, of = ours.CPUNsPerOp, theirs.CPUNsPerOp, "of processor time "
		doubts, clear = nil, differ(a, b)
	case ours.CI95High == 0 || theirs.CI95High == 0:
		clear = differ(a, b)
	}
	f := finding{
		Table: q.table, What: q.what, Gains: "no clear difference", Doubt: len(doubts) > 0,
		Ours: write(a) + " " + of + "with " + q.with, Theirs: write(b) + " " + of + "with " + q.without,
	}
	switch {
	case clear && a < b:
		f.Gains, f.Gain = factor(b/a)+" "+better, true
	case clear:
		f.Gains = factor(a/b) + " " + worse
	}
	return f
}

// differ reports whether figures without an interval are far from each other.
func differ(a, b float64) bool { return a/b > 1.1 || b/a > 1.1 }

// factor writes a factor above 1 for people who read it once: two digits are enough.
func factor(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f×", x)
	}
	return fmt.Sprintf("%.0f×", x)
}
