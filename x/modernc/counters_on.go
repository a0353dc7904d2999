//go:build memory.counters

package memory

// counters says whether the counters of an Allocator change. Each change asks
// the heap for its counts, which takes a lock.
const counters = true
