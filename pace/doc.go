// Package pace tells the garbage collector what lies outside its heap.
//
// The collector starts a cycle when the Go heap has grown. An object of 16 bytes
// that owns a megabyte of C hardly grows it, so what package own would release
// after a collection waits for one that does not come. [Start] mends that for
// the whole program:
//
//	if err := pace.Start(pace.Options{}); err != nil {
//		log.Fatal(err)
//	}
//	defer pace.Stop()
//
// From then on a collection is started when the Go heap and what is released
// automatically have grown together as GOGC says of the heap alone. Whoever
// allocates faster than a collection can give back is slowed down. It costs
// nothing while there is nothing outside the Go heap.
//
// What package own releases automatically, and what the heaps of package cheap
// hold, is counted already. A binding whose C library allocates by itself, and
// that releases with a cleanup of its own, reports sizes to an [Account].
// Blocks of a Heap that a Pool owns are counted by both, and so twice against a
// limit; those of own.Memory once.
//
// With a limit, the Go heap and everything else that is counted stay under one
// number: the runtime's memory limit follows, and what would exceed the limit
// gets an error, after collections have been tried. See [Options.Limit] and
// [SetLimit].
//
// The rule by which a collection is due is Node's and .NET's in Go's terms: see
// docs/architecture.md.
package pace
