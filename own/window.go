package own

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
)

// A window is the part of a shard of a Memory that its P touches without a lock:
// while it is open, whoever is pinned to the P carves the next blocks of the
// shard's open batch there.
//
// It is opened, and closed, under the shard's lock by somebody who is pinned to
// the P at that moment, so that nobody else can be in the middle of carving. So
// with the lock held and the window closed, the shard is as any other.
//
// A collection has to seal the batches of Ps that carve no more. It may not
// touch their windows, but it may lower the limit: the next who carves there
// finds no room, closes the window, and sees that it was asked to seal. If by
// the next collection nobody has come, the collection itself has stopped the
// world in between, hence with nobody pinned, and from then on nobody finds room
// in the window: it is closed from outside. See ask.
//
// There are no windows with the portable twin of package percpu, under which who
// carves may be preempted, nor under the race detector, which knows the lock and
// knows nothing of Ps.
type window struct {
	// Touched by whoever is pinned to the P, and limit by ask as well.
	at, end  uintptr
	n, limit uint32
	taken    int64

	// These are written while the window is closed, under shard.mu.
	words, states, handles unsafe.Pointer // the first of each
	token                  *token
	ledger                 *ledger

	_ [64]byte

	// Does not change.
	carver *carver
	shard  *shard

	// Under shard.mu.
	open        bool
	asks, asked uint32 // how often it was asked for, and which of these waits, if not 0
}

// windowed says whether there are windows.
const windowed = !percpu.Portable && !race.Enabled

// windowAt returns the window at an address in the table. carver.windows keeps
// it, and Go's objects do not move.
func windowAt(k uintptr) *window { return (*window)(osmem.Pointer(k)) }

func (w *window) address() uintptr { return uintptr(unsafe.Pointer(w)) }

const (
	wordBytes  = unsafe.Sizeof(uintptr(0))
	stateBytes = unsafe.Sizeof(uint64(0))
)

// carve returns a block of size bytes with undefined contents, and its owner; or
// nil, which says that carveSlow has to be asked. flags are bits of its state.
//
// Nothing here may fault, panic or call what it does not know: see package
// percpu. That i is below the limit says that the batch has such an entry.
//
//go:nosplit
//go:nocheckptr
func (c *carver) carve(size int, flags uint64) (o *Owner, block uintptr) {
	k := c.table.Pin()
	if k != 0 {
		w := windowAt(k)
		i, at := w.n, w.at
		// 0 and negative sizes are huge here. What fits also fits when rounded
		// up, since the chunk ends at a multiple.
		if uint(size-1) < uint(w.end-at) && i < w.limit {
			*(*uintptr)(unsafe.Add(w.words, uintptr(i)*wordBytes)) = at
			*(*uint64)(unsafe.Add(w.states, uintptr(i)*stateBytes)) = uint64(size)<<stateSize | flags | stateOpen
			o = (*Owner)(unsafe.Add(w.handles, uintptr(i)*c.stride))
			o.link(w.token, i)
			w.n, w.at, w.taken = i+1, at+uintptr(size+quantum-1)&^(quantum-1), w.taken+int64(size)
			c.table.Unpin(k)
			return o, at
		}
	}
	c.table.Unpin(k)
	return nil, 0
}

// lock returns the shard of the P, locked and with its window closed; or one that
// has no window, where the P cannot have one.
func (c *carver) lock() *shard {
	if windowed {
		if s := c.lockWindow(); s != nil {
			return s
		}
	}
	return lock(c.rest)
}

func (c *carver) lockWindow() *shard {
	for {
		k := c.table.Pin()
		c.table.Unpin(k)
		if k == 0 {
			if !c.addWindow() {
				return nil
			}
			continue
		}
		w := windowAt(k)
		w.shard.mu.Lock()
		if !w.open || w.tryClose() {
			w.closed()
			return w.shard
		}
		w.shard.mu.Unlock() // the goroutine has come to another P meanwhile
	}
}

// addWindow gives the P a window. It returns false if there is none to be had.
func (c *carver) addWindow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.table.Place()
	if id < 0 || c.destroyed {
		return false
	}
	w := &window{carver: c}
	w.shard = c.pool.addPlace(w)
	c.windows = append(c.windows, w)
	c.table.Install(id, w.address())
	return true
}

// show opens the shard's window, if it has one, for what there is room for in
// the open batch. The caller holds s.mu, and the window is closed.
func (s *shard) show() {
	w := s.window
	if w == nil || s.n >= s.limit {
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
	t, s := &w.carver.table, w.shard
	k := t.Pin()
	if k == w.address() {
		w.at, w.end, w.n, w.limit, w.taken = s.at, s.end, s.n, s.limit, s.taken
		w.open = true
	}
	t.Unpin(k)
	return w.open
}

// tryClose closes an open window, if the goroutine is on its P. The caller goes
// on with closed.
func (w *window) tryClose() bool {
	t := &w.carver.table
	k := t.Pin()
	if k == w.address() {
		w.fold()
	}
	t.Unpin(k)
	return !w.open
}

// fold closes an open window when nobody is in it or can get there: what it
// knows is the shard's again.
func (w *window) fold() {
	s := w.shard
	s.n, s.at, s.taken = w.n, w.at, w.taken
	w.at, w.end, w.n, w.limit, w.taken = 0, 0, 0, 0, 0
	w.open = false
}

// closed seals the batch if that was asked for while the window was open.
func (w *window) closed() {
	w.forget()
	if w.asked != 0 {
		w.asked = 0
		w.shard.seal()
	}
}

// forget lets go of the batch, so that it can be found unreachable.
func (w *window) forget() {
	w.words, w.states, w.handles, w.token, w.ledger = nil, nil, nil, nil, nil
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
	atomic.StoreUint32(&w.limit, 0)
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

// ahead returns what the window has carved that the shard does not know of. It
// changes while it is read. The caller holds shard.mu.
func (w *window) ahead() (n, bytes int64) {
	if !w.open {
		return 0, 0
	}
	s := w.shard
	return int64(w.n) - int64(s.n), w.taken - s.taken
}

// makeRoom takes a block off that was carved last in the window of the P, and
// closed.
func (c *carver) makeRoom(l *ledger, i uint32, size int64) {
	k := c.table.Pin()
	if k != 0 {
		// Whose limit is 0 is closed, or to be closed, maybe now.
		if w := windowAt(k); w.limit != 0 && w.ledger == l {
			at := *(*uintptr)(unsafe.Add(w.words, uintptr(i)*wordBytes))
			if at+uintptr(takes(size)) == w.at {
				w.at = at
			}
		}
	}
	c.table.Unpin(k)
}

// destroy closes all windows for good, and destroys the pool.
func (c *carver) destroy(wait time.Duration) error {
	c.mu.Lock()
	c.destroyed = true
	percpu.Drop(c.table.Seize(func(int) bool { return true }))
	for _, w := range c.windows { // nobody is there, nor comes
		w.shard.mu.Lock()
		if w.open {
			w.fold()
			w.closed()
		}
		w.shard.mu.Unlock()
	}
	c.mu.Unlock()
	return c.pool.Destroy(wait)
}
