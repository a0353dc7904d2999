package result

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// A Doubt is a reason why a row's time says little.
type Doubt string

// The doubts.
const (
	Waited   Doubt = "waited"   // the process had no processor for a large part of the time
	Unsteady Doubt = "unsteady" // the rounds differ
)

// The bounds of what is not doubted.
const (
	leastBusy   = 0.7  // processor time, as a part of the time of all processors of the row
	mostSpread  = 0.25 // of the rounds but for the fastest and slowest quarter, as a part of the median
	leastRounds = 3    // fewer rounds have no spread
)

// Doubts returns what is doubtful in a row's figures, measured on a machine of some
// cores.
func Doubts(r *Row, cores int) []Doubt {
	var all []Doubt
	busy := r.NsPerOp * float64(max(min(r.Procs, cores), 1))
	if r.CPUNsPerOp > 0 && r.CPUNsPerOp < leastBusy*busy {
		all = append(all, Waited)
	}
	if n := len(r.Samples); n >= leastRounds {
		rounds := slices.Sorted(slices.Values(r.Samples))
		if low, high := rounds[n/4], rounds[n-1-n/4]; high-low > mostSpread*r.NsPerOp {
			all = append(all, Unsteady)
		}
	}
	return all
}

// Doubtful says in one line how many times of a report are doubtful, and why: "" if none is.
func (r *Report) Doubtful() string {
	all, waited, unsteady := 0, 0, 0
	for _, row := range r.Rows {
		if len(row.Doubts) > 0 {
			all++
		}
		if slices.Contains(row.Doubts, Waited) {
			waited++
		}
		if slices.Contains(row.Doubts, Unsteady) {
			unsteady++
		}
	}
	if all == 0 {
		return ""
	}
	verb, reasons := "are", []string(nil)
	if all == 1 {
		verb = "is"
	}
	if waited > 0 {
		reasons = append(reasons, fmt.Sprintf("other programs had the processor in %s", figure.Thousands(waited)))
	}
	if unsteady > 0 {
		reasons = append(reasons, fmt.Sprintf("the rounds differ by more than a quarter in %s", figure.Thousands(unsteady)))
	}
	return fmt.Sprintf("%s of %s %s doubtful (!): %s.", figure.Thousands(all), figure.Plural(len(r.Rows), "time"), verb, strings.Join(reasons, ", "))
}
