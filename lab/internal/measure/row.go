// Package measure times the rows of tables.
package measure

import (
	"github.com/cheapgo/cheap/internal/page/result"
)

// A Table is a list of rows to measure.
type Table struct {
	result.Table
	Rows []Row

	// Weight is the part of the time that each row gets, relative to the rows of
	// other tables; 0 is 1. Rows with long rounds need more.
	Weight float64

	// Named says that the table is measured only where -run names it.
	Named bool

	// Notes go to the report with the rows of the table.
	Notes []string
}

// A Row is one thing to measure.
type Row struct {
	Name      string
	Published func(procs int) []result.Published // nil if there are no figures

	// The rows of one Group take turns in every round. Versus is the row of the
	// group with which this row is compared, "" if there is none.
	Group  string
	Versus string

	// CPUVersus are rows of the group with whose processor time that of this row is
	// compared.
	CPUVersus []string

	Bars []Bar // what is promised of the row; reported with Options.Bars

	Procs []int // GOMAXPROCS of each measurement; nil is 1; -cpu replaces it

	// N is the number of operations in a round. 0 has it found from the length of
	// a round. A row sets N if it does not free all of its memory, or if a single
	// operation is long.
	N int

	// Steady says that a round is in a steady state: it has at least ten collections
	// that the Go heap's growth has started, and a warm-up before it, off the clock. N
	// is then the least number of operations. If the time is too short for ten
	// collections, a round has fewer, and the row's note says so.
	Steady bool

	// Named says that the row is measured only where -run names its table.
	Named bool

	// Weight replaces the table's, unless it is 0.
	Weight float64

	// NoGC says that the collector is off while the row runs. Each round runs in a
	// child process, has N operations, and leaks.
	NoGC bool

	// Apart says that the row needs the Go heap for itself. All of its rounds run
	// in one child process.
	Apart bool

	// Env is added to the environment of the process of a row that is Apart.
	Env []string

	// Keeps says that an allocator keeps its memory from round to round, as in a
	// program that runs on. The row is Apart and has an N. A round before the first
	// is not timed: it warms the allocator up, and shows how much memory becomes
	// resident.
	Keeps bool

	// Waits says that operations wait by themselves. So the processor time says nothing
	// about other programs.
	Waits bool

	Note    string
	Section string // as in result.Row

	// Open sets up the work for procs processors. It is called once for each
	// measurement, off the clock.
	Open func(procs int) (Work, error)
}

// A Work is a row that is ready to run.
type Work struct {
	// Run does n operations, all of them on the clock. A parallel row divides them
	// among procs goroutines by itself.
	Run func(n int)

	// Settle ends a round, on the clock. It returns when everything that Run forgot
	// has been destroyed, which takes collections. It is nil if Run leaves nothing
	// behind.
	Settle func() error

	// Check returns an error unless the round did its work, by what C has counted.
	// It is called off the clock, after each round of n operations. It is nil if
	// nothing is counted.
	Check func(n int) error

	// Time, if not nil, replaces the clock around Run. It does n operations and
	// returns their nanoseconds of wall-clock and of CPU time, without preparations.
	Time func(n int) (wall, cpu float64, err error)

	// Heap returns the allocations in the Go heap, and their bytes, of the last call
	// of Time. It is nil if they are unknown.
	Heap func() (allocs, bytes uint64)

	// Figures returns what the work knows of the last round besides times. It is nil if
	// there is nothing.
	Figures func() Figures

	// Resident does n operations, and returns Figures.Resident, seen from outside of
	// the process that does them. It is nil for a work in this process.
	Resident func(n int) (int64, error)

	Close func() // may be nil
}

// Figures are those of a round besides times, as in [result.Row]. 0 is unknown.
type Figures struct {
	Resident  int64 // bytes
	Kept      int64 // bytes
	Held      float64
	P99, P999 float64 // nanoseconds
	Peak      int64   // bytes of C
	HeapBytes float64
}
