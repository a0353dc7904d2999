package census

import (
	"io"
	"sync/atomic"
	"time"
)

// A CHeap is what module cmem counts of the C heap, and what it can say of it. Package inspect
// does not import cmem, because that interposes malloc of the whole program. So cmem calls
// [SetCHeap] while it is initialized.
type CHeap interface {
	// Off says in a sentence why nothing is counted, or returns "".
	Off() string

	// Read returns the counts.
	Read() CCounts

	// Libraries appends what each library holds to list.
	Libraries(list []CLibrary) []CLibrary

	// Top returns the n stacks with the most bytes in use, the largest first; Grown and Error of each are 0.
	Top(n int) []CSuspect

	// WriteProfile writes a profile for go tool pprof: of what is in use if d is 0, else of what
	// changes from now until d has passed, or until done is closed.
	WriteProfile(w io.Writer, d time.Duration, done <-chan struct{}) error

	// Watch returns a function that ends an interval each time it is called. It returns the stacks whose
	// bytes in use have grown in each of the last intervals, and those that have in the last ones alone, two or,
	// at first, one; those that have grown the most first. One goroutine at a time calls it.
	Watch(intervals int) func() (steady, lately []CSuspect)
}

// A CMapper is a CHeap that counts as well what C code maps without malloc.
type CMapper interface {
	// WriteMapped writes what each library has mapped, as a table.
	WriteMapped(w io.Writer) error

	// WriteMappedProfile writes the profile of its stacks, for go tool pprof.
	WriteMappedProfile(w io.Writer) error
}

// A CTracker is a CHeap that counts block by block, for package inspect/leaktest.
type CTracker interface {
	// Track samples every block until stop is called. It begins at once in threads that are idle or that begin later;
	// the other ones have allocated up to 256 KiB before.
	Track() (stop func())

	// EachStack calls f with what each stack has in use: of stacks that have mapped memory the number is below 0,
	// and blocks is 0. A stack keeps its number.
	EachStack(f func(number int, blocks, bytes float64))

	// Named returns the libraries and the texts of stacks.
	Named(numbers []int) []CSuspect
}

// A CRater is a CHeap whose samples can be turned on.
type CRater interface {
	// SetRate is cmem.SetRate. The error says why nothing is counted.
	SetRate(bytes int) (old int, err error)
}

// cHeap holds nil in a program without cmem.
var cHeap atomic.Pointer[CHeap]

// SetCHeap says what the C heap is, or that there is none, and returns what was said before.
func SetCHeap(c CHeap) (old CHeap) {
	old = C()
	cHeap.Store(&c)
	return old
}

// C returns the C heap, or nil in a program without cmem.
func C() CHeap {
	if c := cHeap.Load(); c != nil {
		return *c
	}
	return nil
}

// CCounts are the fields of cmem.Stats.
type CCounts struct {
	Mallocs, Frees, Bytes int64
	Live, Held, LiveError int64 // Held: what malloc has taken for Live
	Samples, Lost         int64
}

// A CLibrary is a cmem.Library.
type CLibrary struct {
	Name                 string
	Live, Blocks, Allocs int64
}

// A CSuspect is a cmem.Suspect.
type CSuspect struct {
	Library            string
	Live, Grown, Error int64
	Stack              string
}
