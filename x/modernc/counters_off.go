//go:build !memory.counters

package memory

// counters says whether the counters of an Allocator change.
const counters = false
