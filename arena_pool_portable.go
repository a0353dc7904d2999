//go:build cheap_portable || race

package cheap

import (
	"sync/atomic"
	"unsafe"
)

// The race detector does not know pinning, and would report each arena that goes from
// one goroutine to another. So builds with it use this twin.

// take empties the box.
func (b *arenaBox) take() *Arena {
	return (*Arena)(atomic.SwapPointer(b.pointer(), nil))
}

// put fills the box, which is empty and the home of a.
func (b *arenaBox) put(a *Arena) {
	atomic.StorePointer(b.pointer(), unsafe.Pointer(a))
}

// dropStranded has nothing to do: the boxes belong to no P.
func dropStranded() {}
