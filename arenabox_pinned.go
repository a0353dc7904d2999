//go:build !cheap_portable && !race

package cheap

import (
	"runtime"
	"sync/atomic"
	"unsafe" // and for linkname
)

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// pinArenaBoxes keeps the goroutine on its P, whose number it returns, until
// unpinArenaBoxes. Between the two the goroutine may only take from boxes.
func pinArenaBoxes() uint { return uint(procPin()) }

func unpinArenaBoxes() { procUnpin() }

// take empties the box. Its P is pinned.
func (b *arenaBox) take() *Arena {
	a := (*Arena)(atomic.LoadPointer(b.pointer()))
	if a != nil {
		b.arena = nil
	}
	return a
}

// put fills the box, which is empty and the home of a.
func (b *arenaBox) put(a *Arena) {
	// Whoever takes a must see all that has been done to it. An atomic store
	// says so, but is a locked instruction on x86, where no store is seen before
	// the stores that precede it anyway.
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "386" {
		b.arena = a
	} else {
		atomic.StorePointer(b.pointer(), unsafe.Pointer(a))
	}
}

// pointer is &b.arena as package atomic wants it. The types are alike.
func (b *arenaBox) pointer() *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Pointer(&b.arena))
}

// dropStranded lets go of the arenas that wait in boxes of Ps that do not run
// because GOMAXPROCS has been lowered. The collector gives their memory back.
func dropStranded() {
	for id := range boxesOf {
		boxes := &boxesOf[id]
		var arenas [len(boxes.box)]*Arena
		pinArenaBoxes()
		// It cannot change while anybody is pinned, so if this P does not run
		// now, nobody takes from its boxes before the unpin.
		if id >= runtime.GOMAXPROCS(0) {
			for i := range boxes.box {
				arenas[i] = boxes.box[i].take()
			}
		}
		unpinArenaBoxes()
		for i, a := range arenas {
			if a != nil {
				a.home = nil
				boxes.box[i].owned.Store(false)
				homeless.Put(a)
			}
		}
	}
}
