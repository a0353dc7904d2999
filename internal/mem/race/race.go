// Package race tells the race detector what it cannot see by itself, and hides
// from it what it would misread.
//
// The detector watches Go memory only. So it can be told about blocks only if these are
// in Go memory (build tag cheap_gomem) and the program is built with -race. Then Told is
// true. Otherwise the functions here do nothing, and no code of them is in the program.
//
// Free releases the address of the block and Malloc acquires it. So what the old owner
// of a block did happens before what the new owner does, and nothing else about
// allocating and freeing puts two goroutines in order.
//
// The locks and atomics of the heap must not put them in order either. Goroutines
// that merely allocate would look synchronized, and a user's race between them
// would go unreported. So the slow paths of the heap run between Enter and Leave.
// The detector then misses the locks that protect the heap's own memory, so the
// functions that touch it are marked go:norace. The runtime's code for maps cannot
// be marked: maps are touched outside of Enter and Leave.
package race

import "github.com/cheapgo/cheap/internal/mem/osmem"

// Told says whether the detector is told anything: the program is built with
// -race, and blocks lie in Go memory.
const Told = Build && osmem.GoBacked
