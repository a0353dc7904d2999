package own

import (
	"reflect"
	"unsafe"

	"github.com/cheapgo/cheap/own/internal/batch"
)

// A Handle owns a resource that is a pointer of type P, such as *C.sqlite3 or unsafe.Pointer,
// until it is closed. While any copy of the Handle is reachable the resource stays. After all
// copies become unreachable the resource is released. A Handle suits an unexported field of a
// binding's type:
//
//	type DB struct{ h own.Handle[*C.sqlite3] }
//
//	func (db *DB) Close() error { return db.h.Close() }
//
// A type that embeds a Handle has all its methods, Disown among them. P is the type of the pointer,
// not of what it points to, because Go has no type parameters for structures that C only declares.
//
// [Handle.Own], [Handle.OwnWith] and [Handle.Make] put a resource into a Handle; meanwhile no
// other method of it may be called. Later, any goroutine may call its methods. The value that
// contains the Handle may be of any type, may refer to anything, and may be on the heap or on the
// stack. All copies refer to the same resource, which is released once, whichever copy is closed.
// The zero value owns nothing and counts as closed.
//
// Handles are comparable: copies are equal, those of different resources are not. So
// reflect.DeepEqual of two values with a Handle or Number inside is false, unless one is a copy of
// the other. It is false even if C would call the resources equal. A test should compare what C says
// of them. Nothing that prints or compares values by reflection follows a Handle to its pool.
type Handle[P any] struct {
	_ [0]*P // no conversion to a Handle of another type
	owner
}

// Own makes h the owner of a resource of size bytes in pool, which is released after all copies
// of h become unreachable, unless it is closed or disowned before. An estimate of the size is
// enough; Options.Size says what a wrong estimate costs. 0 stands for Options.Size.
//
// If Own returns an error, the resource still belongs to the caller, who may pass it
// to [Pool.Discard]. The errors are [ErrPoolClosed], [ErrQueueFull], and in a pool with
// Options.Parent [ErrClosed]. Own panics if size is negative, h owns something already, the
// pool has Options.Numbers, or resource is below 4,096, which is no address. If it is in the
// Go heap, a line on stderr says so, once, on 64-bit systems.
//
// Own does not refuse a resource because of a limit of package pace: [Pool.Reserve] does,
// before C allocates. If package pace is started and the program allocates faster than the
// collector's releases follow, Own waits for releases: for up to 100 ms, or a second with a
// limit; for 1 ms while no release ends. A lock that a release function takes may be held,
// unless the pool has [Inline].
func (h *Handle[P]) Own(pool *Pool, resource P, size int) error {
	return pool.ownPointer(&h.owner, unsafe.Pointer(&resource), (*P)(nil), size)
}

// OwnWith is [Handle.Own] for a resource of which more is told: its parent, a state of its own, a
// room that was reserved for it. A With that has only a size is [Handle.Own].
func (h *Handle[P]) OwnWith(pool *Pool, resource P, w With) error {
	if w.plain() {
		return pool.ownPointer(&h.owner, unsafe.Pointer(&resource), (*P)(nil), w.Size)
	}
	pool.mustHandle((*P)(nil))
	p := *(*unsafe.Pointer)(unsafe.Pointer(&resource)) // P is a pointer, see mustHandle
	pool.mustBeAddress(p)
	return pool.ownWith(&h.owner, uintptr(p), w)
}

// Make makes h the owner of a resource that the pool's Options.Construct has made. One call of
// Construct makes a batch of resources, the stock, so most calls of Make do not call it. Each P
// has a stock. The owner is the same as one made by Own.
//
// If Construct made fewer resources than asked, Make hands out those, then returns the error
// of Construct once, and then calls Construct again. Resources that were never handed out
// are released in three cases: when the pool is closed, after two collections with no Make between them,
// and after their P has ended because GOMAXPROCS was lowered.
//
// Other errors are those of Own. Make panics without Options.Construct, and if Construct has made a
// number below 4,096 in a pool without Options.Numbers.
func (h *Handle[P]) Make(pool *Pool) error {
	pool.mustHandle((*P)(nil))
	pool.mustHavePointers("Make")
	return pool.make(&h.owner)
}

// Use calls f with the resource, which is not released before f returns. f must not
// keep the pointer. Close and [Pool.CloseWait] may be called meanwhile, also by f.
// Close returns at once. Pool.CloseWait waits at most until its ctx is done. The resource
// is released by the last Use, after its f has returned or panicked. So a lock that the release
// function takes is taken in f, never around Use: Use would wait for it for ever.
//
// Use panics if h is closed. In a pool with Options.Unshared Use does not count: it keeps h
// reachable, but no goroutine may close it before f returns.
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

// Pointer returns the resource, or nil if h is closed. It does not keep h alive: after
// the program's last use of h the collector may find it unreachable, even while C still works
// with the pointer. This program is wrong:
//
//	func (m *Image) Sum() int {
//		return int(C.image_sum(m.h.Pointer()))
//	}
//
// The last use of m comes before the call of C. If m was the last reference, its
// resource may be released while image_sum runs. The remedy is a KeepAlive after
// the last use of the pointer:
//
//	func (m *Image) Sum() int {
//		n := int(C.image_sum(m.h.Pointer()))
//		m.h.KeepAlive()
//		return n
//	}
//
// KeepAlive does not protect against a Close by another goroutine. [Handle.Use]
// protects against both.
func (h *Handle[P]) Pointer() P {
	t := h.owner.open()
	if t == nil {
		var none P
		return none
	}
	return typed[P](t, h.owner.ref.Index)
}

// Disown closes h without a release, and returns the resource, which belongs to the caller
// from now on. If Disown returns an error, nothing has changed: [ErrClosed] if h is closed,
// [ErrInUse] during a Use, [ErrChildren] while a resource that depends on this one is not
// released, and [ErrShared] for memory that cannot be disowned.
func (h *Handle[P]) Disown() (P, error) {
	p, err := h.owner.disownPointer()
	if err != nil {
		var none P
		return none, err
	}
	return *(*P)(unsafe.Pointer(&p)), nil // P is a pointer, see mustHandle
}

// typed returns the resource of an entry, which a Handle of the type P owns.
func typed[P any](t *batch.Sentinel, i uint32) P {
	p := t.Pointer(i)
	return *(*P)(unsafe.Pointer(&p)) // P is a pointer, see mustHandle
}

// mustHandle panics if typ, a *P that is nil, is not one of a P that is a pointer. Only a Handle[P] that has been
// through here owns anything.
func (p *Pool) mustHandle(typ any) {
	word := *(*uintptr)(unsafe.Pointer(&typ)) // of the two of an interface, the type
	if word == p.handled.Load() {
		return
	}
	p.handle(typ, word)
}

func (p *Pool) handle(typ any, word uintptr) {
	t := reflect.TypeOf(typ).Elem()
	if k := t.Kind(); k != reflect.Pointer && k != reflect.UnsafePointer {
		panicMisuse("own", "Handle", "%v is not the type of a pointer; use a type such as *C.image, or a Number", t)
	}
	if p.handled.Load() == 0 { // types that take turns would cost each Own a store to what all Ps read
		p.handled.Store(word)
	}
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

// A Number owns a resource that is a number, such as the name of a texture or a file
// descriptor, in a pool with Options.Numbers. In all else it is a [Handle]:
//
//	type Texture struct{ n own.Number[C.GLuint] }
//
// Any number may be a resource, 0 as well. Release gets it as a uintptr.
type Number[N Integer] struct {
	_ [0]*N // no conversion to a Number of another type, whose numbers may be smaller
	owner
}

// Own makes n the owner of a resource of size bytes in pool; see [Handle.Own]. It panics
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
// [Handle.Make].
func (n *Number[N]) Make(pool *Pool) error {
	pool.mustHaveNumbers("Make")
	if err := pool.make(&n.owner); err != nil {
		return err
	}
	if w := n.owner.ref.Sentinel().Word(n.owner.ref.Index); uintptr(N(w)) != w {
		n.owner.Close()
		pool.panicTooLarge("Make", uint64(w))
	}
	return nil
}

// Use calls f with the resource, which is not released before f returns. It panics if
// n is closed; see [Handle.Use].
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
// [Handle.Pointer].
func (n *Number[N]) Value() (resource N, open bool) {
	t := n.owner.open()
	if t == nil {
		return 0, false
	}
	return N(t.Word(n.owner.ref.Index)), true
}

// Disown closes n without a release, and returns the resource, which belongs to the
// caller from now on; see [Handle.Disown].
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
