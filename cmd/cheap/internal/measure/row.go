// Package measure times the rows of `cheap bench`.
package measure

import (
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// A Table is a list of rows to measure.
type Table struct {
	result.Table
	Rows []Row

	// Weight is the part of the time that each row gets, beside those of other
	// tables; 0 says 1. Rows whose rounds are long need more.
	Weight float64

	// Profiled says that a profile tells something about the rows, which run
	// once more under the profiler where one is asked for.
	Profiled bool
}

// A Row is one thing to measure.
type Row struct {
	Name      string
	Published func(procs int) []result.Published // nil says none

	// Group is what the row is compared with: rows of one group take turns in
	// every round. Versus is the row of the group that it is set beside, "" for
	// none.
	Group  string
	Versus string

	Procs []int // GOMAXPROCS of each measurement; nil says the table's default, 1 unless -cpu says otherwise

	// N is how many operations a round has, 0 to have it found from -benchtime.
	// A row whose memory is not all given back, or whose single operation is
	// long, sets it.
	N int

	// NoGC says that the collector is off while the row runs. It runs in a child
	// process then, with a fixed number of operations (N), and leaks.
	NoGC bool

	// Apart says that the row needs the Go heap for itself: it runs in a child
	// process, which is the same for all rounds.
	Apart bool

	Note string

	// Open sets the work up for that many processors. It is called once for each
	// measurement, outside the clock.
	Open func(procs int) (Work, error)
}

// A Work is a row that is ready to run.
type Work struct {
	// Run does n operations, all of it on the clock. A parallel row divides them
	// among procs goroutines by itself.
	Run func(n int)

	// Settle ends a round, on the clock, when everything that Run forgot has been
	// destroyed, which takes collections. Nil where Run leaves nothing behind.
	Settle func() error

	// Check fails unless the round did its work: it looks at what C has counted.
	// It is called off the clock after each round of n operations. Nil where
	// there is nothing to count.
	Check func(n int) error

	// Time, if not nil, takes the place of the clock around Run: it does n
	// operations and returns the nanoseconds of wall and of CPU time that they
	// took, preparations left out.
	Time func(n int) (wall, cpu float64, err error)

	// Heap returns what the last call of Time allocated of the Go heap, in number
	// and bytes. Nil says that it is not known.
	Heap func() (allocs, bytes uint64)

	Close func() // nil where there is nothing to close
}
