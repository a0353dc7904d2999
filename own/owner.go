package own

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// An Owner is a Go value's share in a resource: as long as any copy of it can
// be reached the resource lives, and when none can, it is released. A binding's
// type embeds one, and gets its methods:
//
//	type Image struct {
//		own.Owner
//		width, height int
//	}
//
// [Pool.Own] and [Pool.Make] put a resource into it. The value that embeds it
// may be of any type, refer to anything, and lie on the heap or on the stack. A
// copy refers to the same resource, which is released once, whichever is closed.
//
// The zero value owns nothing: it is closed. Methods may be called from any
// goroutine, but not while Own or Make writes to the Owner itself.
type Owner struct {
	token *token
	index uint32
}

// Close gives the resource back at once, whatever its batch-mates do. A second
// Close, through the same Owner or a copy, does nothing.
//
// While the resource is in [Owner.Use], or others that depend on it live, Close
// marks it closed and returns; it is released when the last Use has returned
// and the last of those is released. In a pool with Options.Drain it is queued.
//
// What the release function panics with reaches the caller. The error is always
// nil; it makes the type an io.Closer.
func (o *Owner) Close() error {
	if t := o.token; t != nil {
		t.ledger.close(o.index)
		runtime.KeepAlive(t)
	}
	return nil
}

// Closed reports whether the owner has been closed, disowned, destroyed with its
// pool, or never owned anything. The release itself may still be to come.
func (o *Owner) Closed() bool {
	t := o.token
	return t == nil || atomic.LoadUint64(&t.ledger.states[o.index])&stateOpen == 0
}

// Use calls f with the resource, which is not released before f returns. Close
// and Destroy may be called meanwhile, also by f: they return at once or, in
// the case of Destroy, after a while, and the release runs when the last Use
// has returned. The pointer is not to be kept beyond f.
//
// Use of an owner that is closed panics. In a pool with Options.Unshared
// nothing is counted: f keeps the owner alive, and nobody may close it
// meanwhile.
func (o *Owner) Use(f func(resource unsafe.Pointer)) {
	t := o.token
	if t == nil {
		useOfNothing("Use")
	}
	l, i := t.ledger, o.index
	if l.pool.unshared {
		if l.state(i)&stateOpen == 0 {
			l.useAfterClose("Use")
		}
		defer runtime.KeepAlive(t)
	} else {
		l.enter(i, "Use")
		// Deferred, for f may panic or end its goroutine. The token is named
		// because it, not the ledger, is what keeps the batch from release.
		defer t.exit(i)
	}
	f(l.pointer(i))
}

// UseHandle is [Owner.Use] for a resource that is no pointer, or that has two
// words. context is 0 where resources have one.
func (o *Owner) UseHandle(f func(resource, context uintptr)) {
	t := o.token
	if t == nil {
		useOfNothing("UseHandle")
	}
	l, i := t.ledger, o.index
	if l.pool.unshared {
		if l.state(i)&stateOpen == 0 {
			l.useAfterClose("UseHandle")
		}
		defer runtime.KeepAlive(t)
	} else {
		l.enter(i, "UseHandle")
		defer t.exit(i)
	}
	f(l.handle(i))
}

// Resource returns the resource, or nil if the owner is closed, and protects
// nothing: once the owner is not used any more the collector may find it
// unreachable, also while C works with the pointer. This program is wrong:
//
//	func (m *Image) Sum() int {
//		return int(C.image_sum((*C.image)(m.Resource())))
//	}
//
// m is last used before C is called. If it was the caller's last reference, its
// resource may be released while image_sum runs. It takes a KeepAlive behind
// the last use of the pointer:
//
//	func (m *Image) Sum() int {
//		n := int(C.image_sum((*C.image)(m.Resource())))
//		runtime.KeepAlive(m)
//		return n
//	}
//
// which does not protect from a Close elsewhere. [Owner.Use] does both.
func (o *Owner) Resource() unsafe.Pointer {
	t := o.token
	if t == nil || t.ledger.state(o.index)&stateOpen == 0 {
		return nil
	}
	return t.ledger.pointer(o.index)
}

// Handle is [Owner.Resource] for a resource that is no pointer, or that has two
// words. It returns zeros if the owner is closed.
func (o *Owner) Handle() (resource, context uintptr) {
	t := o.token
	if t == nil || t.ledger.state(o.index)&stateOpen == 0 {
		return 0, 0
	}
	return t.ledger.handle(o.index)
}

// Disown hands the resource back to the caller, who destroys it from now on, and
// forgets it. It returns [ErrClosed] if there is nothing to hand back,
// [ErrInUse] while somebody is in Use, and [ErrChildren] while others that
// depend on the resource live; then nothing has changed.
func (o *Owner) Disown() (unsafe.Pointer, error) {
	t := o.token
	if t == nil {
		return nil, ErrClosed
	}
	p := t.ledger.pointer(o.index)
	err := t.ledger.disown(o.index)
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// DisownHandle is [Owner.Disown] for a resource that is no pointer, or that has
// two words.
func (o *Owner) DisownHandle() (resource, context uintptr, err error) {
	t := o.token
	if t == nil {
		return 0, 0, ErrClosed
	}
	resource, context = t.ledger.handle(o.index)
	err = t.ledger.disown(o.index)
	runtime.KeepAlive(t)
	if err != nil {
		return 0, 0, err
	}
	return resource, context, nil
}

// Resize says that the resource has size bytes now. A batch that grows beyond
// Options.Pinned takes no more owners. A closed owner is left as it is; a
// negative size panics.
func (o *Owner) Resize(size int) {
	t := o.token
	if t == nil {
		return
	}
	if size < 0 {
		misuse(t.ledger.pool.name, "Resize", "the size %d is negative", size)
	}
	if t.ledger.pool.carver != nil {
		misuse(t.ledger.pool.name, "Resize", "what a Memory has handed out keeps its size")
	}
	t.ledger.resize(o.index, size)
	runtime.KeepAlive(t)
}
