//go:build race && cheap_gomem

package race

import (
	"runtime"
	"unsafe"
)

// On says whether the detector is told anything.
const On = true

// Acquire makes what happened before the Releases of addr visible to the race
// detector in this goroutine. It has no effect between Enter and Leave. The
// address must be one of a block: the detector keeps its records beside Go
// memory only.
//
//go:nocheckptr
func Acquire(addr uintptr) { runtime.RaceAcquire(unsafe.Add(unsafe.Pointer(nil), addr)) }

// Release is the other half of Acquire. It adds to earlier releases.
//
//go:nocheckptr
func Release(addr uintptr) { runtime.RaceReleaseMerge(unsafe.Add(unsafe.Pointer(nil), addr)) }

// Enter makes the detector take no notice of locks and atomics in this
// goroutine, until as many calls of Leave.
func Enter() { runtime.RaceDisable() }

// Leave is the other half of Enter.
func Leave() { runtime.RaceEnable() }
