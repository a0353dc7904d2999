package gcwatch

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/race"
)

// walks are done one at a time.
var walks struct {
	mu sync.Mutex
	// The rest is under mu.
	running bool
	again   bool   // one more walk after the running one
	since   uint64 // see ask
	asked   uint64 // the last collection after whose sweep a walk was requested
	over    uint64 // the last collection after whose sweep a whole walk began and has ended
}

// Walked reports whether a walk is over that began after the sweep of collection number n:
// the functions of all objects that died in it, or before, have been called. n is what
// Cycles returned after the collection. What these functions have queued elsewhere may not have
// run. The report of the end of the sweep may be lost, and no walk follows then. A caller that
// knows that the sweep is over calls [Walk] if Walked does not report true soon.
//
// If weak pointers are not read, functions are called later, and Walked cannot know when: it
// reports true. See peeking.
func Walked(n uint64) bool {
	if !peeking.Load() {
		return true
	}
	walks.mu.Lock()
	defer walks.mu.Unlock()
	return walks.over >= n
}

// Walk begins a walk after the sweep of collection number n, which is over, unless one was
// requested for it. The walk may go on when Walk returns; see Walked. With the race detector
// Walk does nothing: only the report of the runtime orders memory; see ordered.
func Walk(n uint64) {
	walks.mu.Lock()
	asked := walks.asked >= n
	walks.mu.Unlock()
	if asked || race.Build || !peeking.Load() || InBubble() {
		return
	}
	if f := follower.Load(); f != nil {
		(*f).Swept()
	}
	ask(0, n)
}

// Walking reports whether a walk is under way, or follows the running one.
func Walking() bool {
	walks.mu.Lock()
	defer walks.mu.Unlock()
	return walks.running
}

// inline is the number of functions up to which a walk runs on the goroutine of the
// runtime that has reported the collection. A longer walk, which takes several
// milliseconds, gets a goroutine of its own, which ends with the walk. Tests change the
// number.
var inline atomic.Int64

// A walk that runs on a goroutine of the runtime stops when its functions have taken
// mostInline, and a walk on a goroutine of its own goes on. They may take long: a batch of
// package own that is split adds dozens of functions. Tests change the time.
var mostInline atomic.Int64 // a time.Duration

const forever = math.MaxInt64

func init() {
	inline.Store(1 << 20)
	mostInline.Store(int64(10 * time.Millisecond))
}

// ask begins a walk, or makes another walk follow the one that is under way. The death of an
// object has reported the collection: since is the number of collections that had ended when
// this object was made. swept is the number of a collection whose sweep is over, or 0. ask
// runs outside of all bubbles of testing/synctest, and so does a goroutine that it starts.
func ask(since, swept uint64) {
	walks.mu.Lock()
	running := walks.running
	walks.running, walks.again = true, running
	walks.since = since
	walks.asked = max(walks.asked, swept)
	walks.mu.Unlock()
	switch {
	case running:
	case int64(count()) > inline.Load():
		go walkOver(registry[:], forever)
	default:
		walkOver(registry[:], time.Duration(mostInline.Load()))
	}
}

// askEarly walks over one shard while the runtime sweeps, unless a walk is under way. add
// calls it once for each leastAdds new functions, or for a sixteenth of the shard if that is
// more, so a walk costs each of these a constant time. So what a program drops, while it
// makes more, does not wait for the end of the sweep.
func askEarly(place uint) {
	if race.Build || !peeking.Load() || InBubble() {
		return
	}
	walks.mu.Lock()
	running := walks.running
	walks.running = true
	walks.mu.Unlock()
	if !running {
		go walkOver(registry[place:place+1], forever)
	}
}

// walkOver walks over shards, and walks again on another goroutine if that was asked
// meanwhile, or if the functions take longer than most.
func walkOver(shards []shard, most time.Duration) {
	returned, whole := false, false
	walks.mu.Lock()
	since, asked := walks.since, walks.asked
	walks.mu.Unlock()
	defer func() {
		walks.mu.Lock()
		if whole {
			walks.over = max(walks.over, asked)
		}
		again := walks.again || !returned // it took too long, or a function has ended the goroutine
		walks.running, walks.again = again, false
		walks.mu.Unlock()
		if again {
			go walkOver(registry[:], forever)
			return
		}
		if f := follower.Load(); f != nil {
			(*f).Walked()
		}
	}()
	begin := time.Now()
	long := func() bool { return most != forever && time.Since(begin) > most }
	for i := range shards {
		if !shards[i].walk(since, long) {
			returned = !long()
			return
		}
	}
	returned, whole = true, len(shards) == len(registry)
}

// walk calls the functions of the shard whose objects are gone. It reports false if
// it has stopped early: because of the race detector, see ordered, or because long says
// that the functions take too long.
//
// For each block, the newest first:
//
//  1. copy its weak pointers, under the lock of the shard,
//  2. find which objects are gone, without the lock: Value may wait for the collector,
//  3. take the functions out of the block, under the lock,
//  4. call them, without the lock.
func (s *shard) walk(since uint64, long func() bool) bool {
	w := walker{peek: peeking.Load(), round: uint8(rounds.current.Load())}
	s.mu.Lock()
	w.copy(s.blocks)
	s.mu.Unlock()
	for w.b != nil {
		dead := w.dead()
		if dead != 0 && !ordered(since) {
			return false
		}
		s.mu.Lock()
		n, next := w.take(dead)
		if n > 0 {
			s.mu.Unlock()
			for i := range n {
				c := w.calls[i]
				w.calls[i] = call{}
				c.do(w.round)
			}
			if long() {
				return false
			}
			s.mu.Lock()
		}
		w.copy(next)
		s.mu.Unlock()
	}
	return true
}

// A walker is a walk at one block.
type walker struct {
	peek  bool  // it reads handles
	round uint8 // modulo 256

	b        *block // nil at the end
	used     uint64 // of the block, when it was copied
	pointers [slots]weak.Pointer[byte]
	calls    [slots]call // those that take has found
}

// copy copies what the walk reads. The caller holds the shard's lock.
func (w *walker) copy(b *block) {
	if w.b = b; b != nil {
		w.used = b.used
		w.pointers = b.weak // in one statement with the other it is copied twice
	}
}

// dead returns which slots have objects that are gone.
func (w *walker) dead() (dead uint64) {
	for m := w.used; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if w.peek && !isZero(w.pointers[i]) {
			continue
		}
		if w.pointers[i].Value() == nil {
			dead |= 1 << i
		}
	}
	return dead
}

// take finds the functions to call: n of those whose objects are gone, which it takes out of the
// block, and of the watchers that are due. It returns the block that follows. The caller holds
// the shard's lock.
func (w *walker) take(dead uint64) (n int, next *block) {
	b := w.b
	for m := dead & b.used; m != 0; m &= m - 1 {
		// Stop may have been called, and AddCleanup for another object since.
		if i := bits.TrailingZeros64(m); b.weak[i] == w.pointers[i] {
			w.calls[n] = call{f: b.f[i], arg: b.arg[i], n: b.n[i], watched: b.watched>>i&1 != 0}
			b.free(i)
			n++
		}
	}
	// The newest first, as blocks are: a watcher may add others for objects beside its
	// own, and the runtime adds one that has the lowest address of a span most cheaply.
	for m := b.asks & w.used &^ dead; m != 0 && w.peek; m &^= 1 << (bits.Len64(m) - 1) {
		if i := bits.Len64(m) - 1; b.weak[i] == w.pointers[i] && int8(w.round-b.due[i]) >= 0 {
			w.calls[n] = call{b: b, slot: i, serial: b.serial[i], f: b.f[i], arg: b.arg[i], n: b.n[i], object: w.pointers[i]}
			n++
		}
	}
	next = b.next // only walks remove blocks, and a new one is the first
	if n == 0 {
		b.empty()
	}
	if b.used == 0 {
		b.unlink()
	}
	return n, next
}

// empty moves the watchers of a block that is at most a quarter full to other blocks with
// free slots: many watchers are added together, and few of them may stay. A block with a function
// of AddCleanup is left alone, because a Cleanup refers to its slot. The caller holds the shard's
// lock.
func (b *block) empty() {
	if b.used != b.watched || bits.OnesCount64(b.used) > slots/4 {
		return
	}
	for m := b.used; m != 0; m &= m - 1 {
		to := b.shard.room
		if to == b {
			to = b.nextRoom
		}
		if to == nil {
			return
		}
		i, j := bits.TrailingZeros64(m), bits.TrailingZeros64(^to.used)
		to.used |= 1 << j
		to.watched |= 1 << j
		to.asks |= b.asks >> i & 1 << j
		to.weak[j], to.f[j], to.arg[j], to.n[j], to.due[j] = b.weak[i], b.f[i], b.arg[i], b.n[i], b.due[i]
		if to.used == ^uint64(0) {
			to.leaveRoom()
		}
		b.shard.n++ // free counts one less
		b.free(i)
	}
}

// A call is a call of the function of a slot.
type call struct {
	f, arg  unsafe.Pointer
	n       uint16
	watched bool // f is a watcher

	// For a watcher that is told of an object that may live: the object, and the slot.
	object weak.Pointer[byte]
	b      *block
	slot   int
	serial uint32
}

// do calls the function. The walk holds no lock.
func (c *call) do(round uint8) {
	switch {
	case c.b != nil:
		// While the runtime sweeps, the handle of a dead object may not be 0 yet. Value returns
		// nil for it.
		object := c.object.Value()
		if object == nil {
			return
		}
		again := (*(*watcher)(unsafe.Pointer(&c.f)))(c.arg, c.n, unsafe.Pointer(object))
		c.b.shard.mu.Lock()
		defer c.b.shard.mu.Unlock()
		switch i := c.slot; {
		case c.b.used>>i&1 == 0 || c.b.serial[i] != c.serial: // Stop was called
		case again:
			c.b.due[i] = round + asksAgain
		default:
			c.b.asks &^= 1 << i
		}
	case c.watched:
		(*(*watcher)(unsafe.Pointer(&c.f)))(c.arg, c.n, nil)
	default:
		(*(*function)(unsafe.Pointer(&c.f)))(c.arg)
	}
}

// A watcher is called for an object that lives when outlives rounds have begun since Watch, and
// again after asksAgain rounds. A collection that marks while Watch is called keeps the object, so
// one round is not enough.
const (
	outlives  = 2
	asksAgain = 4
)
