// Package race tells the race detector what it cannot see by itself, and keeps
// from it what it should not: when a block was freed and is handed out again,
// what its old owner did comes before what the new one does, and nothing else
// about allocating and freeing puts two goroutines in order.
//
// The detector knows Go memory only, so this matters only when spans lie in Go
// memory (build tag cheap_gomem) and the program is built with -race; without
// both every function here is empty. With both, Free releases and Malloc
// acquires on the block's address. The locks and atomics of the heap must then
// add no edge of their own, or goroutines that merely allocate would look
// synchronized and a user's race between them would go unreported: so the slow
// paths run between Enter and Leave. What they touch is hidden from the
// detector as well, by go:norace; maps cannot be, and are touched outside.
package race
