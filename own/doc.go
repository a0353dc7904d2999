// Package own releases what C made when the Go value that owns it cannot be
// reached any more, for little more than the release itself costs.
//
// A binding's type embeds an [Owner], and a [Pool] takes charge of the resource:
//
//	type Image struct{ own.Owner }
//
//	var images = own.NewPool(own.Options{
//		Name:       "Image",
//		Destructor: libc.Destructor(C.image_free),
//	})
//
//	func Open(name string) (*Image, error) {
//		p := C.image_open(name)
//		m := new(Image)
//		if err := images.Own(&m.Owner, unsafe.Pointer(p), int(C.image_bytes(p))); err != nil {
//			C.image_free(p)
//			return nil, err
//		}
//		return m, nil
//	}
//
// Image has Close now, and a program that forgets it leaks nothing.
//
// # How it works
//
// [runtime.AddCleanup] for each value costs ten times what malloc and free do by
// cgo. So owners share a registration. All owners of a batch point to a small
// Go object, the batch's token, and it is the token that is registered. When the
// collector finds it unreachable, no owner of the batch is left, and one call of
// the release function releases all resources of the batch that were not closed.
// They are listed in the batch's ledger, as numbers that the collector need not
// follow, with one word of state for each: every question (is it closed, who
// uses it, who releases it) is settled by one atomic operation on that word, so
// an Owner may be copied, and a stale one does no harm.
//
// # What it costs in memory
//
// As long as one owner of a batch lives, the resources of the others that were
// forgotten live too. That is what Options.Batch and Options.Pinned bound, the
// first by number, the second by bytes of C memory: a large resource has a batch
// of its own, small ones share one with others that are made at about the same
// time. An owner that is closed pins nothing. The Go values themselves are not
// kept by their batch.
//
// # Concurrency
//
// Everything may be called from any goroutine, with the one exception that Own
// and Make write to the Owner that they are given. Release functions run with no
// lock held. While nothing is to be released there is no goroutine and no timer.
//
// # What is not promised
//
// A resource is not released when its owner becomes unreachable, but after the
// collection that finds its whole batch unreachable, which is the second one
// from then on for a batch that was still open, and the third for a [Memory]; and the collector does not know
// how large the resource is. Whoever holds a pointer into C memory keeps nothing
// alive with it: see [Owner.Use] and [Owner.Resource]. At the end of the program
// what is queued is dropped, unless [Flush] is called.
//
// The environment variable CHEAPOWN=leak turns automatic release off, in all
// pools, to find out whether it is to blame for something. Close and Destroy
// work as ever.
package own
