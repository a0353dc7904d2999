// Package race tells the race detector what it cannot see by itself: that a
// block which was freed and handed out again has passed from one goroutine to
// the other.
//
// The detector knows Go memory only, so this matters only when spans lie in Go
// memory (build tag cheap_gomem) and the program is built with -race; without
// both every function here is empty. With both, Free releases and Malloc
// acquires on the block's address. The locks inside the heap must then add no
// edge of their own, or two goroutines that merely allocate would look
// synchronized and a user's race between them would go unreported: that is
// what [Mutex] is for. Functions that touch what such a lock protects, or the
// state of a P, are marked go:norace.
package race

import "sync"

// A Mutex is a sync.Mutex that the race detector takes no edge from.
type Mutex struct{ mu sync.Mutex }

// Lock locks m.
func (m *Mutex) Lock() {
	disable()
	m.mu.Lock()
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	m.mu.Unlock()
	enable()
}
