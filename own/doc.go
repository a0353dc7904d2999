// Package own frees C resources when the Go values that own them become
// unreachable, at a fraction of the cost of [runtime.AddCleanup].
//
// Use it where Go values wrap C resources, are made in great numbers, and may be
// dropped without Close. For a few values that live long, AddCleanup costs little enough.
//
//	var images = own.NewPool(own.Options{
//		Name:    "Image",
//		CHeap:   true, // C's malloc has the memory of an image
//		Release: libc.Destructor(unsafe.Pointer(C.image_free)), // not static
//	})
//
//	type Image struct{ h own.Handle[*C.image] }
//
//	func (m *Image) own(p *C.image, bytes int) error { return m.h.Own(images, p, bytes) }
//	func (m *Image) Close() error                    { return m.h.Close() }
//
// A program that forgets Close leaks nothing.
//
// # A binding
//
// A [Pool] takes charge of resources. A [Handle] owns a resource that is a typed
// pointer, a [Number] one that is a number. [Options] say how resources are released:
// by which function, on which goroutine, in what batches. A binding's type has the
// Handle in a field that is not exported, and the methods that its users need:
//
//	func NewImage(bytes int) (*Image, error) {
//		p := C.image_new(C.size_t(bytes))
//		if p == nil {
//			return nil, cheap.ErrNoMemory
//		}
//		m := new(Image)
//		if err := m.own(p, bytes); err != nil {
//			C.image_free(p) // the pool did not take it
//			return nil, err
//		}
//		return m, nil
//	}
//
// A type that needs more than the release at its end, such as a writer with a last block
// to write, does that in its own Close, before the Close of the Handle. If such a writer
// is forgotten, its release does not write the last block.
//
//   - With.Parent is for resources that depend on others: children before parents.
//   - With.State is for a resource whose release needs a Go value of its own.
//   - [Handle.Make] hands out resources that are made in advance, many in one call of C.
//   - [Pool.Reserve] is for a program with a limit.
//   - A [Callback] is a function that C calls, and that may refer to its owner.
//   - A [Memory] hands out memory with an owner, as a [Mem], [Bytes] or [Group].
//
// # Release functions
//
// Options.Release gets resources as uintptrs. [cheap.Pointer] converts one that is an
// address:
//
//	func(_ any, resources []uintptr) error {
//		for _, r := range resources {
//			C.image_free((*C.image)(cheap.Pointer(r)))
//		}
//		return nil
//	}
//
// go vet reports the conversion unsafe.Pointer(r). For blocks of package cheap it ends
// the program under the race detector with the build tag cheap_gomem, where blocks are
// Go memory.
//
// The slice is valid until Release returns: its memory is used again, for other resources
// or by the operating system. Release may keep a copy.
//
// One call. All resources of a call have one parent, or none; a resource with a state of
// its own has a call of its own. What the collector found is released in calls of many
// resources, from several batches: as many as took two milliseconds lately, and 32,768 at
// most, in the order of their addresses. If Release suddenly becomes slow, one such call
// takes long. In a pool with Options.Batch 1 a call has one resource.
//
// Goroutines and locks. Release runs on a goroutine of this package, in Close, in CloseWait,
// in Drain, or where section Concurrency says. Several calls may run at the same time.
// Release may own, close and allocate, also in its own pool. It may take a lock that the
// program holds while it calls Own, unless the pool has [Inline], but none that the program
// holds while it calls Use, TryUse, Close, CloseWait or Drain.
//
// References. Release must not refer to an owner of its own pool, nor to an object that
// refers to one. The pool keeps reachable what Release refers to, until all resources are
// released. So such an owner is never found unreachable, its batch is not released, and the
// pool is not collected. A closure does this easily: if a context has a lock, a pool, and an
// owner in that pool, then
//
//	func(any, []uintptr) error { context.mu.Lock(); ... }
//
// refers to the owner. A pointer to a field refers to the whole object. The remedy is an
// object for what Release needs, such as a new(sync.Mutex): context refers to it, and
// Options.State is it. The same holds for Options.State, the states of OwnWith, Construct,
// OnCollect and OnReleaseError. cheapvet finds plain cases, and [CheckReleased] others in a test.
//
// Errors. All resources count as released when Release returns, also with an error: it is
// not called for them again. What a C function may refuse to destroy, as sqlite3_close
// does, Release must destroy in another way, or leave behind. [Handle.Close] returns the
// error if it calls Release. Options.OnReleaseError gets all other errors: for resources
// that the collector found, for those whose last Use or last child ended after Close, and
// for those that Drain, Thread or CloseWait of a pool release.
//
// Panics. If Release panics, all resources of the call count as released. In Close, Drain
// and CloseWait the panic reaches the caller. With [Inline] it may reach the caller of
// Own or Make, as an error that names the pool. Anywhere else it ends the program. The same
// holds if Release ends its goroutine (runtime.Goexit), but then a worker or a [Thread]
// goes on with the next call on another goroutine.
//
// # How it works
//
// One [runtime.AddCleanup] for each value costs ten times what malloc and free cost
// through cgo. So owners share a registration:
//
//	owner --+
//	owner --+--> sentinel --> batch: the resources, as numbers, and their states
//	owner --+
//	                ^
//	                registered with the collector
//
// When the collector finds the sentinel unreachable, no owner of the batch is left. Then
// the resources of the batch that were not closed are released.
//
// The collector does not follow the numbers. Each resource has one word of state, and one
// atomic operation on it decides every question: whether the owner is closed, whether it is
// in use, and which goroutine releases the resource. So a Handle may be copied, and a stale
// copy does no harm.
//
// # What it costs in memory
//
// While one owner of a batch is reachable, the resources of the batch's unreachable owners
// are not released. Options.Batch bounds the number of these resources, and Options.Pinned
// their bytes of C memory. A large resource has a batch of its own. Small ones share a
// batch with others that are made at about the same time. A closed owner delays no release.
// A batch does not keep the Go values themselves alive.
//
// A batch that outlives collections is split if the pool has learned that its owners live
// for different times. From then on an owner delays the release of at most 3 others, or 31
// if few of the pool's batches outlive collections, or of none if the resources have half a
// KiB or more and most batches outlive collections. So some collections later the survivors
// of a population hold one to four times what they own. A [Memory] does not split its
// batches: a chunk returns to the heap as a whole.
//
// An owner keeps 8 bytes of the Go heap beyond the object that it is in, and 16 bytes
// outside of it that no account counts.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine, with one exception: Own and
// Make write to the Handle that they are called with, so no other goroutine may use it
// meanwhile. Release functions run with no lock of this package held. While no release is
// due, the package has no goroutine. It has no timer either, except in a pool with
// [Inline], where a timer ends within milliseconds.
//
// Some calls may release on the goroutine of the caller. The caller must hold no lock that a
// release function takes:
//
//	Close, CloseWait, Drain, Discard                  yes
//	Disown of a last child                            yes
//	the end of a Use, if the owner was closed in it   yes
//	Reserve                                           no, but it waits for releases
//	Own, Make                                         with Inline; Make also if the
//	                                                  pool is destroyed meanwhile
//
// So without Inline, Own may be called with a lock held that the release function
// takes, such as the lock of a C library.
//
// CloseWait and [Flush] are woken when what they wait for has happened. In a bubble
// of testing/synctest they poll by the bubble's clock, because a worker outside of the bubble
// cannot wake them: they return late by 1/500 of the wait, and by a second at most.
//
// # When a forgotten resource is released
//
// By which collection after the last owner of its batch was dropped:
//
//	the batch is sealed   the first    it is full, or its one resource is large
//	the batch is open     the second   the first one seals it
//
// A collection that begins before the runtime has reported the previous one does not count.
// The release takes one or two collections more if the runtime has lost a cleanup, or if a
// cleanup or finalizer of the program blocks.
//
// Go 1.26.8 and 1.27.0 may lose cleanups when GOMAXPROCS is lowered, which Go does by itself
// when the CPU limit of a container is lowered; docs/porting.md has a program that shows it. A
// cleanup or a finalizer that never returns, in any package, stops the others. Both problems
// concern each call of [runtime.AddCleanup] and [runtime.SetFinalizer] in the program. The
// releases of this package need none of these calls to run. With fewer than eight Ps, if a
// cleanup and a finalizer both never return, resources are released only when the program
// makes more owners.
//
// # What is not promised
//
// What no package of this module promises is listed in
// [github.com/cheapgo/cheap], section What is not promised. In addition:
//
//   - A resource is not released at the moment when its owner becomes unreachable, but
//     within two collections after the last owner of its batch is dropped, in a [Pool] as in a
//     [Memory]; within four, where the runtime has lost a cleanup, or one of the program blocks.
//   - The collector does not know how large a resource is. Package pace tells it.
//   - A pointer into C memory does not keep its owner alive: see [Handle.Use] and
//     [Handle.Pointer].
//   - When main returns, and at os.Exit, queued releases are dropped, unless the
//     program calls [Flush] before.
//
// # Environment
//
// The environment variable CHEAP_OWN=leak turns automatic release off in all pools. It shows
// whether automatic release is the cause of a problem. Close works as usual.
//
// CHEAP_OWN=check looks for mistakes, and makes Own slower. Own panics for memory of Go, and
// Own and Discard panic for a pointer that has an owner already, in any pool: it would be
// released twice. So the check is not for programs in which C counts references, and several
// owners have one pointer. A line on stderr, once for each pool, says that all resources were
// made on one goroutine and one is released on another, as in most programs that leave releases
// to the collector: only a library that is bound to a thread needs a [Queue] or [Thread] then.
// Another line names a pool without Options.Size that takes a resource of size 0.
// Owners of Make are not checked.
package own
