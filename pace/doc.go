// Package pace makes the garbage collector count memory outside the Go heap.
//
// The collector starts when the Go heap has grown. A Go object of 16 bytes that
// owns a megabyte of C memory hardly makes it grow. So the resources that package
// own releases after a collection wait for a collection that does not come.
// [Start] changes that for the whole program:
//
//	if err := pace.Start(pace.Options{}); err != nil {
//		log.Fatal(err)
//	}
//	defer pace.Stop()
//
// From then on collections also start because of memory outside the Go heap.
// [Options] has a limit for all memory of the program. [ReadStats] shows what
// pacing does and costs, and [Accounts] lists who holds memory. An [Account] is
// for a binding whose C library allocates by itself.
//
// The main function calls Start; a library does not. A program without memory
// outside the Go heap pays nothing.
//
// # When a collection starts
//
// Without a limit the Go heap and the bytes that collections can release may grow together by as much as
// GOGC allows for the heap alone, and by what a collection is worth: 64 MiB, or two thirds of the live heap
// if that is more, and twice that while collections free little. This is the bound. A collection starts so
// early that its releases have run before the bound is reached: when half of the growth has come, or later
// if few bytes come during a collection.
//
// With a limit of which half or more is free, a collection costs time, and what is dead costs room. It starts
// when what is dead has taken as much room, for as long, as the processor time of a collection is worth:
// at a constant rate that is after a number of bytes that grows with the square root of the room. With less
// room it starts so early that its releases have run before goroutines have to wait.
//
// A collection runs in a goroutine of its own. While no collection is
// due, there is no limit, and less than 8 MiB are counted, the package has no goroutine and no timer.
//
// Goroutines that take memory yield now and then while a collection is due or under way: where there is
// room, only if twice the bytes have come for which it was due. At the
// bound a goroutine waits, first come first served, until releases have made room, but for 100 ms
// at most, or a second with a limit. That slows down a program that allocates faster than
// collections release, so that its memory stays bounded. While a quarter of a limit is free,
// or an eighth if resources are small, nobody waits before half of that is taken. A goroutine waits in the
// calls that count memory: those of a Heap and of package own that take memory, and
// those of an Account. It never waits in a release function. If no release ends for 20 ms, or 200 ms with
// a limit, as when the goroutine holds a lock that the releases need, waits are 1 ms long for a
// while.
//
// Options.MaxGCShare bounds the time that collections take. With GOGC=off collections
// start because of a limit only, and without a limit Start returns [ErrCollectorOff].
//
// [Stats.Decision] says when the next collection begins, and why. docs/internals.md has the rules.
//
// # What is counted
//
// The resources of package own and the heaps of package cheap are counted without
// an Account. A binding that releases with cleanups of its own, and whose C
// library allocates by itself, reports sizes to an Account. Blocks of a Heap that
// a Pool owns are counted by both, hence twice against a limit; blocks of an
// own.Memory are counted once.
//
// A program that imports package cmem needs no Account: cmem counts what malloc has
// handed out, to any library. Bytes of these that another account counts as well count once
// if its CHeap is set.
//
// # Limits
//
// A limit is about what the kernel counts, because the kernel kills by that: the resident memory of
// the process, or what its cgroup is charged. Accounts say who takes memory, and
// when; sizes that are declared wrongly, by a factor of five, do no harm. When there is little room
// the package has releases run, gives free memory back to the system, of malloc, of heaps and of Go,
// collects, slows down the goroutines that make owners, by a second each at most, and
// refuses requests, in this order. While there is a limit, a goroutine reads what is
// resident 10 to 1,000 times a second, more often the faster that grows. See Options.Limit and [SetLimit].
//
// Memory that Go can reach, and that the program can do without, such as a cache in C, gives way before that, when
// less than an eighth of the limit is free: see [OnPressure].
//
// glibc's malloc has arenas, up to one for each thread, and keeps free memory in each: often more than
// is in use. A program with a limit imports github.com/cheapgo/cheap/libc/arenas, which bounds the number
// of arenas. A program without that import may be killed where one with it lives: Stats.Arenas and
// the errors say so. With package libc, which most bindings import, the package knows what
// glibc, jemalloc and tcmalloc have free, and gives it back: when there is little room, and, with or
// without a limit, when more than 8 MiB and an eighth of what is in use are free for some seconds.
// The latter takes one percent of the time at most, and less where the program needs the
// memory again at once. While 8 MiB or more are counted, glibc gives nothing back by itself, but what an arena
// has free at its end beyond 256 MiB or an eighth of the limit: see arenas.KeepPages of package libc/arenas, which
// is for programs without this package.
//
// With jemalloc a small container needs MALLOC_CONF=percpu_arena:percpu as well. mimalloc does
// not tell how much it has free, so a program with mimalloc may be killed. docs/reference/figures.md lists, for each
// malloc, which programs were killed.
//
// Requests are those of a Heap and of an own.Memory, [Account.Wait], and Reserve of
// an own.Pool. [Account.Add] is refused at once. Own counts a resource that C has allocated already. It is not
// refused at a limit, and waits there as it does at any bound. So a binding calls Reserve before C
// allocates, if its users should get an error before the kernel kills the process. Without Reserve
// the package keeps room for what goroutines allocate before they call Own: the most lately.
package pace
