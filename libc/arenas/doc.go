// Package arenas bounds the number of arenas of glibc's malloc. A program imports it for its effect:
//
//	import _ "github.com/cheapgo/cheap/libc/arenas"
//
// glibc makes an arena for each thread that allocates, up to eight for each processor. What one
// thread has freed, others cannot use, and it stays resident: in Go programs, whose threads live
// long and free what others have allocated, that is often more than what is in use. With this
// import there are as many arenas as GOMAXPROCS is when the program starts, and two at least. So
// threads share them. Small blocks are cached by thread all the same.
//
// The number is set before main, by a constructor in C, because glibc looks at it once, when the
// second thread allocates. GOMAXPROCS in the environment counts, the processors that the process may
// use, and the quota of its cgroup. MALLOC_ARENA_MAX and glibc.malloc.arena_max of GLIBC_TUNABLES
// in the environment win over this package. With another malloc than glibc's, and on systems other
// than Linux, it does nothing.
//
// A library does not import it: it changes the whole process.
package arenas
