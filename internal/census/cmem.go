package census

import (
	"io"
	"time"
)

// C is what module cmem counts of the C heap, and what it can say of it. Package inspect does
// not import cmem, because that interposes malloc of the whole program. So cmem sets CHeap when
// it is initialized, and nothing changes it from then on.
type C struct {
	// Off says in a sentence why nothing is counted, or returns "".
	Off func() string

	// Read returns the counts, and Libraries appends what each library holds to list.
	Read      func() CCounts
	Libraries func(list []CLibrary) []CLibrary

	// WriteProfile writes a profile for go tool pprof: of what is in use if d is 0, else of what
	// changes from now until d has passed, or until done is closed.
	WriteProfile func(w io.Writer, d time.Duration, done <-chan struct{}) error

	// Watch returns a function that ends an interval each time it is called, and returns the
	// stacks whose bytes in use have grown in each of the last intervals. One goroutine at a time
	// calls it.
	Watch func(intervals int) func() []CSuspect
}

// CHeap is nil in a program without cmem.
var CHeap *C

// CCounts are the fields of cmem.Stats.
type CCounts struct {
	Mallocs, Frees, Bytes int64
	Live, LiveError       int64
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
