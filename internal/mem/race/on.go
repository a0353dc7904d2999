//go:build race

package race

import (
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// Build says whether the program is built with -race.
const Build = true

// Acquire makes visible to the race detector, in this goroutine, what happened
// before the calls of Release for addr. It has no effect between Enter and Leave.
// addr must be in a block, because the detector keeps records of Go memory only.
func Acquire(addr uintptr) {
	if Told {
		runtime.RaceAcquire(osmem.Pointer(addr))
	}
}

// Release is the counterpart of Acquire. It adds to earlier calls of Release.
func Release(addr uintptr) {
	if Told {
		runtime.RaceReleaseMerge(osmem.Pointer(addr))
	}
}

// Enter makes the detector ignore locks and atomics in this goroutine, until Leave
// has been called as many times as Enter.
func Enter() {
	if Told {
		runtime.RaceDisable()
	}
}

// Leave is the counterpart of Enter.
func Leave() {
	if Told {
		runtime.RaceEnable()
	}
}

// Write tells the detector that this goroutine writes to the Go variable at p, from a function that is
// marked go:norace.
func Write(p unsafe.Pointer) { runtime.RaceWrite(p) }
