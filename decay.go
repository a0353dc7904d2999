package cheap

import (
	"time"

	"github.com/cheapgo/cheap/internal/span"
)

// DefaultDecay is how long memory stays idle before it is given back to the
// operating system, unless [SetDecay] says otherwise.
const DefaultDecay = span.DefaultDecay

// SetDecay sets how long memory that no block lies in is kept for reuse before
// it is given back to the operating system, for all heaps of the program, and
// returns what it was. It is given back when between half of d and d have
// passed. A d of 0 gives it back at once, which makes each reuse pay for fresh
// pages; a negative d keeps it until [Heap.Trim].
func SetDecay(d time.Duration) time.Duration { return span.SetDecay(d) }
