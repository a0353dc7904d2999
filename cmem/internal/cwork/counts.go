//go:build cgo && linux

package cwork

// #include <stdint.h>
// int cwork_counts(int64_t calls, uint64_t to[3]);
// int cwork_jemalloc(uint64_t to[2]);
import "C"

// Counts makes so many calls in eight threads that come and go, and returns how many blocks they
// have made and freed, of how many bytes, and how many threads there were.
func Counts(calls int) (mallocs, frees, bytes, threads int) {
	var n [3]C.uint64_t
	threads = int(C.cwork_counts(C.int64_t(calls), &n[0]))
	return int(n[0]), int(n[1]), int(n[2]), threads
}

// Jemalloc returns how many blocks jemalloc has made and freed, if it is there.
func Jemalloc() (mallocs, frees int, ok bool) {
	var n [2]C.uint64_t
	ok = C.cwork_jemalloc(&n[0]) != 0
	return int(n[0]), int(n[1]), ok
}
