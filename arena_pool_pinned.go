//go:build !cheap_portable && !race

package cheap

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/percpu"
)

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
	// The goroutine that takes a must see all stores to it. An atomic store ensures
	// that, but is a locked instruction on x86, where a store is never visible before
	// the stores that precede it anyway.
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "386" {
		b.arena = a
	} else {
		atomic.StorePointer(b.pointer(), unsafe.Pointer(a))
	}
}

// dropStranded lets go of the arenas that wait in boxes of Ps that no longer run
// because GOMAXPROCS was lowered. The cleanups of the arenas give their memory back.
func dropStranded() {
	for id := range boxesOf {
		boxes := &boxesOf[id]
		var arenas [len(boxes.box)]*Arena
		percpu.Enter()
		// GOMAXPROCS does not change while a goroutine is pinned. So if this P does
		// not run now, no goroutine takes from its boxes before Leave.
		if percpu.Beyond(id) {
			for i := range boxes.box {
				arenas[i] = boxes.box[i].take()
			}
		}
		percpu.Leave()
		for i, a := range arenas {
			if a != nil {
				a.home = nil
				boxes.box[i].owned.Store(false)
				homeless.Put(a)
			}
		}
	}
}
