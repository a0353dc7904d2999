package a

/*
typedef struct { int n; } shrub;
static shrub *shrub_new(void) { return calloc(1, sizeof(shrub)); }
static void shrub_free(shrub *t) { free(t); }
static int shrub_len(shrub *t) { return t->n; }
static void shrub_unref(shrub *t) { if (--t->n == 0) free(t); }
*/
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

type Shrub struct { // want Shrub:"owner"
	p *C.shrub
}

func NewShrub() *Shrub {
	s := &Shrub{C.shrub_new()}
	runtime.SetFinalizer(s, func(s *Shrub) { C.shrub_free(s.p) })
	return s
}

func closure(s *Shrub) func() int {
	return func() int {
		return int(C.shrub_len(s.p)) // want `s may be collected while C.shrub_len uses what it owns`
	}
}

func closureOfLocal() func() int {
	s := NewShrub()
	f := func() int {
		return int(C.shrub_len(s.p)) // want `s may be collected while C.shrub_len uses what it owns`
	}
	return f
}

func closureCalledHere(s *Shrub) int {
	f := func() int {
		return int(C.shrub_len(s.p)) // want `s may be collected while C.shrub_len uses what it owns`
	}
	return f() + f()
}

func closureInClosureReturned(s *Shrub) func() int {
	return func() int {
		return enter(func() C.int {
			return C.shrub_len(s.p) // want `s may be collected while C.shrub_len uses what it owns`
		})
	}
}

// Who has the closure has the shrub, or the other closure has it.

var closures []func() int

func closureStored(s *Shrub) {
	closures = append(closures, func() int { return int(C.shrub_len(s.p)) })
}

func closureByVariable(s *Shrub) func() int {
	f := func() int { return int(C.shrub_len(s.p)) }
	closures = append(closures, f)
	return f
}

func closureWithShrub(s *Shrub) (func() int, *Shrub) {
	return func() int { return int(C.shrub_len(s.p)) }, s
}

func shrubWithClosure() (*Shrub, func() int) {
	s := NewShrub()
	f := func() int { return int(C.shrub_len(s.p)) }
	return s, f
}

func closureAndEnd(s *Shrub) (f func() int, end func()) {
	return func() int { return int(C.shrub_len(s.p)) }, func() { runtime.KeepAlive(s) }
}

func closureThatKeeps(s *Shrub) func() int {
	return func() int {
		defer runtime.KeepAlive(s)
		return int(C.shrub_len(s.p))
	}
}

func closureCalled(s *Shrub) int {
	f := func() C.int { return C.shrub_len(s.p) }
	n := f() + f()
	runtime.KeepAlive(s)
	return int(n)
}

func closureInClosure(s *Shrub) int {
	n := enter(func() C.int {
		return C.int(enter(func() C.int { return C.shrub_len(s.p) }))
	})
	runtime.KeepAlive(s)
	return n
}

// A finalizer that has its object never runs.

type Immortal struct{ p *C.shrub }

func NewImmortal() *Immortal {
	s := &Immortal{C.shrub_new()}
	runtime.SetFinalizer(s, func(*Immortal) { C.shrub_free(s.p) })
	return s
}

func (s *Immortal) len() int { return int(C.shrub_len(s.p)) }

// The second half of a finalizer runs when the object has none any more.

type Queued struct{ p *C.shrub } // want Queued:"owner"

var queue []func(*Queued)

func NewQueued() *Queued {
	q := &Queued{C.shrub_new()}
	runtime.SetFinalizer(q, finalizeQueued)
	return q
}

func finalizeQueued(q *Queued) { queue = append(queue, releaseQueued) }

func releaseQueued(q *Queued) { C.shrub_unref(q.p) }

func unrefQueued(q *Queued) { C.shrub_unref(q.p) } // want `q may be collected while C.shrub_unref`

func (q Queued) copied() int { return int(C.shrub_len(q.p)) } // want `q may be collected while C.shrub_len`

// A part of an object is not the object that gets the finalizer, if that is always one of its own.

type Base struct{ p *C.shrub } // want Base:"owner"

type Part struct{ Base }

type Whole struct{ *Base }

func newBase(p *C.shrub) *Base {
	b := &Base{p}
	runtime.SetFinalizer(b, func(b *Base) { C.shrub_free(b.p) })
	return b
}

func (p *Part) len() int { return int(C.shrub_len(p.p)) }

func (w *Whole) len() int { return int(C.shrub_len(w.p)) } // want `w may be collected while C.shrub_len`

// What the package keeps is not collected, nor is the receiver of a call around.

type Listed struct{ p *C.shrub }

var listed = map[int]*Listed{}

func NewListed(id int) *Listed {
	l := &Listed{C.shrub_new()}
	listed[id] = l
	runtime.SetFinalizer(l, func(l *Listed) { C.shrub_free(l.p) })
	return l
}

func (l *Listed) len() int { return int(C.shrub_len(l.p)) }

type Pinned struct{ p *C.shrub }

var pinner runtime.Pinner

func NewPinned() *Pinned {
	l := &Pinned{C.shrub_new()}
	p := unsafe.Pointer(l)
	pinner.Pin(p)
	runtime.SetFinalizer(l, func(l *Pinned) { C.shrub_free(l.p) })
	return l
}

func (l *Pinned) len() int { return int(C.shrub_len(l.p)) }

func (s *Shrub) times(n C.int) int {
	if s == nil {
		return 0
	}
	return 2 * int(n)
}

func (s *Shrub) plain(n C.int) int { return int(n) }

func (s *Shrub) once() int { return s.plain(C.shrub_len(s.p)) } // want `s may be collected while C.shrub_len`

func (s *Shrub) twice() int { return s.times(C.shrub_len(s.p)) }

func (s *Shrub) called() func() int { return func() int { return s.times(C.shrub_len(s.p)) } }

func (w *Whole) of(s *Shrub) int { return s.times(C.shrub_len(w.p)) } // want `w may be collected while C.shrub_len`

// There is no finalizer yet, or not on this way.
func NewShrubOf(n C.int) *Shrub {
	s := &Shrub{C.shrub_new()}
	if C.shrub_len(s.p) < n {
		C.shrub_unref(s.p)
		return nil
	}
	runtime.SetFinalizer(s, func(s *Shrub) { C.shrub_free(s.p) })
	if n == 0 {
		C.shrub_unref(s.p) // want `s may be collected while C.shrub_unref`
		return nil
	}
	return s
}

// A deferred call has what its receiver and its arguments are when it is deferred.

type Locked struct { // want Locked:"owner"
	p      *C.shrub
	mu     sync.Mutex
	shared *sync.Mutex
	at     struct{ mu sync.Mutex }
	base   *Whole
}

func NewLocked() *Locked {
	l := &Locked{p: C.shrub_new()}
	runtime.SetFinalizer(l, func(l *Locked) { C.shrub_free(l.p) })
	return l
}

func (l *Locked) ownLock() C.int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return C.shrub_len(l.p)
}

func (l *Locked) deeperLock() C.int {
	l.at.mu.Lock()
	defer l.at.mu.Unlock()
	return C.shrub_len(l.p)
}

func (l *Locked) sharedLock() C.int {
	l.shared.Lock()
	defer l.shared.Unlock()
	return C.shrub_len(l.p) // want `l may be collected while C.shrub_len`
}

func (l *Locked) deferred() C.int {
	defer C.shrub_unref(l.p)
	return C.shrub_len(l.p) // want `l may be collected while C.shrub_len`
}

func (l *Locked) deferredWhole() C.int {
	defer l.base.touch()
	defer hold(l)
	return C.shrub_len(l.p)
}

func hold(*Locked) {}

func (w *Whole) touch() {}

// A lock that the finalizer waits for.

type Waiting struct { // want Waiting:"owner"
	p  *C.shrub
	of *forest
}

type forest struct{ mu sync.Mutex }

func (f *forest) drop(p *C.shrub) {
	f.mu.Lock()
	defer f.mu.Unlock()
	C.shrub_free(p)
}

func NewWaiting(f *forest) *Waiting {
	w := &Waiting{C.shrub_new(), f}
	runtime.AddCleanup(w, f.drop, w.p)
	return w
}

func (w *Waiting) len() C.int {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	return C.shrub_len(w.p)
}

func (w *Waiting) unlocked() C.int {
	return C.shrub_len(w.p) // want `w may be collected while C.shrub_len`
}

// What is true or false owns nothing, and a copy is not the owner.

type View struct {
	p     *C.shrub
	owner bool
}

func (v *View) len() C.int { return C.shrub_len(v.p) }

func copied(list []any) C.int {
	s, ok := list[0].(Shrub)
	if !ok {
		return 0
	}
	return C.shrub_len(s.p)
}

func notCopied(list []any) C.int {
	s, ok := list[0].(*Shrub)
	if !ok {
		return 0
	}
	return C.shrub_len(s.p) // want `s may be collected while C.shrub_len`
}

// A finalizer that is a method of something else looks at other fields.

type Class struct{ p, other *C.shrub } // want Class:"owner"

func (f *forest) destroy(c *Class) { C.shrub_free(c.other) }

func NewClass(f *forest) *Class {
	c := &Class{C.shrub_new(), C.shrub_new()}
	runtime.SetFinalizer(c, f.destroy)
	return c
}

func (c *Class) len() C.int { return C.shrub_len(c.p) }

func (c *Class) otherLen() C.int { return C.shrub_len(c.other) } // want `c may be collected while C.shrub_len`

// A method of an interface may store it.

type keeper interface{ keep(s *Shrub) }

func kept(k keeper, s *Shrub) (C.int, keeper) {
	k.keep(s)
	return C.shrub_len(s.p), k
}

func (i *Immortal) of(s *Shrub) C.int {
	C.shrub_len(i.p)
	return C.shrub_len(s.p) // want `s may be collected while C.shrub_len`
}

// The owner is a part of what the function has.

type Inner struct{ p *C.shrub } // want Inner:"owner"

type Outer struct{ *Inner }

func NewOuter() *Outer {
	i := &Inner{C.shrub_new()}
	runtime.SetFinalizer(i, func(i *Inner) { C.shrub_free(i.p) })
	return &Outer{i}
}

func (o *Outer) len() C.int {
	defer runtime.KeepAlive(o.Inner)
	return C.shrub_len(o.Inner.p)
}

func (o *Outer) sum() C.int {
	return C.shrub_len(o.Inner.p) // want `o may be collected while C.shrub_len`
}

// One of many objects is kept, and not all.

type Latest struct{ p *C.shrub } // want Latest:"owner"

var latest *Latest

func NewLatest() *Latest {
	l := &Latest{C.shrub_new()}
	latest = l
	runtime.SetFinalizer(l, func(l *Latest) { C.shrub_free(l.p) })
	return l
}

func (l *Latest) len() C.int { return C.shrub_len(l.p) } // want `l may be collected while C.shrub_len`

// The caller has put the owner into what it uses.

type user struct {
	of *Shrub
	n  C.int
}

func (u *user) init(s *Shrub) {
	u.of = s
	u.n = s.counted()
}

func (s *Shrub) counted() C.int { return C.shrub_len(s.p) }

func (u *user) start(s *Shrub) { u.n = s.counted2() }

func (s *Shrub) counted2() C.int { return C.shrub_len(s.p) } // want `s may be collected while C.shrub_len`
