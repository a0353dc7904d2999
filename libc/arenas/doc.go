// Package arenas bounds the number of arenas of glibc's malloc. A program imports it for its effect:
//
//	import _ "github.com/cheapgo/cheap/libc/arenas"
//
// glibc makes an arena for each thread that allocates, up to eight for each processor. Memory that is
// free in one arena cannot be used by the threads of another, and stays resident: in Go programs, whose
// threads live long and free what other threads have allocated, that is often more than what is in use. With
// this import there are max(2, GOMAXPROCS) arenas, by the value when the program starts, and threads share
// them. Each thread still has its cache of small blocks.
//
// The number is set before main, by a constructor in C, because glibc looks at it once, when the
// second thread allocates. GOMAXPROCS in the environment counts, the processors that the process may
// use, and the quota of its cgroup. MALLOC_ARENA_MAX and glibc.malloc.arena_max of GLIBC_TUNABLES
// in the environment win over this package. With another malloc than glibc's, and on systems other
// than Linux, it does nothing.
//
// A library does not import it: it changes the whole process.
package arenas
