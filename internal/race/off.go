//go:build !race || !cheap_gomem

package race

// On says whether the detector is told anything.
const On = false

// Acquire makes what happened before the last Release of addr visible to the
// race detector in this goroutine.
func Acquire(addr uintptr) {}

// Release is the other half of Acquire.
func Release(addr uintptr) {}

func disable() {}
func enable()  {}
