//go:build cheap_portable

package percpu

import (
	"runtime"
	"unsafe"
)

// Portable says which of the two implementations this is.
const Portable = true

// Max is how many slots there are.
const Max = 64

// tries is how many slots Pin tries before it gives up.
const tries = 4

// at converts an address to a Slot. The address came from the table, and what the
// table holds stays mapped.
func at(slot uintptr) *Slot { return (*Slot)(unsafe.Add(unsafe.Pointer(nil), slot)) }

// Enter returns a number below Max and pins nothing: another goroutine may get the
// same number at the same time. A goroutine has its stack to itself, and the stack
// mostly stays where it is. So the address of a variable there tells goroutines
// apart, and a goroutine gets the same number again and again.
func Enter() uint {
	var here byte
	return uint(uintptr(unsafe.Pointer(&here)) >> 11 * 0x9E3779B1 >> 7 % Max)
}

// Leave does nothing.
func Leave() {}

// Wait returns at once: there are no sections.
func Wait() {}

// Beyond reports false: a number belongs to no P.
func Beyond(id int) bool { return false }

// Pin takes a slot that is free. It returns 0 if the first one is missing, or if
// several are busy.
func (t *Table) Pin() uintptr {
	id := int(Enter())
	for range tries {
		slot := t.Installed(id)
		if slot == 0 {
			return 0
		}
		if at(slot).lock.CompareAndSwap(0, 1) {
			// Another goroutine may have seized the slot, emptied it and put it to
			// other use between the load and the lock.
			if t.Installed(id) == slot {
				return slot
			}
			at(slot).lock.Store(0)
		}
		id = (id + 1) % Max
	}
	return 0
}

// Unpin ends what Pin began. Its argument is what Pin returned.
func (t *Table) Unpin(slot uintptr) {
	if slot != 0 {
		at(slot).lock.Store(0)
	}
}

// Place returns where a slot is missing for this goroutine, or -1 if none is.
func (t *Table) Place() int {
	id := int(Enter())
	for range tries {
		if t.Installed(id) == 0 {
			return id
		}
		id = (id + 1) % Max
	}
	return -1
}

// wait takes the lock of each slot. A goroutine holds it for a few hundred
// instructions.
func wait(seized []Seized) {
	for _, s := range seized {
		for !at(s.Slot).lock.CompareAndSwap(0, 1) {
			runtime.Gosched()
		}
	}
}

func unlock(slot uintptr) { at(slot).lock.Store(0) }
