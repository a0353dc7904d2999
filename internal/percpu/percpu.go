// Package percpu gives each P, each running thread of Go code, a slot of its
// own that it may touch without locks and atomics.
//
// A goroutine that calls Pin stays on its P until Unpin, and nobody else is on
// that P meanwhile, so what lies in the slot belongs to it alone. Between the
// two calls it must not block, allocate Go memory, make a system call or a cgo
// call, touch memory that may fault, call code that it does not know, or panic:
// the runtime cannot recover from any of these while a goroutine is pinned.
//
// Whoever wants all slots for itself calls Seize, which takes them out of the
// table and then waits until no section that may have seen one is still
// running. From then on Pin returns 0, and its callers take their slow path.
// This is how caches of Ps are emptied that are idle, or beyond GOMAXPROCS, or
// busy elsewhere, without a word of synchronization in the fast path.
//
// There are two implementations. By default the section is runtime.procPin,
// which the Go runtime keeps open to linkname. With the build tag
// cheap_portable slots are taken by an atomic try-lock instead, and Pin returns
// 0 when several are busy.
package percpu

import "sync/atomic"

// A Slot is the head of what lies in a slot. The zero value is ready.
type Slot struct {
	lock atomic.Uint32 // taken while pinned; only the portable twin uses it
	_    [60]byte      // the rest starts on a cache line of its own
}

// A Table has a slot for each P, up to Max. The zero value has none.
//
// Slots lie outside the Go heap: the race detector does not know about
// pinning, and the table is no concern of the collector.
type Table struct {
	slot [Max]uintptr // addresses of Slots; 0 where there is none
}

// Install puts a slot at id, which Pin returned together with no slot. The
// caller makes sure that Install, Seize and Restore do not run at the same
// time.
func (t *Table) Install(id int, slot uintptr) { atomic.StoreUintptr(&t.slot[id], slot) }

// Installed returns the slot at id, or 0. What is in it may change at any
// time.
func (t *Table) Installed(id int) uintptr { return atomic.LoadUintptr(&t.slot[id]) }

// Restore puts back what Seize took.
func (t *Table) Restore(seized []Seized) {
	for _, s := range seized {
		atomic.StoreUintptr(&t.slot[s.ID], s.Slot)
		unlock(s.Slot)
	}
}

// Drop is for slots that were seized and are not put back: whoever still waits
// for one of them finds that it is not in the table any more.
func Drop(seized []Seized) {
	for _, s := range seized {
		unlock(s.Slot)
	}
}

// Seized is a slot that has been taken out of its table, and where it was.
type Seized struct {
	ID   int
	Slot uintptr
}

// Seize takes all slots for whose place want returns true out of the table and
// returns them when nobody uses them any more. Until they are put back by
// Restore they belong to the caller. It must not be called while pinned.
func (t *Table) Seize(want func(id int) bool) []Seized {
	var seized []Seized
	for id := range t.slot {
		if t.Installed(id) != 0 && want(id) {
			seized = append(seized, Seized{id, atomic.SwapUintptr(&t.slot[id], 0)})
		}
	}
	if len(seized) > 0 {
		wait(seized)
	}
	return seized
}
