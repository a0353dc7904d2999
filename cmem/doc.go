// Package cmem shows the memory of the C heap: what C libraries allocate by themselves, which
// Go's tools do not see. To import it is enough:
//
//	import _ "github.com/cheapgo/cheap/cmem"
//
// Take it if the memory of a program with cgo is larger than its Go heap, and nobody knows which
// library holds it. The page of package inspect then shows the C heap as well; so do
//
//	err := cmem.WriteProfile(file)      // which calls have allocated what is in use: go tool pprof
//	libraries, err := cmem.Libraries()  // how much each library holds
//	mapped, err := cmem.Mapped()        // how much each has mapped without malloc, as a jemalloc of its own does
//	changed, err := cmem.Since(profile) // what has changed since cmem.Profile
//	suspects, err := watch.Look()       // a cmem.Watch finds stacks that keep growing
//	stop, err := cmem.Rotate(options)   // a profile each ten minutes, into a folder
//	stop, err := cmem.Record(file)      // all calls, for lab replay
//
// # How it works
//
// The executable defines malloc, free, and their like. A symbol of the executable comes before
// those of shared libraries, so all libraries of the process call these functions. Each counts,
// and calls the allocator behind: that of the C library, or jemalloc, mimalloc or tcmalloc if one
// is preloaded. Every pointer is the allocator's own; blocks have no header.
//
// It defines mmap, mremap and munmap, too, and counts what C code maps by itself, apart from the C heap.
//
// One block in 512 KiB is sampled, with the stack that allocated it: first the functions of C,
// and then those of Go that have called them. C code of this package calls no Go code and takes no
// lock of Go.
//
// # The garbage collector
//
// If package pace runs, what the C heap has in use counts for it: collections start because of C
// objects, too, and a binding that frees with runtime.AddCleanup need not change. Bytes that a pool
// of package own or a pace.Account counts by itself count once, if own.Options.CHeap or
// pace.AccountOptions.CHeap says that they are in the C heap. C code is never held back. So a
// program that allocates faster than its cleanups free is not bounded, as it is with package own.
//
// When the bytes in use have changed by a MiB, or by a 64th if that is more, C sets a timer,
// on which one goroutine waits. The bytes in use are an estimate by the samples, and by [Unseen] after a time with a rate
// of 0. A rate of many MiB makes the estimate as coarse.
//
// # Exact bytes
//
// With CHEAP_CMEM=exact in the environment [Stats].Live is the exact number of bytes in use, in the
// allocator's own sizes.
//
// # Turned on later
//
// With CHEAP_CMEM=ready in the environment nothing is counted or sampled until the program calls [SetRate], gets the signal
// of [SetRateOn], or is asked by a POST of package inspect. A pair of malloc and free takes 0.3 ns longer until then. What
// was allocated before is told apart: see [Unseen]. A rate of 0 ends samples later, but not the counts.
//
// # Labels
//
// Samples have the labels of the goroutine that has called C, as pprof.Do sets them: which route, tenant or query holds the C
// memory. See [LabelsOff].
//
// # What it costs
//
// A pair of malloc and free takes about a nanosecond longer, or 3 to 4 ns with exact bytes
// (6 ns with jemalloc). A sample takes a few microseconds, labels among them 0.1 to 0.5, and so does pthread_create of
// C code.
//
// # What a stack has
//
// The 96 innermost functions of C, and the 64 innermost of Go. If C has called these, those that have called C
// follow, and so on: 128 in all. A stack of a thread that C has made ends with the name of that, as in
// [thread worker], and the functions that have called pthread_create. Functions of C are missing where C calls itself more than 1,000 times, or was
// compiled without tables for unwinding.
//
// # Where it does nothing
//
// It needs Linux and cgo; [Off] says in a sentence why it does nothing elsewhere: without cgo, with
// the build tags cheap_nocmem, asan and msan, with CHEAP_CMEM=off in
// the environment, in a program whose C code is built with -fsanitize, that is linked with -static or brings a malloc of its own, and in a
// library or plugin of a program that does not have it. In the child of a fork nothing is sampled until it calls
// exec.
//
// With musl, and where libgcc is linked statically into a program and is older than GCC 13 or than glibc 2.35, the
// C part of a stack is only what has called malloc: an unwinder that takes a lock is not called.
//
// With glibc the program does not start without libgcc_s.so.1: take an image that has it, such as distroless/cc and
// not distroless/base.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package cmem
