package cheap

import (
	"time"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// DefaultDecay is how long idle memory is kept, unless [SetDecay] says otherwise.
const DefaultDecay = 1 * time.Second

var _ [DefaultDecay]struct{} = [span.DefaultDecay]struct{}{}

// SetDecay sets how long memory that holds no block is kept for reuse before it is
// released to the operating system, for all heaps of the program, and returns the old
// value. Idle memory is released after d/2 to 3d/2. A d of 0 releases it at once, so each
// reuse pays for fresh pages; what a [Local] caches stays until [Trim] or [Heap.Trim]
// then, because nothing checks whether it is used. A negative d keeps all idle memory
// until these are called.
func SetDecay(d time.Duration) time.Duration { return span.SetDecay(d) }

// Trim releases all idle memory to the operating system: it empties the caches of all
// heaps, and then releases all memory that holds no block. Without Trim the same happens
// some time after memory becomes idle; see [SetDecay]. If a goroutine is in a method of a
// Local at this moment, the Local keeps its cache, and empties it when it next runs out of
// blocks or of room.
func Trim() {
	dropStranded()
	heap.Trim()
}

// Trim is like the function [Trim], but empties the caches of this heap only.
func (h *Heap) Trim() {
	dropStranded()
	(*heap.Heap)(h).Trim()
}
