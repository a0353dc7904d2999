package own

import (
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/ledger"
)

// An Owner owns a resource until it is closed. While any copy of the Owner is
// reachable the resource stays. After all copies become unreachable the resource
// is released. A binding's type embeds an Owner, and so gets its methods:
//
//	type Image struct {
//		own.Owner
//		width, height int
//	}
//
// [Pool.Own] and [Pool.Make] put a resource into an Owner. The value that embeds
// the Owner may be of any type, may refer to anything, and may be on the heap or
// on the stack. All copies refer to the same resource, which is released once,
// whichever copy is closed.
//
// The zero value owns nothing and counts as closed. Methods may be called from
// any goroutine, but not while Own or Make writes to the same Owner.
type Owner struct{ ref ledger.Ref }

// Close releases the resource immediately, independently of other owners. A
// second Close, through the same Owner or a copy, does nothing.
//
// While the resource is in [Owner.Use], or has children that are not released,
// Close marks the owner closed and returns. The resource is then released after
// the last Use has returned and the last child is released. In a pool with
// Options.Drain the release is queued.
//
// A panic of the release function reaches the caller. The error is always nil;
// it makes the type an [io.Closer].
func (o *Owner) Close() error {
	if t := o.ref.Token(); t != nil {
		t.Ledger.Close(o.ref.Index)
		runtime.KeepAlive(t)
	}
	return nil
}

// Closed reports whether the owner was closed, disowned, or destroyed with its
// pool, or never owned anything. The release itself may still be pending.
func (o *Owner) Closed() bool {
	return o.ref.Vacant()
}

// Use calls f with the resource, which is not released before f returns. f must
// not keep the pointer. Close and [Pool.Destroy] may be called meanwhile, also
// by f. Close returns at once, Destroy after the time that it may wait, and the
// resource is released when the last Use returns.
//
// Use panics if the owner is closed. In a pool with Options.Unshared Use does
// not count: it keeps the owner reachable, but no goroutine may close it before
// f returns.
//
// Use panics if the resource is a handle: one of [Pool.OwnHandle], or one that
// [Pool.Make] has handed out in a pool with Options.Handles or with two words. A
// handle is never converted to a pointer; [Owner.UseHandle] returns it as a
// number.
func (o *Owner) Use(f func(resource unsafe.Pointer)) {
	t := o.use("Use", ledger.Handle)
	defer unuse(t, o.ref.Index)
	f(t.Ledger.Pointer(o.ref.Index))
}

// UseHandle is [Owner.Use] for a handle, which comes as a number, with its
// context. context is 0 if resources have one word. For a resource that is a
// pointer, UseHandle passes its address.
func (o *Owner) UseHandle(f func(resource, context uintptr)) {
	t := o.use("UseHandle", 0)
	defer unuse(t, o.ref.Index)
	f(t.Ledger.Handle(o.ref.Index))
}

// use begins a Use, which unuse ends, and returns the token. It panics if the owner
// is closed, or its state has a bit of refused.
func (o *Owner) use(op string, refused uint64) *ledger.Token {
	t := o.ref.Token()
	if t == nil {
		panicOwnsNothing(op)
	}
	if !t.Ledger.Kind.Unshared {
		t.Ledger.Enter(o.ref.Index, op, refused)
	} else if s := t.Ledger.State(o.ref.Index); s&(ledger.Open|refused) != ledger.Open {
		t.Ledger.PanicUse(s, op)
	}
	return t
}

// unuse ends a Use. It must be deferred, because the function that use precedes may
// panic or end its goroutine.
func unuse(t *ledger.Token, i uint32) {
	if !t.Ledger.Kind.Unshared {
		t.Exit(i)
	}
	runtime.KeepAlive(t)
}

// Resource returns the resource, or nil if the owner is closed. It does not keep
// the owner alive: after the program's last use of the owner the collector may
// find it unreachable, even while C still works with the pointer. This program
// is wrong:
//
//	func (m *Image) Sum() int {
//		return int(C.image_sum((*C.image)(m.Resource())))
//	}
//
// The last use of m comes before the call of C. If m was the last reference, its
// resource may be released while image_sum runs. The remedy is a KeepAlive after
// the last use of the pointer:
//
//	func (m *Image) Sum() int {
//		n := int(C.image_sum((*C.image)(m.Resource())))
//		runtime.KeepAlive(m)
//		return n
//	}
//
// KeepAlive does not protect against a Close by another goroutine. [Owner.Use]
// protects against both.
//
// Resource panics if the resource is a handle; see [Owner.Use].
func (o *Owner) Resource() unsafe.Pointer {
	t := o.ref.Token()
	if t == nil {
		return nil
	}
	if s := t.Ledger.State(o.ref.Index); s&(ledger.Open|ledger.Handle) != ledger.Open {
		if s&ledger.Handle != 0 {
			t.Ledger.PanicUse(s, "Resource")
		}
		return nil
	}
	return t.Ledger.Pointer(o.ref.Index)
}

// Handle is [Owner.Resource] for a handle. It returns zeros if the owner is
// closed.
func (o *Owner) Handle() (resource, context uintptr) {
	t := o.ref.Token()
	if t == nil || t.Ledger.State(o.ref.Index)&ledger.Open == 0 {
		return 0, 0
	}
	return t.Ledger.Handle(o.ref.Index)
}

// Disown closes the owner without a release, and returns the resource, which
// belongs to the caller from now on. If Disown returns an error, nothing has
// changed: [ErrClosed] if the owner is closed, [ErrInUse] during a Use,
// [ErrChildren] while a resource that depends on this one is not released, and
// [ErrCarved] for memory that cannot be disowned. Disown panics if the resource is
// a handle; see [Owner.Use].
func (o *Owner) Disown() (unsafe.Pointer, error) {
	t := o.ref.Token()
	if t == nil {
		return nil, ErrClosed
	}
	if s := t.Ledger.State(o.ref.Index); s&ledger.Handle != 0 {
		t.Ledger.PanicUse(s, "Disown")
	}
	p := t.Ledger.Pointer(o.ref.Index)
	err := t.Ledger.Disown(o.ref.Index)
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// DisownHandle is [Owner.Disown] for a handle.
func (o *Owner) DisownHandle() (resource, context uintptr, err error) {
	t := o.ref.Token()
	if t == nil {
		return 0, 0, ErrClosed
	}
	resource, context = t.Ledger.Handle(o.ref.Index)
	err = t.Ledger.Disown(o.ref.Index)
	runtime.KeepAlive(t)
	if err != nil {
		return 0, 0, err
	}
	return resource, context, nil
}

// Resize records that the resource has size bytes now. A batch that grows beyond
// Options.Pinned takes no more owners. If the owner is closed, Resize does
// nothing. It panics if size is negative, and for memory of a [Memory], whose
// size does not change.
func (o *Owner) Resize(size int) {
	t := o.ref.Token()
	if t == nil {
		return
	}
	if size < 0 {
		panicMisuse(t.Ledger.Kind.Name, "Resize", "the size %d is negative", size)
	}
	if t.Ledger.Kind.Heap != nil {
		panicMisuse(t.Ledger.Kind.Name, "Resize", "a block of a Memory has a fixed size; make another one")
	}
	intake.Resize(t.Ledger, o.ref.Index, size)
	runtime.KeepAlive(t)
}
