package window

import (
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/percpu"
)

// A Set has the window of each P, by the number of the P. It is read without a
// lock. Windows are added under a lock of the caller, and never removed or moved.
type Set struct {
	rows [percpu.Max / rowWindows]*row // never nil
}

// A row has the windows of adjacent Ps. A machine with up to rowWindows Ps needs
// one row.
type row [rowWindows]*Window

const rowWindows = 64

// none stands for the window of a P that has none. It has no room and is never
// opened. noRow has no other windows. So the pinned section tests the limit only,
// and neither a pointer nor the length of a list.
var (
	none  Window
	noRow = newRow()
)

func newRow() *row {
	r := new(row)
	for i := range r {
		r[i] = &none
	}
	return r
}

// Init must be called before another goroutine knows the Set.
func (ws *Set) Init() {
	for i := range ws.rows {
		ws.rows[i] = noRow
	}
}

// At returns the window of the P with a number. If there is none, it returns a
// window that is never open, see None.
func (ws *Set) At(id uint) *Window {
	if !Possible || id >= percpu.Max {
		return &none
	}
	// Plain loads: an atomic one takes an instruction more, and under the race
	// detector, which would ask for it, there are no windows. The stores are atomic.
	// So a load through the pointer to a new row finds none there, and a load
	// through the pointer to a new window a limit of 0.
	return ws.rows[id/rowWindows][id%rowWindows]
}

// None reports whether w stands for a window that does not exist.
func (w *Window) None() bool { return w == &none }

// Add adds the window of a P, whose number is w.Place, below percpu.Max. The P has
// none. Another goroutine may find w, and w.Shard, before Add returns.
func (ws *Set) Add(w *Window) {
	r := &ws.rows[w.Place/rowWindows]
	if *r == noRow {
		atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(r)), unsafe.Pointer(newRow()))
	}
	at := &(*r)[w.Place%rowWindows]
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(at)), unsafe.Pointer(w))
}
