package own

// Options configure a [Pool] or a [Memory]. A Pool needs one of Release and
// Destructor. All other fields may be zero. For those of a Memory see
// [NewMemory].
type Options struct {
	// Name is the name of the resource's type in panics and errors, such as
	// "git.Commit". The default is "own.Owner".
	Name string

	// Release destroys one or more resources. The slice has Options.Words
	// entries per resource. Release must not keep the slice.
	//
	// Resources come as numbers. [cheap.Pointer] converts one that is an address:
	//
	//	func(resources []uintptr) {
	//		for _, r := range resources {
	//			C.image_free((*C.image)(cheap.Pointer(r)))
	//		}
	//	}
	//
	// go vet reports the conversion unsafe.Pointer(r). For blocks of package cheap
	// it ends the program under the race detector with the build tag cheap_gomem,
	// where blocks are Go memory.
	//
	// Release runs on a goroutine of this package, in Close, in Destroy or in
	// Drain. Several calls may run at the same time. Release may own, close and
	// allocate, also in its own pool.
	//
	// Release must not refer to an owner of its own pool, nor to an object that
	// refers to one. The pool keeps reachable what Release refers to, until all
	// resources are released: such an owner is never found unreachable, its
	// resource and those of its batch are not released, and the pool is not
	// collected. This is easily done with a closure. If a context has a lock, a
	// pool and an owner in that pool, then
	//
	//	func([]uintptr) { context.mu.Lock(); ... }
	//
	// refers to the owner. Put what Release needs into an object of its own, such
	// as a new(sync.Mutex) to which context and Release both refer. A pointer to a
	// field refers to the whole object. The same holds for Construct and
	// OnCollect. [CheckReleased] finds this in a test.
	//
	// If Release panics, all resources of the call count as released. In Close,
	// Drain and Destroy the panic reaches the caller. Anywhere else it ends the
	// program. The same holds if Release ends its goroutine (runtime.Goexit), but
	// then a worker or Thread goes on with the next call on another goroutine.
	Release func(resources []uintptr)

	// Destructor destroys resources by a C function, a whole batch in one cgo
	// call. libc.Destructor makes one.
	Destructor Destructor

	// NoCallback promises that the C function of Destructor never calls into Go.
	// The call may then be checked: a C function that breaks the promise may end
	// the program.
	NoCallback bool

	// Construct makes resources in advance, for [Pool.Make]. It fills the slice
	// from the front, with Options.Words entries per resource, and returns the
	// number of resources that it made. If that is fewer than the slice has room
	// for, the error says why. Several calls may run at the same time.
	// libc.Constructor returns such a function for resources of one word.
	//
	// Construct makes addresses outside the Go heap, or handles; see Handles.
	Construct func(resources []uintptr) (n int, err error)

	// Handles says that Construct makes handles: numbers that need not be
	// addresses, such as the names of textures. They are never converted to
	// pointers: their owners have [Owner.UseHandle], [Owner.Handle] and
	// [Owner.DisownHandle], and [Owner.Use], [Owner.Resource] and [Owner.Disown]
	// panic. With two words per resource this is so without Handles.
	Handles bool

	// Words is the number of words per resource: 1, or 2 for a handle and a
	// context. 0 means 1. Release and Construct see the words of a resource side
	// by side.
	Words int

	// Batch is the largest number of live owners that share a registration with
	// the collector. 0 means 256; at most 65,536 are allowed. 1 gives every owner
	// its own registration.
	Batch int

	// Pinned is the largest sum, in bytes, of the sizes of a batch's resources. 0
	// means 64 KiB. One live owner can delay the release of at most this many
	// bytes of unreachable resources. A resource of this size or more has a batch
	// of its own.
	Pinned int

	// Size is the size in bytes assumed for resources owned with size 0, and for
	// those made by Construct. 0 means 4 KiB.
	Size int

	// Unshared makes Use cheaper: it no longer counts. The program promises that
	// no owner is closed, and the pool not destroyed, while another goroutine may
	// be in Use.
	Unshared bool

	// Trace records the stack that made each owner, for the error of Destroy and
	// for OnCollect. It costs about a microsecond per owner.
	Trace bool

	// OnCollect is called when the collector, not Close, caused a release: the
	// program forgot to close the owners. The call comes after the release, on a
	// goroutine that called Release: one of this package, or the one in Drain. A
	// panic of OnCollect on a goroutine of this package ends the program.
	OnCollect func(Collected)

	// Workers is the number of workers of the pool's own. Workers are goroutines
	// that release what the collector found. With 0 the pool shares a few workers
	// with all other pools, and they take turns. A pool whose Release blocks for
	// long, on a network or a slow library, has Workers of its own: as many of its
	// calls run at a time, and other pools do not wait for them. Workers end when
	// nothing is queued.
	Workers int

	// Drain leaves all releases to [Pool.Drain], for libraries that are bound to
	// one thread which the program owns. Close, Destroy and the collector only
	// queue them.
	Drain bool

	// Thread is Drain without a call of Pool.Drain: all releases, those of Close
	// and Destroy included, run on one goroutine of the pool, one after the other.
	// The goroutine is locked to an operating system thread. Both end when nothing
	// is queued, so Release finds no state of an earlier thread: it makes a GL
	// context current itself. A thread for a single release costs about 90 µs.
	Thread bool

	// MaxQueued makes Own and Make return [ErrQueueFull] while that many releases
	// are queued for Drain or Thread. 0 sets no bound.
	MaxQueued int

	// Parent is an owner that all resources of the pool depend on. Each of them
	// is released before the parent's resource; see [Pool.OwnUnder]. The parent
	// must be open when NewPool is called. The pool does not keep it alive: after
	// the parent is closed, or found unreachable, Own returns [ErrClosed].
	Parent *Owner
}
