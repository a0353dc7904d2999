// Package pace makes the garbage collector see memory outside the Go heap.
//
// The collector starts a cycle when the Go heap has grown. An object of 16 bytes
// that owns a megabyte of C memory hardly makes it grow. So resources that
// package own releases after a collection wait for a collection that does not
// come. [Start] changes that for the whole program:
//
//	if err := pace.Start(pace.Options{}); err != nil {
//		log.Fatal(err)
//	}
//	defer pace.Stop()
//
// From then on a collection is started when the Go heap and the bytes that can be
// released automatically have grown together by as much as GOGC allows for the
// heap alone. A goroutine that allocates faster than collections release is
// slowed down. Without memory outside the Go heap the package costs nothing.
//
// The resources of package own and the heaps of package cheap are counted
// already. A binding that releases with cleanups of its own, and whose C library
// allocates by itself, reports sizes to an [Account]. Blocks of a Heap that a
// Pool owns are counted by both, hence twice against a limit; blocks of an
// own.Memory are counted once.
//
// With a limit, the Go heap and all counted memory stay below one number. The
// runtime's memory limit follows. A request that would exceed the limit gets an
// error, after collections were tried. See Options.Limit and [SetLimit].
//
// The rule for when a collection is due is the one that Node and .NET use, applied to Go;
// docs/architecture.md has it.
package pace
