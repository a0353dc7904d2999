//go:build memory.counters

package memory

// counters is true if an Allocator updates its counters. Each update reads the Stats
// of the heap, which takes a lock.
const counters = true
