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
// A collection starts when the Go heap and the bytes that collections can release
// have grown together by as much as GOGC allows for the heap alone. It runs in a
// goroutine of its own. While no collection is due, the package has no goroutine
// and no timer.
//
// A goroutine that allocates while a collection is due yields. It waits for the
// collection, for up to 10 ms, if there are twice as many bytes as the collection
// was due for. That slows down a goroutine that allocates faster than collections
// release. Options.MaxGCShare bounds the time that collections take. With GOGC=off
// a collection starts only for a request that meets a limit.
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
// # Limits
//
// With a limit, the Go heap and all counted memory stay below one number. The
// runtime's memory limit follows. A request that would exceed the limit gets an
// error, after collections were tried. See Options.Limit and [SetLimit].
//
// Requests are those of a Heap and of an own.Memory, [Account.Add], and Reserve of
// an own.Pool. Own counts a resource that C has allocated already. It is not
// refused at a limit, so a binding calls Reserve before C allocates.
package pace
