//go:build !race || !cheap_gomem

package race

// On says whether the detector is told anything.
const On = false

// Acquire makes what happened before the Releases of addr visible to the race
// detector in this goroutine. It has no effect between Enter and Leave.
func Acquire(addr uintptr) {}

// Release is the other half of Acquire.
func Release(addr uintptr) {}

// Enter makes the detector take no notice of locks and atomics in this
// goroutine, until as many calls of Leave.
func Enter() {}

// Leave is the other half of Enter.
func Leave() {}
