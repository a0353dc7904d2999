package own

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// An Owner names what owns a resource: a [Handle], a [Number], or what a [Memory] hands out. Their
// method Owner returns it, as a parent, in With.Parent or Options.Parent, and for a [Callback]. It
// keeps the resource from being released, as a copy of the Handle does. The zero Owner is none.
//
// Owners are comparable: those of copies are equal, those of different resources are not.
type Owner struct{ ref batch.Ref }

// An owner is what a Handle and a Number have in common.
type owner struct{ ref batch.Ref }

// Owner returns what names the resource as the parent of others.
func (o *owner) Owner() Owner {
	if o.ref.Sentinel() == nil {
		return Owner{batch.Ref{Index: 1}} // not the zero Owner, which stands for no parent
	}
	return Owner{o.ref}
}

// Close releases the resource immediately, independently of other owners. A
// second Close, through the same Handle or a copy, does nothing.
//
// While the resource is in Use, or has children that are not released,
// Close marks the owner closed and returns. The resource is then released after
// the last Use has returned and the last child is released. In a pool with a
// [Queue] or [Thread] the release is queued.
//
// Close returns the error of the release function, if it calls that function. A
// panic of the release function reaches the caller.
func (o *owner) Close() error {
	if t := o.ref.Sentinel(); t != nil {
		_, err := t.Close(o.ref.Index)
		runtime.KeepAlive(t)
		return err
	}
	return nil
}

// CloseWait is Close that waits until the resource is released: until the
// last Use has returned, the last child is released, and in a pool with a [Queue]
// or [Thread] the release function has run. If ctx is done before that, CloseWait
// returns the error of ctx, and the resource is released later. CloseWait returns the
// error of the release function in the cases in which Close does. If the owner is
// closed already, it returns nil at once. CloseWait does not run the collector: a
// child that the program has forgotten is released after a collection, which may come
// much later.
//
// CloseWait must not be called in a Use of the same resource, in a release function, or
// with a Queue on the goroutine that calls Drain: it would wait for itself until
// ctx is done.
func (o *owner) CloseWait(ctx context.Context) error {
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
func (o *owner) Closed() bool {
	return o.ref.Vacant()
}

// use begins a Use, which unuse ends, and returns the sentinel. It panics if the owner
// is closed.
func (o *owner) use(op string) *batch.Sentinel {
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
func (o *owner) tryUse(op string) *batch.Sentinel {
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

// pointer returns the resource, or nil if the owner is closed.
func (o *owner) pointer() unsafe.Pointer {
	t := o.open()
	if t == nil {
		return nil
	}
	return t.Pointer(o.ref.Index)
}

// open returns the sentinel, or nil if the owner is closed.
func (o *owner) open() *batch.Sentinel {
	if t := o.ref.Sentinel(); t != nil && t.State(o.ref.Index)&batch.Open != 0 {
		return t
	}
	return nil
}

// KeepAlive keeps the resource from being released because the owner becomes
// unreachable. The call marks the last use of a resource that [Handle.Pointer] or
// [Number.Value] has returned, as [runtime.KeepAlive] does. It does not protect against a Close by
// another goroutine.
func (o *owner) KeepAlive() { runtime.KeepAlive(o.ref.Sentinel()) }

// disownPointer is Disown of a resource that is a pointer.
func (o *owner) disownPointer() (unsafe.Pointer, error) {
	t := o.ref.Sentinel()
	if t == nil {
		return nil, ErrClosed
	}
	p := t.Pointer(o.ref.Index)
	if err := o.disown(t); err != nil {
		return nil, err
	}
	return p, nil
}

func (o *owner) disown(t *batch.Sentinel) error {
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
func (o *owner) Resize(size int) {
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
func (o *owner) SetState(state any) error {
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
