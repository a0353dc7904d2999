//go:build cheap_portable

package percpu

import (
	"runtime"
	"unsafe"
)

// Portable says which twin this is.
const Portable = true

// Max is how many slots there are.
const Max = 64

// tries is how many slots are tried before Pin gives up.
const tries = 4

// at turns an address into a Slot. The address came from the table, and what
// the table holds stays mapped.
func at(slot uintptr) *Slot { return (*Slot)(unsafe.Add(unsafe.Pointer(nil), slot)) }

// start returns where a goroutine begins to look: its stack is its own, so the
// address of a variable there tells goroutines apart and stays the same for
// most of a goroutine's life.
func start() int {
	var here byte
	return int(uintptr(unsafe.Pointer(&here)) >> 11 * 0x9E3779B1 >> 7 % Max)
}

// Pin takes a slot that nobody uses, and returns 0 where the first is missing
// or several are busy.
func (t *Table) Pin() uintptr {
	id := start()
	for range tries {
		slot := t.Installed(id)
		if slot == 0 {
			return 0
		}
		if at(slot).lock.CompareAndSwap(0, 1) {
			// Somebody may have seized it, emptied it and put it to other
			// use between the load and the lock.
			if t.Installed(id) == slot {
				return slot
			}
			at(slot).lock.Store(0)
		}
		id = (id + 1) % Max
	}
	return 0
}

// Unpin ends what Pin began. It takes what Pin returned.
func (t *Table) Unpin(slot uintptr) {
	if slot != 0 {
		at(slot).lock.Store(0)
	}
}

// Place returns where a slot is missing for this goroutine, and -1 if none is.
func (t *Table) Place() int {
	id := start()
	for range tries {
		if t.Installed(id) == 0 {
			return id
		}
		id = (id + 1) % Max
	}
	return -1
}

// Beyond says whether id is the place of a P that does not run. Here a place
// belongs to no P.
func Beyond(id int) bool { return false }

// Enter returns a number beyond those of all Ps: here nobody is pinned.
func Enter() uint { return 1<<31 - 1 }

// Leave ends what Enter began.
func Leave() {}

// Wait returns at once: nobody who has entered has a place.
func Wait() {}

// wait takes the lock of each slot, which whoever is inside holds for a few
// hundred instructions.
func wait(seized []Seized) {
	for _, s := range seized {
		for !at(s.Slot).lock.CompareAndSwap(0, 1) {
			runtime.Gosched()
		}
	}
}

func unlock(slot uintptr) { at(slot).lock.Store(0) }

// Hint returns a number below n that goroutines do not share, if they are lucky.
func Hint(n int) int { return start() % n }
