package own

import (
	"context"
	"reflect"
	"unsafe"

	"github.com/cheapgo/cheap/own/internal/batch"
)

// A Handle is an [Owner] of a pointer of type P, such as *C.sqlite3 or
// unsafe.Pointer. It suits an unexported field of a binding's type:
//
//	type DB struct{ h own.Handle[*C.sqlite3] }
//
//	func (db *DB) Close() error { return db.h.Close() }
//
// P is the type of the pointer, not of what it points to, because Go has no type
// parameters for structures that C only declares.
//
// [Handle.Own], [Handle.OwnWith] and [Handle.Make] write to the Handle; meanwhile no other method
// of it may be called. Later, any goroutine may call its methods. The zero value owns nothing and
// counts as closed. Copies refer to the same resource, as copies of an Owner do.
type Handle[P any] struct{ owner Owner }

// Own makes h the owner of a resource of size bytes in pool; see [Pool.Own].
func (h *Handle[P]) Own(pool *Pool, resource P, size int) error {
	return pool.Own(&h.owner, pointerOf(resource), size)
}

// OwnWith is [Handle.Own] for a resource of which more is told: its parent, a state of its own, a
// room that was reserved for it. A With that has only a size is [Handle.Own].
func (h *Handle[P]) OwnWith(pool *Pool, resource P, w With) error {
	p := pointerOf(resource)
	if w.plain() {
		return pool.Own(&h.owner, p, w.Size)
	}
	pool.mustBeAddress(&h.owner, p)
	return pool.ownWith(&h.owner, uintptr(p), w)
}

// Make makes h the owner of a resource that the pool's Options.Construct has made; see
// [Pool.Make].
func (h *Handle[P]) Make(pool *Pool) error {
	mustBePointerType[P]()
	pool.mustHavePointers("Make")
	return pool.Make(&h.owner)
}

// Owner returns what names h as the parent of other resources.
func (h *Handle[P]) Owner() Owner { return h.owner.named() }

// Close releases the resource; see [Owner.Close].
func (h *Handle[P]) Close() error { return h.owner.Close() }

// CloseWait closes h and waits for the release; see [Owner.CloseWait].
func (h *Handle[P]) CloseWait(ctx context.Context) error { return h.owner.CloseWait(ctx) }

// Closed reports whether h is closed, disowned, or destroyed with its pool, or never
// owned anything; see [Owner.Closed].
func (h *Handle[P]) Closed() bool { return h.owner.Closed() }

// Use calls f with the resource, which is not released before f returns. It panics if
// h is closed. A lock that the release function takes is taken in f, never around Use; see
// [Owner.Use].
func (h *Handle[P]) Use(f func(P)) {
	t := h.owner.use("Use")
	defer unuse(t, h.owner.ref.Index)
	f(typed[P](t, h.owner.ref.Index))
}

// TryUse is [Handle.Use] that returns [ErrClosed], without a call of f, if h is closed.
// Else it returns the error of f. Locks are taken in f, as for Use.
func (h *Handle[P]) TryUse(f func(P) error) error {
	t := h.owner.tryUse("TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, h.owner.ref.Index)
	return f(typed[P](t, h.owner.ref.Index))
}

// Pointer returns the resource, or nil if h is closed. The pointer does not keep h
// alive: a call of [Handle.KeepAlive] must follow its last use; see [Owner.Resource].
func (h *Handle[P]) Pointer() P {
	t := h.owner.open()
	if t == nil {
		var none P
		return none
	}
	return typed[P](t, h.owner.ref.Index)
}

// KeepAlive keeps the resource from being released because h becomes unreachable; see
// [Owner.KeepAlive].
func (h *Handle[P]) KeepAlive() { h.owner.KeepAlive() }

// Disown closes h without a release, and returns the resource, which belongs to the
// caller from now on; see [Owner.Disown].
func (h *Handle[P]) Disown() (P, error) {
	p, err := h.owner.Disown()
	if err != nil {
		var none P
		return none, err
	}
	return *(*P)(unsafe.Pointer(&p)), nil // P is a pointer, see pointerOf
}

// Resize records that the resource has size bytes now; see [Owner.Resize].
func (h *Handle[P]) Resize(size int) { h.owner.Resize(size) }

// SetState sets the state for the release function of the resource's children; see
// [Owner.SetState].
func (h *Handle[P]) SetState(state any) error { return h.owner.SetState(state) }

// typed returns the resource of an entry, which a Handle of the type P owns.
func typed[P any](t *batch.Sentinel, i uint32) P {
	p := t.Pointer(i)
	return *(*P)(unsafe.Pointer(&p)) // P is a pointer, see pointerOf
}

// pointerOf converts a P, which it finds to be a pointer. Only a Handle that has been
// through here owns anything.
func pointerOf[P any](p P) unsafe.Pointer {
	mustBePointerType[P]()
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

func mustBePointerType[P any]() {
	if k := reflect.TypeFor[P]().Kind(); k != reflect.Pointer && k != reflect.UnsafePointer {
		panicNoPointerType(reflect.TypeFor[P]())
	}
}

func panicNoPointerType(t reflect.Type) {
	panicMisuse("own", "Handle", "%v is not the type of a pointer; use a type such as *C.image, or a Number", t)
}

// mustHavePointers panics for op, which takes or returns a pointer, in a pool of
// numbers.
func (p *Pool) mustHavePointers(op string) {
	if p.spec.Numbers {
		panicMisuse(p.spec.Name, op, "the pool has Options.Numbers; use a Number in place of a Handle")
	}
}

// An Integer is a type that a [Number] can have.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// A Number is an [Owner] of a resource that is a number, such as the name of a
// texture or a file descriptor, in a pool with Options.Numbers:
//
//	type Texture struct{ n own.Number[C.GLuint] }
//
// Any number may be a resource, 0 as well. Release gets it as a uintptr.
//
// [Number.Own], [Number.OwnWith] and [Number.Make] write to the Number; meanwhile no other method
// of it may be called. Later, any goroutine may call its methods. The zero value owns nothing and
// counts as closed. Copies refer to the same resource.
type Number[N Integer] struct{ owner Owner }

// Own makes n the owner of a resource of size bytes in pool; see [Pool.Own]. It panics
// in a pool without Options.Numbers. On 32-bit systems it also panics if the number
// does not fit in 32 bits; a negative int64 does not fit.
func (n *Number[N]) Own(pool *Pool, resource N, size int) error {
	return pool.own(&n.owner, wordOf(pool, "Own", resource), size)
}

// OwnWith is [Number.Own] for a resource of which more is told; see [Handle.OwnWith].
func (n *Number[N]) OwnWith(pool *Pool, resource N, w With) error {
	word := wordOf(pool, "OwnWith", resource)
	if w.plain() {
		return pool.own(&n.owner, word, w.Size)
	}
	return pool.ownWith(&n.owner, word, w)
}

// Discard releases a number that has no owner; see [Pool.Discard].
func Discard[N Integer](pool *Pool, resource N) error {
	return pool.discard(wordOf(pool, "Discard", resource))
}

// Make makes n the owner of a resource that the pool's Options.Construct has made; see
// [Pool.Make].
func (n *Number[N]) Make(pool *Pool) error {
	pool.mustHaveNumbers("Make")
	if err := pool.Make(&n.owner); err != nil {
		return err
	}
	if w := n.owner.ref.Sentinel().Word(n.owner.ref.Index); uintptr(N(w)) != w {
		n.owner.Close()
		pool.panicTooLarge("Make", uint64(w))
	}
	return nil
}

// Owner returns what names n as the parent of other resources.
func (n *Number[N]) Owner() Owner { return n.owner.named() }

// Close releases the resource; see [Owner.Close].
func (n *Number[N]) Close() error { return n.owner.Close() }

// CloseWait closes n and waits for the release; see [Owner.CloseWait].
func (n *Number[N]) CloseWait(ctx context.Context) error { return n.owner.CloseWait(ctx) }

// Closed reports whether n is closed, disowned, or destroyed with its pool, or never
// owned anything; see [Owner.Closed].
func (n *Number[N]) Closed() bool { return n.owner.Closed() }

// Use calls f with the resource, which is not released before f returns. It panics if
// n is closed; see [Owner.Use].
func (n *Number[N]) Use(f func(N)) {
	t := n.owner.use("Use")
	defer unuse(t, n.owner.ref.Index)
	f(N(t.Word(n.owner.ref.Index)))
}

// TryUse is [Number.Use] that returns [ErrClosed], without a call of f, if n is closed.
// Else it returns the error of f.
func (n *Number[N]) TryUse(f func(N) error) error {
	t := n.owner.tryUse("TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, n.owner.ref.Index)
	return f(N(t.Word(n.owner.ref.Index)))
}

// Value returns the resource, and whether n is open. If n is closed the resource is 0.
// A call of [Number.KeepAlive] must follow the last use of the resource; see
// [Owner.Resource].
func (n *Number[N]) Value() (resource N, open bool) {
	t := n.owner.open()
	if t == nil {
		return 0, false
	}
	return N(t.Word(n.owner.ref.Index)), true
}

// KeepAlive keeps the resource from being released because n becomes unreachable; see
// [Owner.KeepAlive].
func (n *Number[N]) KeepAlive() { n.owner.KeepAlive() }

// Disown closes n without a release, and returns the resource, which belongs to the
// caller from now on; see [Owner.Disown].
func (n *Number[N]) Disown() (N, error) {
	t := n.owner.ref.Sentinel()
	if t == nil {
		return 0, ErrClosed
	}
	resource := N(t.Word(n.owner.ref.Index))
	if err := n.owner.disown(t); err != nil {
		return 0, err
	}
	return resource, nil
}

// Resize records that the resource has size bytes now; see [Owner.Resize].
func (n *Number[N]) Resize(size int) { n.owner.Resize(size) }

// SetState sets the state for the release function of the resource's children; see
// [Owner.SetState].
func (n *Number[N]) SetState(state any) error { return n.owner.SetState(state) }

// wordOf converts a number for op.
func wordOf[N Integer](p *Pool, op string, n N) uintptr {
	p.mustHaveNumbers(op)
	w := uintptr(n)
	if N(w) != n {
		p.panicTooLarge(op, uint64(n))
	}
	return w
}

func (p *Pool) panicTooLarge(op string, n uint64) {
	panicMisuse(p.spec.Name, op, "the number %#x does not fit in the type of the Number or in a uintptr", n)
}

// mustHaveNumbers panics for op in a pool without Options.Numbers.
func (p *Pool) mustHaveNumbers(op string) {
	if !p.spec.Numbers {
		p.panicPointers(op)
	}
}

func (p *Pool) panicPointers(op string) {
	panicMisuse(p.spec.Name, op, "the resources of the pool are pointers; set Options.Numbers, or use a Handle")
}
