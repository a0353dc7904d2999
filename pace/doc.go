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
// The Go heap and the bytes that collections can release may grow together by as much
// as GOGC allows for the heap alone. A collection starts so early that its releases
// have run by then: when half of these bytes have come, or later if few come during a
// collection. It runs in a goroutine of its own. While no collection is due, the
// package has no goroutine and no timer.
//
// A goroutine that takes memory while a collection is due or under way yields. If all
// of these bytes have come it waits, first come first served, until releases have made
// room, but for 100 ms at most. That slows down a program that allocates faster than
// collections release, so that its memory stays bounded. A goroutine waits in the
// calls that count memory: those of a Heap and of package own that take memory, and
// Account.Add. It never waits in a release function. If no release ends for 20 ms, as
// when the goroutine holds a lock that the releases need, waits are 1 ms long for a
// while.
//
// Options.MaxGCShare bounds the time that collections take. With GOGC=off collections
// start because of a limit only, and without a limit Start returns [ErrCollectorOff].
//
// The rule is the one that Node and .NET use, applied to Go; docs/architecture.md
// has it.
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
// handed out, to any library, and what of it other accounts count as well counts once,
// if their CHeap is set.
//
// # Limits
//
// With a limit, the Go heap and all counted memory stay below one number. The
// runtime's memory limit follows. A request that would exceed the limit gets an
// error, after collections were tried. See Options.Limit and [SetLimit].
//
// Requests are those of a Heap and of an own.Memory, [Account.Add], and Reserve of
// an own.Pool. Own counts a resource that C has allocated already. It is not
// refused at a limit, and waits there as it does at any bound. So without Reserve a
// limit is exceeded by one resource for each goroutine that allocates. A binding calls
// Reserve before C allocates.
package pace
