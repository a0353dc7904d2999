package own

// Options configure a [Pool]. Release must be set. All other fields may be zero.
type Options struct {
	// Name is the name of the resource's type in panics and errors, such as
	// "git.Commit". The default is "own.Handle".
	Name string

	// Release destroys one or more resources. It must be set. It must not keep the slice.
	// state is State, or what [Handle.SetState] has given the parent of the resources, or
	// With.State. The package documentation, section Release functions, says
	// where Release runs, which locks it may take, what it must not refer to, and what
	// becomes of its errors and panics.
	//
	// libc.Destructor returns a Release that calls a C function, for many resources in
	// one cgo call.
	Release func(state any, resources []uintptr) error

	// State is passed to Release: a lock, a table of callbacks, a context of the C
	// library as an unsafe.Pointer. [Handle.SetState] sets another one for the children of an
	// owner, but not for their children.
	State any

	// OnReleaseError is told of the errors of Release that no Close returns. It runs
	// after Release, on the same goroutine. It must not end its goroutine. A panic
	// of OnReleaseError on a goroutine of this package ends the program.
	OnReleaseError func(ReleaseError)

	// Construct makes resources in advance, for [Handle.Make]. It fills the slice
	// from the front, and returns the number of resources that it made. If that is
	// fewer than the slice has room for, the error says why. Several calls may run at
	// the same time. libc.Constructor returns such a function.
	//
	// Construct makes addresses outside the Go heap, or with Numbers any numbers.
	Construct func(resources []uintptr) (n int, err error)

	// Numbers says that all resources are numbers that need not be addresses, such as
	// the names of textures. They are never converted to pointers. Their owners are
	// of the type [Number]. Methods that take or return a pointer panic.
	Numbers bool

	// Batch is the largest number of live owners that share a registration with
	// the collector. 0 means 256; at most 65,536 are allowed. 1 gives every owner
	// its own registration, which costs about as much as runtime.AddCleanup, and takes 0.4
	// KB of the Go heap. A batch that outlives collections may be split; see the package
	// documentation.
	Batch int

	// Pinned is the largest sum, in bytes, of the sizes of a batch's resources. 0
	// means 64 KiB. One live owner can delay the release of at most this many
	// bytes of unreachable resources. A resource of this size or more has a batch
	// of its own.
	Pinned int

	// Size is the size in bytes assumed for resources owned with size 0, and for
	// those made by Construct. 0 means 4 KiB. A size that is too large costs time: a batch
	// of 4 KiB resources has 64 KiB / 4 KiB = 16 of them instead of 256, and an owner costs
	// a quarter more. One that is too small lets one live owner delay the release of more
	// bytes than Pinned, and hides memory from package pace.
	Size int

	// CHeap says that the resources are in the C heap: C makes them by malloc, operator new
	// and the like. So package cmem, which counts the C heap, does not count them a second
	// time. Other resources are mappings, for example, or memory of a graphics card.
	CHeap bool

	// Unshared makes Use cheaper: it no longer counts. The program promises that
	// no owner is closed, and the pool not destroyed, while another goroutine may
	// be in Use.
	Unshared bool

	// Trace records the stack that made each owner, for the error of CloseWait and for
	// OnCollect. On amd64 and arm64 it costs 0.2 µs per owner if the stack made other
	// owners lately, and otherwise 1 µs. A [LeakLevel] can be set later, and can record
	// some owners only.
	Trace bool

	// OnCollect is called when the collector, not Close, caused a release: the
	// program forgot to close the owners. The call comes after the release, on a
	// goroutine that called Release: one of this package, or the one in [Queue.Drain]. A
	// panic of OnCollect on a goroutine of this package ends the program.
	OnCollect func(Collected)

	// Run says on which goroutines Release runs.
	Run Run

	// Parent is an owner that all resources of the pool depend on: each is released before
	// the parent's resource; see With.Parent, which is for children of many parents. The
	// parent must be open when NewPool is called. The pool does not keep it alive: after the
	// parent is closed, or found unreachable, Own returns [ErrClosed]. A pool with an owner
	// takes 2 KB of the Go heap. In a pool for many parents, each parent that has a child takes
	// 0.8 KB.
	Parent Owner
}

// A With is what [Handle.OwnWith] and [Number.OwnWith] are told of a resource. All fields may be
// zero.
type With struct {
	// Size is the size of the resource in bytes, as [Handle.Own] gets it. With a Room it
	// is 0, because the Room has the size.
	Size int

	// Parent is the owner of another resource that this one depends on, as a commit depends
	// on its repository. Children are released before their parent, also if all become
	// unreachable together, and if the parent's pool is destroyed. A parent that is closed, or
	// unreachable, is released after its last child: a child need not refer to the Go value of
	// its parent. A parent may have a parent itself.
	//
	// OwnWith returns [ErrClosed] if the parent is closed or owns nothing, and panics in a pool
	// with Options.Parent. The zero Owner stands for no parent. No method Owner returns it,
	// also of a Handle that owns nothing.
	Parent Owner

	// State, if not nil, is a state of the resource's own, such as the Go value of a callback.
	// Release gets it, in a call for this resource alone, in place of Options.State and of what
	// [Handle.SetState] has set.
	//
	// The state stays reachable until that call of Release has returned, or until the owner is
	// disowned. It may refer to the parent's owner. It must not refer to the owner of this
	// resource, to another owner of the pool, or to an owner of a pool whose resources depend on
	// the pool's: such an owner is never found unreachable, and only Close of it or of the pool release
	// its resource. [CheckReleased] finds this in a test.
	//
	// An owner with a state takes 120 bytes more of the Go heap, and is made with a lock, as a
	// child is; others cost the same. [Pool.Discard] does not know the state: if OwnWith returns
	// an error, the binding destroys the resource itself.
	State any

	// Room is what [Pool.Reserve] has returned for the resource. OwnWith ends it. It fails only
	// after the pool is closed, with [ErrPoolClosed], and if the parent is closed, with [ErrClosed]. OwnWith
	// panics if the Room is of another pool.
	Room Room
}

// plain reports whether OwnWith is Own.
func (w *With) plain() bool { return w.Parent == (Owner{}) && w.State == nil && w.Room.pool == nil }
