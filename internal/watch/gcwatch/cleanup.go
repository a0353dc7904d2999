package gcwatch

import (
	"math/bits"
	"sync"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/percpu"
)

// A Cleanup stands for a call of AddCleanup. Stop of the zero Cleanup does nothing.
type Cleanup struct {
	b      *block
	slot   uint32
	serial uint32
}

// AddCleanup arranges one call of f(arg), after the object that ptr points to, or into, has
// become unreachable: after the first collection that finds it unreachable, or at the latest
// after the next one.
//
// As with runtime.AddCleanup, arg and f are kept reachable, and an object that is reachable from
// them is never collected. Small objects without pointers share their memory with others. An
// object may have several functions. A panic of f ends the program. Unlike with
// runtime.AddCleanup, f may run before a finalizer of the object, or at the same time, because a
// weak pointer to the object is nil then. So the object must be one on which no other package
// can set a finalizer.
//
// f runs on a goroutine of the runtime or of this package, never in a bubble of
// testing/synctest. It must return soon, because other functions wait for it. It may
// call AddCleanup and Stop. For the race detector, all that the program did before the
// call happens before it.
//
// AddCleanup may be called under any lock that f does not take. The caller must not be pinned to
// its P.
func AddCleanup[T, A any](ptr *T, f func(*A), arg *A) Cleanup {
	if ptr == nil {
		panic("gcwatch: ptr is nil")
	}
	if at := uintptr(unsafe.Pointer(arg)) - uintptr(unsafe.Pointer(ptr)); at < unsafe.Sizeof(*ptr) {
		panic("gcwatch: ptr is arg, or arg a part of it, so it is never collected")
	}
	// Each func(*A) is called as every other one: with a pointer, in a register or a
	// word of the stack that does not depend on the type. The first byte of the object
	// stands for the object: it lives as long.
	return add(weak.Make((*byte)(unsafe.Pointer(ptr))), *(*unsafe.Pointer)(unsafe.Pointer(&f)), unsafe.Pointer(arg), 0, false)
}

// Watch is [AddCleanup] of a function that gets a number as well, and that is also called for an
// object that lives long:
//
//   - f(arg, n, nil) is called once, after the object has become unreachable, and
//   - f(arg, n, object) after two collections have found the object reachable, the second of which
//     began after Watch. If f returns true it is called again after more collections.
//
// It cannot be stopped. ptr points to the object, and not into it.
func Watch[T, A any](ptr *T, f func(arg *A, n uint16, object *T) (again bool), arg *A, n uint16) {
	add(weak.Make((*byte)(unsafe.Pointer(ptr))), *(*unsafe.Pointer)(unsafe.Pointer(&f)), unsafe.Pointer(arg), n, true)
}

// The types of functions of AddCleanup and of Watch, with pointers of any type. A func value is
// a pointer, and a slot holds it as one.
type (
	function = func(arg unsafe.Pointer)
	watcher  = func(arg unsafe.Pointer, n uint16, object unsafe.Pointer) (again bool)
)

// Stop removes the function, unless it is about to be called.
func (h Cleanup) Stop() {
	b := h.b
	if b == nil {
		return
	}
	b.shard.mu.Lock()
	defer b.shard.mu.Unlock()
	if b.used>>h.slot&1 != 0 && b.serial[h.slot] == h.serial {
		b.free(int(h.slot))
	}
}

// slots is the number of slots of a block: one for each bit of block.used. A block
// takes 2.25 KiB on 64-bit systems.
const slots = 64

// A block has slots for functions. All of it but shard is under the shard's lock.
type block struct {
	used    uint64 // which slots are in use, by bit
	watched uint64 // of these, those of Watch
	asks    uint64 // of these, those whose function is to be told that the object lives
	weak    [slots]weak.Pointer[byte]
	f       [slots]unsafe.Pointer // a function or a watcher
	arg     [slots]unsafe.Pointer
	n       [slots]uint16 // for a watcher
	due     [slots]uint8  // the round from which on it is told, modulo 256
	serial  [slots]uint32 // number of functions that the slot had before

	shard              *shard // does not change
	prev, next         *block // in shard.blocks
	prevRoom, nextRoom *block // in shard.room, while a slot is free
}

// A shard has a part of the functions. There are several, so that goroutines on
// different Ps do not contend.
type shard struct {
	mu sync.Mutex
	// The rest is under mu.
	blocks *block // the newest first; only the walk removes one
	room   *block // those with a free slot
	n      int    // slots in use
	adds   int    // functions that were added since it last asked for a walk

	_ [128]byte
}

var registry [32]shard

// leastAdds is the least number of functions that are added from one early walk to the next.
const leastAdds = 8

func add(p weak.Pointer[byte], f, arg unsafe.Pointer, n uint16, watched bool) Cleanup {
	place := percpu.Here() % uint(len(registry))
	s := &registry[place]
	s.mu.Lock()
	b := s.room
	grown := b == nil
	if grown {
		b = s.grow()
	}
	i := bits.TrailingZeros64(^b.used)
	b.used |= 1 << i
	b.weak[i], b.f[i], b.arg[i] = p, f, arg
	if watched {
		b.watched |= 1 << i
		b.asks |= 1 << i
		b.n[i], b.due[i] = n, uint8(rounds.current.Load())+outlives
		if !rounds.armed.Load() {
			b.due[i]++ // arm begins a round at once
		}
	}
	h := Cleanup{b, uint32(i), b.serial[i]}
	if b.used == ^uint64(0) {
		b.leaveRoom()
	}
	s.n++
	early := false
	if s.adds++; s.adds >= max(leastAdds, s.n/16) && rounds.sweeping.Load() {
		s.adds, early = 0, true
	}
	s.mu.Unlock()
	if !rounds.armed.Load() {
		arm()
	}
	if early {
		askEarly(place)
	}
	if grown {
		Poll() // in case that the runtime has not reported a collection
	}
	return h
}

// grow adds a block.
func (s *shard) grow() *block {
	b := &block{shard: s, next: s.blocks}
	if b.next != nil {
		b.next.prev = b
	}
	s.blocks = b
	b.enterRoom()
	return b
}

// enterRoom puts the block on the list of those with a free slot.
func (b *block) enterRoom() {
	s := b.shard
	b.nextRoom = s.room
	if b.nextRoom != nil {
		b.nextRoom.prevRoom = b
	}
	s.room = b
}

// leaveRoom takes the block off that list.
func (b *block) leaveRoom() {
	if b.prevRoom != nil {
		b.prevRoom.nextRoom = b.nextRoom
	} else {
		b.shard.room = b.nextRoom
	}
	if b.nextRoom != nil {
		b.nextRoom.prevRoom = b.prevRoom
	}
	b.prevRoom, b.nextRoom = nil, nil
}

// free frees a slot that is in use.
func (b *block) free(i int) {
	if b.used == ^uint64(0) {
		b.enterRoom()
	}
	b.used &^= 1 << i
	b.watched &^= 1 << i
	b.asks &^= 1 << i
	b.serial[i]++
	b.weak[i], b.f[i], b.arg[i] = weak.Pointer[byte]{}, nil, nil
	b.shard.n--
}

// unlink removes a block without functions. The shard keeps the last block that has
// room.
func (b *block) unlink() {
	s := b.shard
	if s.room == b && b.nextRoom == nil {
		return
	}
	b.leaveRoom()
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		s.blocks = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	b.prev, b.next = nil, nil // a Cleanup may keep b
}

// count returns the number of functions that wait.
func count() (n int) {
	for i := range registry {
		s := &registry[i]
		s.mu.Lock()
		n += s.n
		s.mu.Unlock()
	}
	return n
}
