package cheap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// A pooled arena that is not in use waits in a box for the next GetArena. Each P has a
// few boxes. An arena has a home: the only box in which it waits. A box is the home of
// one arena, so only the goroutine that has this arena can fill the empty box: Put
// needs neither a lock nor a pin, only a store. Only a goroutine that is pinned to the
// P of the box takes the arena out. (With the build tag cheap_portable, and under the
// race detector, any goroutine may take an arena out, with an atomic swap.)
//
// When GOMAXPROCS is lowered, arenas stay in the boxes of Ps that no longer run. Trim
// drops them, and so does the tick of the decay.
//
// All boxes of a P may be empty, if a goroutine uses several arenas at a time, or
// sleeps with one. Then GetArena takes an arena without a home, from a sync.Pool.

// An arenaBox is the home of at most one arena.
type arenaBox struct {
	// The arena while it waits. Put stores it when the box is empty; GetArena
	// clears it, pinned.
	arena *Arena

	// Whether there is an arena that has its home here.
	owned atomic.Bool
}

// pointer is &b.arena as package atomic wants it. The types are alike.
func (b *arenaBox) pointer() *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Pointer(&b.arena))
}

// arenaBoxes are the boxes of a P, on a cache line of their own.
type arenaBoxes struct {
	box [3]arenaBox
	_   [64 - 3*unsafe.Sizeof(arenaBox{})]byte
}

var _ [64]byte = [unsafe.Sizeof(arenaBoxes{})]byte{}

// boxesOf has the boxes of each P. Ps beyond have none.
var boxesOf [256]arenaBoxes

// homeless has the arenas without a home. The garbage collector empties it, and the
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
// GetArena and [Arena.Put] cost a few nanoseconds each, because an arena keeps its
// first chunk while it waits for its next user. An arena that waits keeps at most 64
// KiB.
//
// The arena must stay reachable as long as its blocks are in use; the deferred Put
// ensures that. If an arena becomes unreachable without Put, its memory is freed after
// the next garbage collection.
func GetArena() *Arena {
	var a *Arena
	id := percpu.Enter()
	if id < uint(len(boxesOf)) {
		a = boxesOf[id].box[0].take()
	}
	percpu.Leave()
	if a == nil {
		a = getArenaSlow()
	}
	a.state = arenaTaken
	a.rest.Left = a.firstLeft
	return a
}

// Put frees all blocks of an arena from [GetArena], and gives the arena to a later call
// of GetArena. The caller must not use the arena afterwards: until another goroutine
// has the arena, each use panics.
func (a *Arena) Put() {
	if a.state != arenaTaken {
		a.mustBeUsable("Put")
		panicMisuse("Arena.Put", 0, "the arena is not from GetArena; call Destroy")
	}
	if a.moved {
		a.rewind()
	}
	a.rest.Left = a.firstLeft
	a.fillRest()
	a.rest.Left = 0
	a.state = arenaPut
	if a.home == nil {
		homeless.Put(a)
		return
	}
	a.home.put(a) // another goroutine may have the arena at once
}

// rewind makes the first chunk of an empty arena the current one, and gives back the
// chunks that a waiting arena must not keep.
func (a *Arena) rewind() {
	a.marks = a.marks[:0]
	a.mem.freeLarge(0)
	if len(a.mem.chunks) > pooledChunks {
		a.mem.freeChunks(pooledChunks)
	}
	a.mem.noteAll()
	a.empty()
	a.firstLeft = 0
	if len(a.mem.chunks) > 0 {
		a.use(0)
		a.firstLeft = a.rest.Left
	}
	a.moved = false
}

// getArenaSlow is GetArena where the first box is empty.
func getArenaSlow() *Arena {
	var a *Arena
	var boxes []arenaBox
	if id := percpu.Enter(); id < uint(len(boxesOf)) {
		boxes = boxesOf[id].box[:]
	}
	for i := 0; i < len(boxes) && a == nil; i++ {
		a = boxes[i].take()
	}
	percpu.Leave()
	if a != nil {
		return a
	}
	if a, ok := homeless.Get().(*Arena); ok {
		return a
	}
	for i := range boxes {
		if boxes[i].owned.CompareAndSwap(false, true) {
			return newPooledArena(Default(), &boxes[i])
		}
	}
	return newPooledArena(Default(), nil)
}

// newPooledArena returns an arena of the pool. It is not usable before GetArena has
// changed its state. home, if it is not nil, is reserved for it. The goroutine that
// runs cleanups may use both.
func newPooledArena(inner Allocator, home *arenaBox) *Arena {
	a := NewArena(inner, pooledChunk)
	a.home, a.life = home, new(heap.Life)
	a.mem.pooled = true
	a.state = arenaPut
	a.mem.newChunk() // if there is no memory for it, Malloc tries again
	a.rewind()
	// The cleanup may hold the record of the memory, and the box, because neither
	// refers to an arena that was dropped: an arena in its box was not.
	type rest struct {
		mem  *arenaMemory
		home *arenaBox
	}
	gcwatch.AddCleanup(a.life, func(r *rest) {
		r.mem.freeAll()
		if r.home != nil {
			r.home.owned.Store(false)
		}
	}, &rest{a.mem, home})
	return a
}
