//go:build cheap_portable || race

package cheap

import (
	"sync/atomic"
	"unsafe"
)

// The race detector does not know of pinning, and would report each arena that
// goes from one goroutine to the other. So it gets this twin.

// pinArenaBoxes returns boxes to look at. A goroutine mostly gets the same, as
// its stack mostly stays where it is, and others mostly get others.
func pinArenaBoxes() uint {
	var here byte
	return uint(uintptr(unsafe.Pointer(&here))>>11) * 0x9E3779B1 >> 7 % uint(len(boxesOf))
}

func unpinArenaBoxes() {}

// take empties the box.
func (b *arenaBox) take() *Arena {
	return (*Arena)(atomic.SwapPointer(b.pointer(), nil))
}

// put fills the box, which is empty and the home of a.
func (b *arenaBox) put(a *Arena) {
	atomic.StorePointer(b.pointer(), unsafe.Pointer(a))
}

// pointer is &b.arena as package atomic wants it. The types are alike.
func (b *arenaBox) pointer() *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Pointer(&b.arena))
}

// dropStranded has nothing to do: boxes belong to everybody.
func dropStranded() {}
