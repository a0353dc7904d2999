package cheap

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A pooled arena that nobody uses waits in a box for the next GetArena. Each P
// has a few boxes. An arena has a home, the one box that it ever waits in, and
// a box is the home of one arena, so a box that is empty can only be filled by
// whoever has that arena: Put needs neither lock nor pin, only a store. Taking an
// arena out is the business of the box's P, which is pinned meanwhile. (In the
// portable twin a box belongs to everybody, and taking is an atomic swap.)
//
// What waits in the boxes of a P that does not run any more, because GOMAXPROCS
// has been lowered, is let go by Trim and when idle memory is looked through.
//
// Where all boxes of a P are empty, because a goroutine uses several arenas at a
// time or has gone to sleep with one, there are arenas without a home in a
// sync.Pool.

// An arenaBox is the home of at most one arena.
type arenaBox struct {
	// The arena while it waits. Put stores it, when the box is empty; GetArena
	// clears it, pinned.
	arena *Arena

	// Whether there is an arena that has its home here.
	owned atomic.Bool
}

// arenaBoxes is what a P has, on a cache line of its own.
type arenaBoxes struct {
	box [3]arenaBox
	_   [64 - 3*unsafe.Sizeof(arenaBox{})]byte
}

var _ [64]byte = [unsafe.Sizeof(arenaBoxes{})]byte{}

// boxesOf has the boxes of each P. Ps beyond do without.
var boxesOf [256]arenaBoxes

// homeless has arenas without a home. The garbage collector empties it, and the
// cleanups of the arenas give their chunks back.
var homeless sync.Pool

// A pooled arena keeps up to pooledChunks chunks of pooledChunk bytes while it
// waits.
const (
	pooledChunk  = 16 << 10
	pooledChunks = 4
)

// GetArena returns an arena over the default heap, for blocks that live as long
// as one call of a C function does:
//
//	a := cheap.GetArena()
//	defer a.Put()
//	C.draw((*C.char)(cheap.CString(a, name)))
//
// It costs a few nanoseconds, as does [Arena.Put]: arenas wait for their next
// user with a first chunk at hand. One that waits keeps at most 64 KiB.
//
// The arena must stay reachable for as long as its blocks are in use, which the
// deferred Put sees to: when an arena is dropped without Put, the garbage
// collector gives its memory back.
func GetArena() *Arena {
	var a *Arena
	id := pinArenaBoxes()
	if id < uint(len(boxesOf)) {
		a = boxesOf[id].box[0].take()
	}
	unpinArenaBoxes()
	if a == nil {
		a = getArenaSlow()
	}
	a.state = arenaTaken
	a.left = a.firstLeft
	return a
}

// Put frees all blocks of an arena from [GetArena] and lets the next caller of
// that have the arena. The caller must not use it afterwards. Until somebody
// else has taken the arena, that panics.
func (a *Arena) Put() {
	if a.state != arenaTaken {
		a.mustBeUsable("Put")
		misuse("Arena.Put", 0, "the arena is not from GetArena; use Destroy")
	}
	if a.unsettled {
		a.settle()
	}
	if poisoning {
		a.left = a.firstLeft
		a.poisonRest()
	}
	a.left = 0
	a.state = arenaPut
	if a.home == nil {
		homeless.Put(a)
		return
	}
	a.home.put(a) // it may be another goroutine's at once
}

// settle brings the arena to the start of its first chunk, with no more chunks
// than it may keep.
func (a *Arena) settle() {
	a.marks = a.marks[:0]
	a.mem.freeLarge(0)
	if len(a.mem.chunks) > pooledChunks {
		a.mem.freeChunks(pooledChunks)
	}
	a.mem.noteAll()
	a.empty()
	a.firstLeft = 0
	if len(a.mem.chunks) > 0 {
		a.enter(0)
		a.firstLeft = a.left
	}
	a.unsettled = false
}

// getArenaSlow is GetArena where the first box is empty.
func getArenaSlow() *Arena {
	id := pinArenaBoxes()
	var a *Arena
	if id < uint(len(boxesOf)) {
		for i := range boxesOf[id].box {
			if a = boxesOf[id].box[i].take(); a != nil {
				break
			}
		}
	}
	unpinArenaBoxes()
	if a != nil {
		return a
	}
	if a, ok := homeless.Get().(*Arena); ok {
		return a
	}
	var home *arenaBox
	if id < uint(len(boxesOf)) {
		for i := range boxesOf[id].box {
			if b := &boxesOf[id].box[i]; b.owned.CompareAndSwap(false, true) {
				home = b
				break
			}
		}
	}
	return newPooledArena(Default(), home)
}

// newPooledArena returns an arena that belongs to the pool, and is of no use
// before GetArena has changed its state. The home, if there is one, is reserved
// for it. Both may be used by the goroutine that runs cleanups.
func newPooledArena(inner Allocator, home *arenaBox) *Arena {
	a := NewArena(inner, pooledChunk)
	a.home = home
	a.state = arenaPut
	a.mem.newChunk() // if there is no memory for it, Malloc tries again
	a.settle()
	// The record of the memory and the box know nothing of the arena that is
	// dropped; an arena that waits in its box is not.
	type rest struct {
		mem  *arenaMemory
		home *arenaBox
	}
	runtime.AddCleanup(a, func(r rest) {
		r.mem.freeAll()
		if r.home != nil {
			r.home.owned.Store(false)
		}
	}, rest{a.mem, home})
	return a
}
