//go:build !cheap_portable

package percpu

import (
	"runtime"
	_ "unsafe" // for linkname
)

// Portable says which twin this is.
const Portable = false

// Max is how many Ps have a slot. Those beyond do without.
const Max = 1024

// The runtime lists these two among the internals that it keeps for others
// (src/runtime/proc.go, since Go 1.23).

//go:linkname procPin runtime.procPin
func procPin() uint // an int there, and never negative

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// Pin pins the goroutine to its P and returns the P's slot, or 0 where it has
// none or somebody has seized it.
func (t *Table) Pin() uintptr {
	id := procPin()
	if id >= Max {
		return 0
	}
	// A plain load, which the compiler folds into one instruction, where an
	// atomic one takes three. The word changes when a slot is installed, with a
	// goroutine's own slot or none as the outcome, and when one is seized; and
	// who seizes waits until the world has been stopped, which orders all.
	return t.slot[id]
}

// Unpin ends what Pin began. It takes what Pin returned.
func (t *Table) Unpin(slot uintptr) { procUnpin() }

// Place returns where a slot is missing for the P that the goroutine runs on,
// and -1 if none is. By the time it returns, the goroutine may be elsewhere.
func (t *Table) Place() int {
	id := procPin()
	procUnpin()
	if id < Max && t.Installed(int(id)) == 0 {
		return int(id)
	}
	return -1
}

// Beyond says whether id is the place of a P that does not run: GOMAXPROCS has
// been lowered since it had one.
func Beyond(id int) bool { return id >= runtime.GOMAXPROCS(0) }

// Enter pins the goroutine to its P and returns the P's number, which is that of
// nobody else until Leave. Ps are numbered from 0 up to GOMAXPROCS. It is for
// who keeps a place for each P by himself; the rules are those of Pin.
func Enter() uint { return procPin() }

// Leave ends what Enter began.
func Leave() { procUnpin() }

// Wait returns when each section has ended that had begun before, be it one of
// Pin or of Enter. It must not be called in one.
func Wait() { wait(nil) }

// wait returns when each goroutine that may have loaded a seized slot has
// unpinned. A pinned goroutine is not preempted, so it cannot be stopped
// together with the world before it has unpinned; once the world has been
// stopped, every section that began before has ended, and those that began
// after see the table as it is now. ReadMemStats is the call whose
// documentation says that it stops the world.
func wait([]Seized) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
}

func unlock(uintptr) {}

// Hint returns a number below n that goroutines on different Ps do not share, as
// long as there are no more than n Ps. By the time it returns, the goroutine may
// be elsewhere.
func Hint(n int) int {
	id := int(procPin())
	procUnpin()
	if id >= n {
		return id % n
	}
	return id
}
