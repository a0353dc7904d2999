//go:build !cheap_portable

package percpu

import (
	"runtime"
	_ "unsafe" // for linkname
)

// Portable says which of the two implementations this is.
const Portable = false

// Max is how many Ps have a slot. Ps with higher numbers have none.
const Max = 1024

// The runtime lists these two among the internals that it keeps for others
// (runtime/proc.go, since Go 1.23). They are the only ones that this module
// uses.

//go:linkname procPin runtime.procPin
func procPin() uint // an int there, and never negative

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// Enter pins the goroutine to its P and returns the number of the P, which no other
// goroutine gets until Leave. Numbers are below GOMAXPROCS.
func Enter() uint { return procPin() }

// Leave ends what Enter began.
func Leave() { procUnpin() }

// Wait returns when every section that began before the call has ended, be it one
// of Enter or of Pin. It must not be called in a section.
func Wait() { wait(nil) }

// Beyond reports whether id is the number of a P that does not run, because
// GOMAXPROCS has been lowered.
func Beyond(id int) bool { return id >= runtime.GOMAXPROCS(0) }

// Pin enters and returns the P's slot, or 0 if the P has none or it is seized.
func (t *Table) Pin() uintptr {
	id := procPin() // not Enter: each inlined call leaves a NOP, and Heap.Malloc has this one
	if id >= Max {
		return 0
	}
	// A plain load, which the compiler folds into one instruction; an atomic load
	// takes three. The word changes when a slot is installed, and then the load
	// returns the P's own slot or 0; and when the slot is seized, and then Seize
	// waits until the world has been stopped, which orders all.
	return t.slot[id]
}

// Unpin ends what Pin began. Its argument is what Pin returned.
func (t *Table) Unpin(slot uintptr) { procUnpin() }

// Place returns the place of the goroutine's P if the slot is missing there, and -1
// if it is not. The goroutine may be on another P by the time it returns.
func (t *Table) Place() int {
	if id := Here(); id < Max && t.Installed(int(id)) == 0 {
		return int(id)
	}
	return -1
}

// wait returns when each goroutine that may have loaded a seized slot has unpinned.
// A pinned goroutine is not preempted, so the world cannot be stopped before the
// goroutine has unpinned. Once the world has been stopped, every section that began
// before has ended, and sections that began after see the table as it is now.
func wait([]Seized) { Stop() }

func unlock(uintptr) {}
