// Package percpu gives each P, one of the GOMAXPROCS places where Go code runs, a place of
// its own, which the goroutine that runs there uses without locks and atomics.
//
// [Enter] pins the goroutine to its P until [Leave], and returns the number of the
// P. No other goroutine runs on that P meanwhile, so what belongs to the number
// belongs to the goroutine. Between the two calls it must not block, allocate Go
// memory, make a system call or a cgo call, touch memory that may fault, call
// functions that it does not know, or panic: each of these while pinned ends the
// process.
//
// A [Table] builds on that. [Table.Pin] enters and returns the P's slot, and
// [Table.Unpin] leaves. [Table.Seize] takes slots away from their Ps: it removes
// them from the table, then waits until every section that may have seen one has
// ended. From then on Pin returns 0, and its callers take their slow path. So the
// caches of Ps that are idle, busy or beyond GOMAXPROCS can be emptied, and the
// fast path has no instruction for it.
//
// There are two implementations. By default Enter is runtime.procPin, which the Go
// runtime keeps open to linkname. With the build tag cheap_portable nothing is
// pinned, and the constant Portable is true: Pin takes a slot by an atomic try-lock
// and returns 0 when several are busy, and the numbers of Enter are only a hint at
// a place that is probably free.
package percpu

import (
	"runtime"
	"sync/atomic"
)

// A Slot is the first part of the contents of a slot. The zero value is ready.
type Slot struct {
	lock atomic.Uint32 // taken while pinned; used only with cheap_portable
	_    [60]byte      // the rest starts on a cache line of its own
}

// A Table has a slot for each P, up to Max. The zero value has none.
//
// Slots lie outside the Go heap, because the race detector does not know about
// pinning, and because the collector need not scan them.
type Table struct {
	slot [Max]uintptr // addresses of Slots; 0 where there is none
}

// Install puts a slot at id, which [Table.Place] returned. The caller makes sure
// that Install, Seize and Restore do not run at the same time.
func (t *Table) Install(id int, slot uintptr) { atomic.StoreUintptr(&t.slot[id], slot) }

// Installed returns the slot at id, or 0. What is in the slot may change at any
// time.
func (t *Table) Installed(id int) uintptr { return atomic.LoadUintptr(&t.slot[id]) }

// Seized is a slot that was taken out of its table, and its place there.
type Seized struct {
	ID   int
	Slot uintptr
}

// Seize takes the slots for whose place want returns true out of the table, and
// returns them when no goroutine uses them any more. They belong to the caller
// until Restore or Drop. Seize must not be called while pinned.
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

// Stop stops all goroutines once: each where it is, but a pinned one after its Leave or Unpin.
// After the call, the caller sees what each goroutine wrote before its stop. After its stop, each
// goroutine sees what the caller wrote before the call. Stop must not be called while pinned.
//
// ReadMemStats is the function whose documentation says that it stops the world.
func Stop() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
}

// Restore puts slots that were seized back into the table.
func (t *Table) Restore(seized []Seized) {
	for _, s := range seized {
		atomic.StoreUintptr(&t.slot[s.ID], s.Slot)
		unlock(s.Slot)
	}
}

// Drop gives up slots that were seized. A goroutine that still tries the lock of
// one finds that the slot is not in the table any more.
func Drop(seized []Seized) {
	for _, s := range seized {
		unlock(s.Slot)
	}
}

// Here returns the number that Enter would return. The goroutine may be on another
// P by the time it returns.
func Here() uint {
	id := Enter()
	Leave()
	return id
}
