//go:build !memory.counters

package memory

// counters is true if an Allocator updates its counters.
const counters = false
