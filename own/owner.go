package own

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// An Owner owns a resource until it is closed. While any copy of the Owner is
// reachable the resource stays. After all copies become unreachable the resource
// is released. A binding's type has an Owner, or a [Handle] or [Number] with an Owner
// inside, in a field that is not exported:
//
//	type Image struct {
//		owner         own.Owner
//		width, height int
//	}
//
// A type that embeds an Owner has all its methods, Disown among them.
//
// [Pool.Own] and [Pool.Make] put a resource into an Owner. The value that contains
// the Owner may be of any type, may refer to anything, and may be on the heap or
// on the stack. All copies refer to the same resource, which is released once,
// whichever copy is closed.
//
// The zero value owns nothing and counts as closed. Methods may be called from
// any goroutine, but not while Own or Make writes to the same Owner.
//
// Owners are comparable: copies are equal, owners of different resources are not. So
// reflect.DeepEqual of two values with an Owner, Handle or Number inside is false, unless one is
// a copy of the other. It is false even if C would call the resources equal. A test should
// compare what C says of them. Nothing that prints or compares values by reflection follows an
// Owner to its pool.
type Owner struct{ ref batch.Ref }

// named returns o as a parent. That of an owner of nothing is not the zero Owner, which
// stands for no parent.
func (o Owner) named() Owner {
	if o.ref.Sentinel() == nil {
		o.ref.Index = 1
	}
	return o
}

// Close releases the resource immediately, independently of other owners. A
// second Close, through the same Owner or a copy, does nothing.
//
// While the resource is in [Owner.Use], or has children that are not released,
// Close marks the owner closed and returns. The resource is then released after
// the last Use has returned and the last child is released. In a pool with
// Options.Drain or Thread the release is queued.
//
// Close returns the error of the release function, if it calls that function. A
// panic of the release function reaches the caller.
func (o *Owner) Close() error {
	if t := o.ref.Sentinel(); t != nil {
		_, err := t.Close(o.ref.Index)
		runtime.KeepAlive(t)
		return err
	}
	return nil
}

// CloseWait is [Owner.Close] that waits until the resource is released: until the
// last Use has returned, the last child is released, and in a pool with Options.Drain
// or Thread the release function has run. If ctx is done before that, CloseWait
// returns the error of ctx, and the resource is released later. CloseWait returns the
// error of the release function in the cases in which Close does. If the owner is
// closed already, it returns nil at once. CloseWait does not run the collector: a
// child that the program has forgotten is released after a collection, which may come
// much later.
//
// CloseWait must not be called in a Use of the same resource, in a release function, or
// with Options.Drain on the goroutine that calls Drain: it would wait for itself until
// ctx is done.
func (o *Owner) CloseWait(ctx context.Context) error {
	t := o.ref.Sentinel()
	if t == nil {
		return nil
	}
	defer runtime.KeepAlive(t)
	later, err := t.Close(o.ref.Index)
	if !later {
		return err
	}
	released := func() bool { return t.State(o.ref.Index)&batch.Gone != 0 }
	return await(ctx, func() <-chan struct{} { return t.Await(o.ref.Index) }, released)
}

// Closed reports whether the owner was closed, disowned, or destroyed with its
// pool, or never owned anything. The release itself may still be pending.
func (o *Owner) Closed() bool {
	return o.ref.Vacant()
}

// Use calls f with the resource, which is not released before f returns. f must not
// keep the pointer. Close and [Pool.Destroy] may be called meanwhile, also by f.
// Close returns at once. Destroy waits at most until its ctx is done. The resource
// is released by the last Use, after its f has returned. So a lock that the release
// function takes is taken in f, never around Use: Use would wait for it for ever.
//
// Use panics if the owner is closed. In a pool with Options.Unshared Use does
// not count: it keeps the owner reachable, but no goroutine may close it before
// f returns.
//
// Use panics in a pool with Options.Numbers.
func (o *Owner) Use(f func(resource unsafe.Pointer)) {
	t := o.usePointer("Use")
	defer unuse(t, o.ref.Index)
	f(t.Pointer(o.ref.Index))
}

// TryUse is [Owner.Use] that returns [ErrClosed], without a call of f, if the owner
// is closed or owns nothing. Else it returns the error of f. Locks are
// taken in f, as for Use.
func (o *Owner) TryUse(f func(resource unsafe.Pointer) error) error {
	if t := o.ref.Sentinel(); t != nil {
		mustHavePointers(t, "TryUse")
	}
	t := o.tryUse("TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, o.ref.Index)
	return f(t.Pointer(o.ref.Index))
}

// usePointer is use of a resource that is no number.
func (o *Owner) usePointer(op string) *batch.Sentinel {
	if t := o.ref.Sentinel(); t != nil {
		mustHavePointers(t, op)
	}
	return o.use(op)
}

// use begins a Use, which unuse ends, and returns the sentinel. It panics if the owner
// is closed.
func (o *Owner) use(op string) *batch.Sentinel {
	t := o.ref.Sentinel()
	if t == nil {
		panicOwnsNothing(op)
	}
	if !t.Batch.Spec.Unshared {
		if !t.Enter(o.ref.Index, op) {
			t.Batch.Spec.PanicClosed(op)
		}
	} else if !t.Peek(o.ref.Index) {
		t.Batch.Spec.PanicClosed(op)
	}
	return t
}

// tryUse is use that returns nil where use panics.
func (o *Owner) tryUse(op string) *batch.Sentinel {
	t := o.ref.Sentinel()
	switch {
	case t == nil:
		return nil
	case t.Batch.Spec.Unshared:
		if !t.Peek(o.ref.Index) {
			return nil
		}
	case !t.Enter(o.ref.Index, op):
		return nil
	}
	return t
}

// unuse ends a Use. It must be deferred, because the function that use precedes may
// panic or end its goroutine.
func unuse(t *batch.Sentinel, i uint32) {
	if !t.Batch.Spec.Unshared {
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
// Resource panics in a pool with Options.Numbers.
func (o *Owner) Resource() unsafe.Pointer {
	t := o.open()
	if t == nil {
		return nil
	}
	mustHavePointers(t, "Resource")
	return t.Pointer(o.ref.Index)
}

// open returns the sentinel, or nil if the owner is closed.
func (o *Owner) open() *batch.Sentinel {
	if t := o.ref.Sentinel(); t != nil && t.State(o.ref.Index)&batch.Open != 0 {
		return t
	}
	return nil
}

// mustHavePointers panics if the resources of the pool are numbers, which are never
// converted to pointers.
func mustHavePointers(t *batch.Sentinel, op string) {
	if t.Batch.Spec.Numbers {
		panicNumbers(t, op)
	}
}

//go:noinline
func panicNumbers(t *batch.Sentinel, op string) {
	panicMisuse(t.Batch.Spec.Name, op, "the resource is a number, because the pool has Options.Numbers; use a Number in place of an Owner")
}

// KeepAlive keeps the resource from being released because the owner becomes
// unreachable. The call marks the last use of a pointer that [Owner.Resource] has
// returned, as [runtime.KeepAlive] does. It does not protect against a Close by
// another goroutine.
func (o *Owner) KeepAlive() { runtime.KeepAlive(o.ref.Sentinel()) }

// Disown closes the owner without a release, and returns the resource, which
// belongs to the caller from now on. If Disown returns an error, nothing has
// changed: [ErrClosed] if the owner is closed, [ErrInUse] during a Use,
// [ErrChildren] while a resource that depends on this one is not released, and
// [ErrShared] for memory that cannot be disowned. Disown panics in a pool with
// Options.Numbers.
func (o *Owner) Disown() (unsafe.Pointer, error) {
	t := o.ref.Sentinel()
	if t == nil {
		return nil, ErrClosed
	}
	mustHavePointers(t, "Disown")
	p := t.Pointer(o.ref.Index)
	if err := o.disown(t); err != nil {
		return nil, err
	}
	return p, nil
}

func (o *Owner) disown(t *batch.Sentinel) error {
	err := t.Batch.Disown(o.ref.Index)
	runtime.KeepAlive(t)
	return err
}

// Resize records that the resource has size bytes now. Package pace counts the new size
// from now on, and Resize may start a collection, as Own may. Resize refuses nothing at
// a limit.
//
// A batch that grows beyond Options.Pinned takes no more owners, but keeps those that
// it has. So a resource that always grows, such as a stream that allocates its buffers
// later, is best owned with the size that it will have.
//
// If the owner is closed, Resize does nothing. It panics if size is negative, and for
// memory of a [Memory], whose size does not change.
func (o *Owner) Resize(size int) {
	t := o.ref.Sentinel()
	if t == nil {
		return
	}
	if size < 0 {
		panicMisuse(t.Batch.Spec.Name, "Resize", "the size %d is negative", size)
	}
	if t.Batch.Spec.Heap != nil {
		panicMisuse(t.Batch.Spec.Name, "Resize", "a block of a Memory has a fixed size; make another one")
	}
	intake.Resize(t.Batch, o.ref.Index, size)
	runtime.KeepAlive(t)
}

// SetState sets the state that the release function gets for this resource's children, in
// place of their Options.State: for example, a lock of a context. Children of a child do
// not inherit it. SetState comes before the first child and before a pool with o as
// Options.Parent. It returns [ErrClosed] if o is closed, and [ErrChildren] after the first
// child or such a pool.
//
// The state stays reachable at least until the resource and its children are released. It
// must not refer to an owner of the pool of o, nor to an owner of a pool whose resources
// depend on that pool's, directly or not: such an owner would never be found unreachable.
func (o *Owner) SetState(state any) error {
	t := o.ref.Sentinel()
	if t == nil {
		return ErrClosed
	}
	f := t.Batch.Family(o.ref.Index)
	defer runtime.KeepAlive(t)
	if f == nil {
		return ErrClosed
	}
	return f.SetState(state)
}
