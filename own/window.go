package own

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
)

// A window is the part of a shard that its P touches without a lock: while it is
// open, whoever is pinned to the P puts the next entries into the shard's open
// batch there.
//
// It is opened, and closed, under the shard's lock by somebody who is pinned to
// the P at that moment, so that nobody else can be in the middle of an entry. So
// with the lock held and the window closed, the shard is as any other.
//
// A collection has to seal the batches of Ps that own no more. It may not
// touch their windows, but it may lower the limit: the next who comes to own
// there finds no room, closes the window, and sees that it was asked to seal. If
// by the next collection nobody has come, the collection itself has stopped the
// world in between, hence with nobody pinned, and from then on nobody finds room
// in the window: it is closed from outside. See ask.
//
// There are no windows with the portable twin of package percpu, under which who
// owns may be preempted, nor under the race detector, which knows the lock and
// knows nothing of Ps.
type window struct {
	// Touched by whoever is pinned to the P, and limit by ask and narrow as well.
	at, end     uintptr
	n, limit    uint32
	taken, room int64

	// These are written while the window is closed, under shard.mu.
	words, states, handles unsafe.Pointer // the first of each
	token                  *token
	ledger                 *ledger

	_ [64]byte

	// Does not change.
	place uint // the number of its P
	shard *shard

	// Under shard.mu.
	open        bool
	resized     int64  // what entries of the open batch have grown meanwhile
	asks, asked uint32 // how often it was asked for, and which of these waits, if not 0
}

// windowed says whether there are windows.
const windowed = !percpu.Portable && !race.Enabled

// places are the shards of a pool for one purpose. Where there are windows, the
// first shards have one, each for the P with its number, and the last is for
// whoever finds his P without one, or its shard held. Places do not change.
type places struct {
	windows []*window
	shards  []*shard
}

// newPlaces returns places for the Ps that there are now.
func (p *Pool) newPlaces(makes bool) (ps places) {
	n := runtime.GOMAXPROCS(0)
	if windowed {
		n++
	}
	ps.shards = make([]*shard, n)
	for i := range ps.shards {
		ps.shards[i] = &shard{pool: p, makes: makes, grow: uint32(min(firstBatch, p.batch))}
	}
	if windowed {
		ps.windows = make([]*window, n-1)
		for i := range ps.windows {
			ps.windows[i] = &window{place: uint(i), shard: ps.shards[i]}
			ps.shards[i].window = ps.windows[i]
		}
	}
	return ps
}

const (
	wordBytes  = unsafe.Sizeof(uintptr(0))
	stateBytes = unsafe.Sizeof(uint64(0))
)

// put takes the next entry of the P for a resource of size bytes, and returns
// where it is; or nil, which says that the slow path has to be asked. size is
// positive. What it returns keeps the batch alive until the owner has it.
//
// Nothing here may fault, panic or call what it does not know: see package
// percpu. That i is below the limit says that the batch has such an entry.
//
//go:nosplit
//go:nocheckptr
func (ps *places) put(resource uintptr, size int64) (t *token, i uint32) {
	if id := percpu.Enter(); id < uint(len(ps.windows)) {
		w := ps.windows[id]
		n, taken := w.n, w.taken+size
		if n < w.limit && taken <= w.room {
			*(*uintptr)(unsafe.Add(w.words, uintptr(n)*wordBytes)) = resource
			*(*uint64)(unsafe.Add(w.states, uintptr(n)*stateBytes)) = uint64(size)<<stateSize | stateOpen
			w.n, w.taken = n+1, taken
			t, i = w.token, n
		}
	}
	percpu.Leave()
	return t, i
}

// next is put for an entry that has its resource already.
//
//go:nosplit
//go:nocheckptr
func (ps *places) next(size int64) (t *token, i uint32) {
	if id := percpu.Enter(); id < uint(len(ps.windows)) {
		w := ps.windows[id]
		if n := w.n; n < w.limit {
			*(*uint64)(unsafe.Add(w.states, uintptr(n)*stateBytes)) = uint64(size)<<stateSize | stateOpen
			w.n, w.taken = n+1, w.taken+size
			t, i = w.token, n
		}
	}
	percpu.Leave()
	return t, i
}

// carve returns a block of size bytes with undefined contents, and its owner; or
// nil, which says that carveSlow has to be asked. flags are bits of its state.
// The rules are those of put.
//
//go:nosplit
//go:nocheckptr
func (c *carver) carve(size int, flags uint64) (o *Owner, block uintptr) {
	if id := percpu.Enter(); id < uint(len(c.windows)) {
		w := c.windows[id]
		i, at := w.n, w.at
		// 0 and negative sizes are huge here. What fits also fits when rounded
		// up, since the chunk ends at a multiple.
		if uint(size-1) < uint(w.end-at) && i < w.limit {
			*(*uintptr)(unsafe.Add(w.words, uintptr(i)*wordBytes)) = at
			*(*uint64)(unsafe.Add(w.states, uintptr(i)*stateBytes)) = uint64(size)<<stateSize | flags | stateOpen
			o = (*Owner)(unsafe.Add(w.handles, uintptr(i)*c.stride))
			o.link(w.token, i)
			w.n, w.at, w.taken = i+1, at+uintptr(size+quantum-1)&^(quantum-1), w.taken+int64(size)
			block = at
		}
	}
	percpu.Leave()
	return o, block
}

// lock returns the shard of the P, locked and with its window closed, or another
// one if that is held.
func (ps *places) lock() *shard {
	if windowed {
		if s := ps.lockOwn(); s != nil {
			return s
		}
	}
	others := ps.shards[len(ps.windows):]
	k := 0
	if len(others) > 1 {
		k = percpu.Hint(len(others))
	}
	for range others {
		if s := others[k]; s.mu.TryLock() {
			return s
		}
		if k++; k == len(others) {
			k = 0
		}
	}
	others[k].mu.Lock()
	return others[k]
}

// lockOwn returns the shard of the P that has a window, or nil if there is none or
// it is held.
func (ps *places) lockOwn() *shard {
	for {
		id := percpu.Enter()
		percpu.Leave()
		if id >= uint(len(ps.windows)) {
			return nil
		}
		w := ps.windows[id]
		if !w.shard.mu.TryLock() {
			return nil
		}
		if !w.open || w.tryClose() {
			w.closed()
			return w.shard
		}
		w.shard.mu.Unlock() // the goroutine has come to another P meanwhile
	}
}

// lockAgain is lock for one who held s a moment ago. It is another shard if this
// is another P, where the window of s cannot be closed.
func (ps *places) lockAgain(s *shard) *shard {
	if s.window != nil {
		return ps.lock()
	}
	s.mu.Lock()
	return s
}

// show opens the shard's window, if it has one, for what there is room for in
// the open batch. The caller holds s.mu, and the window is closed.
func (s *shard) show() {
	w := s.window
	if w == nil || s.n >= s.limit || s.destroyed {
		return
	}
	w.ledger = s.open
	w.words = unsafe.Pointer(unsafe.SliceData(s.open.words))
	w.states = unsafe.Pointer(unsafe.SliceData(s.open.states))
	w.handles, w.token = s.handles, s.token
	if !w.tryOpen() {
		w.forget()
	}
}

// tryOpen opens the window, if the goroutine is on its P.
func (w *window) tryOpen() bool {
	s := w.shard
	if percpu.Enter() == w.place {
		w.at, w.end, w.n, w.limit, w.taken, w.room = s.at, s.end, s.n, s.limit, s.taken, s.room
		w.open = true
	}
	percpu.Leave()
	return w.open
}

// tryClose closes an open window, if the goroutine is on its P. The caller goes
// on with closed.
func (w *window) tryClose() bool {
	if percpu.Enter() == w.place {
		w.fold()
	}
	percpu.Leave()
	return !w.open
}

// fold closes an open window when nobody is in it or can get there: what it
// knows is the shard's again.
func (w *window) fold() {
	s := w.shard
	s.n, s.at, s.taken = w.n, w.at, w.taken+w.resized
	w.at, w.end, w.n, w.limit, w.taken, w.room, w.resized = 0, 0, 0, 0, 0, 0, 0
	w.open = false
}

// closed seals the batch if that was asked for while the window was open.
func (w *window) closed() {
	w.forget()
	if w.asked != 0 {
		w.asked = 0
		w.shard.seal()
		if len(w.shard.spare) > 0 {
			w.shard.list() // for somebody to see whether the stock is idle
		}
	}
}

// forget lets go of the batch, so that it can be found unreachable.
func (w *window) forget() {
	w.words, w.states, w.handles, w.token, w.ledger = nil, nil, nil, nil, nil
}

// narrow lets nobody find room in an open window from soon on: who is pinned to
// its P now may still take an entry. The caller holds shard.mu.
func (w *window) narrow() { atomic.StoreUint32(&w.limit, 0) }

// end closes the windows of shards for good.
func end(shards []*shard) {
	open := false
	for _, s := range shards {
		s.mu.Lock()
		s.destroyed = true // nobody opens it from now on
		if w := s.window; w != nil && w.open {
			if w.tryClose() {
				w.forget()
			} else {
				w.narrow()
				open = true
			}
		}
		s.mu.Unlock()
	}
	if !open {
		return
	}
	percpu.Wait()
	for _, s := range shards {
		s.mu.Lock()
		if w := s.window; w != nil && w.open {
			w.fold()
			w.forget()
		}
		s.mu.Unlock()
	}
}

// An asking is what ask leaves to the next collection.
type asking struct {
	window *window
	number uint32
}

// ask has the open batch sealed by the next who finds no room in the window, or
// else after the next collection. The caller holds shard.mu, and the window is
// open.
func (w *window) ask() {
	if w.asked != 0 {
		return
	}
	w.asks = max(w.asks+1, 1)
	w.asked = w.asks
	w.narrow()
	// This one is made after the limit was lowered. So the collection that finds
	// it has stopped the world since.
	runtime.AddCleanup(&sentinel{}, asking.seal, asking{w, w.asked})
}

// seal is what follows ask.
func (a asking) seal() {
	w := a.window
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	if w.open && w.asked == a.number {
		w.fold()
		w.closed()
	}
}

// retire has the batch sealed soon if it is open.
func (l *ledger) retire() {
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != l {
		return
	}
	if w := s.window; w != nil && w.open {
		if !w.tryClose() {
			w.ask()
			return
		}
		w.closed()
	}
	s.seal()
}

// inUse returns n and taken of the open batch, as they are in its window if that
// is open: then they change while they are read. The caller holds s.mu.
func (s *shard) inUse() (n, taken int64) {
	if w := s.window; w != nil && w.open {
		return int64(w.n), w.taken + w.resized
	}
	return int64(s.n), s.taken
}

// makeRoom takes a block off that was carved last in the window of the P, and
// closed.
func (c *carver) makeRoom(l *ledger, i uint32, size int64) {
	if id := percpu.Enter(); id < uint(len(c.windows)) {
		// Whose limit is 0 is closed, or to be closed, maybe now.
		if w := c.windows[id]; w.limit != 0 && w.ledger == l {
			at := *(*uintptr)(unsafe.Add(w.words, uintptr(i)*wordBytes))
			if at+uintptr(takes(size)) == w.at {
				w.at = at
			}
		}
	}
	percpu.Leave()
}
