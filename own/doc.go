// Package own frees C resources when the Go values that own them become
// unreachable, at a fraction of the cost of [runtime.AddCleanup].
//
// A [Pool] takes charge of resources. A [Handle] owns one that is a typed pointer, a
// [Number] one that is a number, and an [Owner] either. [Options] say how resources are
// released: by which function, on which goroutine, in what batches. [Pool.OwnUnder] is
// for resources that depend on others, [Pool.OwnWith] for one whose release needs a Go value
// of its own, [Pool.Reserve] for a program with a limit. A
// [Memory] hands out memory with an owner, as a [Mem], [Bytes], [String] or [Group].
//
// # A binding
//
// The binding's type has a Handle in a field that is not exported, and the methods that
// its users need:
//
//	type Image struct{ h own.Handle[*C.image] }
//
//	var images = own.NewPool(own.Options{
//		Name:    "Image",
//		CHeap:   true, // malloc's, which package cmem does not count twice then
//		Release: libc.Destructor(unsafe.Pointer(C.image_free)), // image_free is not static
//	})
//
//	func NewImage(bytes int) (*Image, error) {
//		p := C.image_new(C.size_t(bytes))
//		if p == nil {
//			return nil, cheap.ErrNoMemory
//		}
//		m := new(Image)
//		if err := m.h.Own(images, p, bytes); err != nil {
//			C.image_free(p) // the pool did not take it
//			return nil, err
//		}
//		return m, nil
//	}
//
//	func (m *Image) Close() error { return m.h.Close() }
//
// A program that forgets Close leaks nothing. A type that needs more than the release
// at its end, such as a writer with a last block to write, does that in its own Close,
// before the Close of the Handle. The release of a writer that was forgotten does not.
//
// # How it works
//
// One [runtime.AddCleanup] for each value costs ten times what malloc and free
// cost through cgo. So owners share a registration. All owners of a batch point
// to a small Go object, the sentinel of the batch, and only the sentinel is registered
// with the collector. When the collector finds the sentinel unreachable, no owner
// of the batch is left. Then one call of the release function releases all
// resources of the batch that were not closed.
//
// A batch lists its resources as numbers, which the collector does not follow.
// Each has one word of state, and one atomic operation on that word decides
// every question: whether the owner is closed, whether it is in use, and which
// goroutine releases the resource. So an Owner may be copied, and a stale copy
// does no harm.
//
// # What it costs in memory
//
// While one owner of a batch is reachable, the resources of the batch's
// unreachable owners are not released either. Options.Batch bounds how many
// resources that can be, and Options.Pinned bounds their bytes of C memory. A
// large resource has a batch of its own. Small resources share a batch with
// others that are made at about the same time. A closed owner delays no release.
// A batch does not keep the Go values themselves alive.
//
// A batch that outlives collections is split if the pool has learned that its owners
// live for different times. From then on an owner delays the release of at most three
// others; in a pool of which few batches outlive collections, of at most 31. So some
// collections later the survivors of a population hold two to four times what they own.
// A [Memory] does not split its batches: a chunk returns to the heap as a whole.
//
// An owner keeps 8 bytes of the Go heap beyond the object that it is in, and 16 bytes
// outside of it that no account counts.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. There is one
// exception: Own and Make write to the Owner that they are given, so no other
// goroutine may use that Owner meanwhile. Release functions run with no lock
// held. While no release is due, the package has no goroutine and no timer, but for
// a timer of a pool with Options.Inline, which ends within milliseconds.
//
// CloseWait, Destroy and [Flush] are woken when what they wait for has happened. In a bubble of
// testing/synctest they look by the bubble's clock, because a worker outside of the bubble
// cannot wake them: they return late by a five-hundredth of the wait, and by a second at most.
//
// Own and Make may be called with a lock held that the release function takes, such
// as the lock of a C library: Own calls no release function, and Make only if the pool
// is destroyed meanwhile. With Options.Inline both call it, and no such lock may be held.
// Close, CloseWait, Destroy, Drain, Discard, Disown of a last
// child, and the end of a Use during which the owner was closed call it on the goroutine
// of the caller, who must not hold such a lock. Neither may the caller of Reserve, which
// waits for releases.
//
// # What is not promised
//
// What no package of this module promises is listed in
// [github.com/cheapgo/cheap], section What is not promised. In addition:
//
//   - A resource is not released at the moment when its owner becomes
//     unreachable. It is released after the collection that finds its whole batch
//     unreachable. That is at most the second one after the last owner of the batch
//     is dropped, in a [Pool] as in a [Memory]. It is the first one if the batch is
//     sealed, because it is full or because its one resource is large. It is the
//     second one if the batch is still open: then the first one seals it. A collection
//     that begins before the runtime has told
//     of the previous one does not count. It is one collection more, or two, if the
//     runtime has lost a cleanup, or a cleanup or finalizer of the program blocks; see
//     below.
//   - The collector does not know how large a resource is. Package pace tells it.
//   - A pointer into C memory does not keep its owner alive: see [Owner.Use] and
//     [Owner.Resource].
//   - When main returns, and at os.Exit, queued releases are dropped, unless the
//     program calls [Flush] before.
//
// # Cleanups that the runtime loses
//
// Go 1.26.8 and 1.27.0 may lose cleanups when GOMAXPROCS is lowered, which Go does by
// itself when the CPU limit of a container is lowered. A cleanup or a finalizer that
// never returns, in any package, stops the others. docs/porting.md has a program that
// shows the loss. It concerns each call of [runtime.AddCleanup] and
// [runtime.SetFinalizer] in the program. It does not concern the releases of this
// package, which need none of them to run. If a cleanup and a finalizer both never
// return, with fewer than eight Ps, releases come while the program owns more.
//
// # Environment
//
// The environment variable CHEAPOWN=leak turns automatic release off in all
// pools. It shows whether automatic release is the cause of a problem. Close and
// Destroy work as usual.
package own
