//go:build cgo && linux

package cwork

/*
#include <stddef.h>
#include <stdint.h>

void *cwork_map(int depth, void *at, size_t n, int prot, int flags);
void *cwork_remap(int depth, void *old, size_t was, size_t n, void *at);
void cwork_map_all(void **p, const size_t *n, int count);
int cwork_unmap(void *p, size_t n);
void *cwork_je_pages_map(size_t n);
int64_t cwork_map_pairs(int pairs, size_t n, int by_system, int touched);
int cwork_mappings(int rounds, uint32_t random);
*/
import "C"

import (
	"time"
	"unsafe"
)

// Map maps memory below that many frames of C: with the flags of MAP_ANONYMOUS and others. It returns nil if it
// cannot.
func Map(depth int, at unsafe.Pointer, n, prot, flags int) unsafe.Pointer {
	return C.cwork_map(C.int(depth), at, C.size_t(n), C.int(prot), C.int(flags))
}

// Remap changes the length of a mapping, which may move: to that address if it is not nil.
func Remap(depth int, old unsafe.Pointer, was, n int, at unsafe.Pointer) unsafe.Pointer {
	return C.cwork_remap(C.int(depth), old, C.size_t(was), C.size_t(n), at)
}

// MapAll makes mappings of these sizes in a thread that has made none before.
func MapAll(sizes []uintptr) []unsafe.Pointer {
	all := make([]unsafe.Pointer, len(sizes))
	C.cwork_map_all(&all[0], (*C.size_t)(unsafe.Pointer(&sizes[0])), C.int(len(all)))
	return all
}

// Unmap reports whether it could.
func Unmap(p unsafe.Pointer, n int) bool { return C.cwork_unmap(p, C.size_t(n)) == 0 }

// MapJemalloc maps by a function that has a name like one of jemalloc.
func MapJemalloc(n int) unsafe.Pointer { return C.cwork_je_pages_map(C.size_t(n)) }

// MapPairs makes and ends so many mappings, by the C library or by the system, and writes to their pages. It returns the
// processor time.
func MapPairs(pairs, n int, bySystem, touched bool) time.Duration {
	number := map[bool]C.int{true: 1}
	return time.Duration(C.cwork_map_pairs(C.int(pairs), C.size_t(n), number[bySystem], number[touched]))
}

// Mappings makes, cuts, moves and ends mappings. It returns how many of their pages were wrong.
func Mappings(rounds int, seed uint32) int {
	return int(C.cwork_mappings(C.int(rounds), C.uint32_t(seed)))
}
