// Package cmem shows the memory of the C heap: what C libraries allocate by themselves, which
// Go's tools do not see. To import it is enough:
//
//	import _ "github.com/cheapgo/cheap/cmem"
//
// The executable then defines malloc, free, and their like. A symbol of the executable comes
// before those of shared libraries, so all libraries of the process call these functions. Each
// counts, and calls the allocator that it stands before: that of the C library, or jemalloc,
// mimalloc or tcmalloc if one is preloaded. Every pointer is the allocator's own; blocks have no
// header.
//
// One block in 512 KiB is sampled, with the stack that allocated it: first the functions of C,
// and then those of Go that have called them. [WriteProfile] writes them for go tool pprof,
// [Libraries] adds them up by library. Nothing calls back into Go, and no lock of Go's is taken.
//
// # What it costs
//
// A pair of malloc and free takes about a nanosecond longer. A sample takes a few microseconds.
//
// # What a stack has
//
// The 96 innermost functions of C and the 64 innermost of Go. If C calls itself more than 1,000
// times, or a part of it was compiled without tables for unwinding, the functions of Go are
// missing. A stack of Go that C has called ends with the frame [called from C].
//
// # Where it does nothing
//
// It needs Linux, cgo, and glibc 2.35 or newer; [Off] says in a sentence why it does nothing
// elsewhere: without cgo, with the build tags cheap_nocmem, asan and msan, with CHEAPCMEM=off in
// the environment, in a program that is linked statically or brings a malloc of its own, and in a
// library or plugin of a program that does not have it. In the child of a fork nothing is sampled
// until it calls exec.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package cmem
