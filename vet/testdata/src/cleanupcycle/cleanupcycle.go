package cleanupcycle

import (
	"context"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

type image struct {
	p    unsafe.Pointer
	name string
	next *image
}

func (m *image) free()    {}
func release(m *image)    {}
func releaseAny(any)      {}
func releaseBox(b box)    {}
func releaseName(*string) {}

type box struct{ m *image }

func cycles() {
	m := &image{}
	runtime.SetFinalizer(m, func(*image) { println(m.name) })                 // want `the finalizer of m refers to m`
	runtime.SetFinalizer(m, func(other *image) { m.free() })                  // want `the finalizer of m refers to m`
	runtime.AddCleanup(m, func(p unsafe.Pointer) { println(m.name, p) }, m.p) // want `the cleanup of m refers to m`
	runtime.AddCleanup(m, release, m)                                         // want `the argument of the cleanup refers to m`
	runtime.AddCleanup(m, releaseName, &m.name)                               // want `the argument of the cleanup refers to m`
	runtime.AddCleanup(m, releaseBox, box{m})                                 // want `the argument of the cleanup refers to m`
	runtime.AddCleanup(m, func(f func()) { f() }, m.free)                     // want `the argument of the cleanup refers to m`
	runtime.AddCleanup(m, func(p unsafe.Pointer) {}, unsafe.Pointer(m))       // want `the argument of the cleanup refers to m`
	f := func(p unsafe.Pointer) { m.free() }                                  // want `the cleanup of m refers to m`
	runtime.AddCleanup(m, f, m.p)
}

func nils(m *image) {
	runtime.AddCleanup(m, releaseAny, nil)     // want `AddCleanup panics for a nil argument whose type is an interface`
	runtime.AddCleanup(m, func(error) {}, nil) // want `AddCleanup panics`
	runtime.AddCleanup(m, func(*int) {}, nil)
}

type small struct{ a, b int32 }

func tiny() {
	runtime.SetFinalizer(new(int), func(*int) {}) // want `int has 8 bytes and no pointer`
	runtime.AddCleanup(&small{}, func(int) {}, 1) // want `small has 8 bytes and no pointer`
	runtime.AddCleanup(new([2]int), func(int) {}, 1)
	runtime.AddCleanup(new(*int), func(int) {}, 1)
}

func partOfLarger() {
	v := &new(struct {
		n int
		p *int
	}).n
	runtime.AddCleanup(v, func(int) {}, 1)
	w := new(int)
	runtime.AddCleanup(w, func(int) {}, 1) // want `int has 8 bytes and no pointer`
}

func generic[T any](v *T) { runtime.AddCleanup(v, func(int) {}, 1) }

func silent(m *image) {
	runtime.SetFinalizer(m, func(m *image) { m.free() })
	runtime.SetFinalizer(m, (*image).free)
	runtime.AddCleanup(m, func(p unsafe.Pointer) {}, m.p)
	runtime.AddCleanup(m, func(m *image) {}, m.next)
	runtime.AddCleanup(m, func(n uintptr) {}, uintptr(unsafe.Pointer(m)))
	name := m.name
	runtime.AddCleanup(m, func(int) { println(name) }, 0)
}

type owned struct {
	h    own.Handle[unsafe.Pointer]
	lock chan int
}

func pools() {
	o := new(owned)
	lock := make(chan int)
	own.NewPool(own.Options{Release: func(any, []uintptr) error { <-o.lock; return nil }}) // want `Options.Release refers to o, which has an owner`
	own.NewPool(own.Options{Release: func(any, []uintptr) error { <-lock; return nil }})
	own.NewPool(own.Options{OnCollect: func(own.Collected) { var o owned; o.h.Close() }})
	release := func(any, []uintptr) error { <-o.lock; return nil } // want `Options.Release refers to o`
	own.NewPool(own.Options{Release: release})
	own.NewPool(own.Options{Release: o.release})         // want `Options.Release refers to o`
	own.NewPool(own.Options{State: o})                   // want `Options.State refers to o`
	own.NewPool(own.Options{State: &state{o}})           // want `Options.State refers to o`
	own.NewPool(own.Options{State: func() { <-o.lock }}) // want `Options.State refers to o`
	own.NewPool(own.Options{State: &o.lock})             // want `Options.State refers to o`
	own.NewPool(own.Options{State: any(o)})              // want `Options.State refers to o`
	own.NewPool(own.Options{State: o.lock, Parent: o.h.Owner(), Name: o.name()})
	own.NewPool(own.Options{State: o, Parent: o.h.Owner()})
}

type state struct{ of *owned }

func (o *owned) release(any, []uintptr) error { return nil }
func (o *owned) name() string                 { return "" }

type library struct {
	mu   sync.Mutex
	done func()
}

type locked struct {
	lib *library
	h   own.Handle[unsafe.Pointer]
}

var pool = own.NewPool(own.Options{Release: releaseLocked, Run: own.Workers(2)})

func releaseLocked(state any, resources []uintptr) error {
	state.(*library).free(resources)
	return nil
}

func (l *library) free([]uintptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done()
}

func newLocked(l *library, p unsafe.Pointer) (*locked, error) {
	m := &locked{lib: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	return m, m.h.Own(pool, p, 1)
}

func (m *locked) around() error {
	m.lib.mu.Lock()
	defer m.lib.mu.Unlock()
	return m.h.TryUse(func(unsafe.Pointer) error { return nil }) // want `TryUse may call the release function, which waits for the lock mu that is held here: take the lock within the function for TryUse`
}

func (m *locked) inside() error {
	return m.h.TryUse(func(unsafe.Pointer) error {
		m.lib.mu.Lock()
		defer m.lib.mu.Unlock()
		return nil
	})
}

func (m *locked) Close() error { return m.h.Close() }

func (m *locked) closes(some bool) {
	m.lib.mu.Lock()
	if some {
		m.Close() // want `Close may call the release function, .*: call it with the lock free`
	}
	m.lib.mu.Unlock()
	m.Close()
	m.lib.mu.Lock()
	defer m.h.Close()
	go m.Close()
	m.lib.mu.Unlock()
}

func (m *locked) deferred() {
	m.lib.mu.Lock()
	defer m.lib.mu.Unlock()
	defer m.h.Close() // want `Close may call the release function`
}

func (m *locked) room(ctx context.Context) {
	m.lib.mu.Lock()
	defer m.lib.mu.Unlock()
	pool.Reserve(ctx, 1) // want `Reserve may call the release function`
}

// unlocked is of a pool whose release takes no lock.
type unlocked struct {
	lib *library
	h   own.Handle[unsafe.Pointer]
}

var free = own.NewPool(own.Options{Release: func(any, []uintptr) error { return nil }})

func (m *unlocked) own(p unsafe.Pointer) { m.h.Own(free, p, 1) }

func (m *unlocked) around() {
	m.lib.mu.Lock()
	defer m.lib.mu.Unlock()
	m.h.Use(func(unsafe.Pointer) {})
}

// embeds has a pool for each library, which has its lock embedded.
type embeds struct {
	sync.Mutex
	pool *own.Pool
}

type book struct {
	of    *embeds
	owner own.Handle[unsafe.Pointer]
}

func newEmbeds() *embeds {
	e := new(embeds)
	lock := &sync.Mutex{}
	e.pool = own.NewPool(own.Options{Release: func(any, []uintptr) error {
		lock.Lock()
		defer lock.Unlock()
		return nil
	}, OnCollect: func(own.Collected) { e.Lock(); e.Unlock() }})
	return e
}

func (b *book) read(p unsafe.Pointer) {
	b.owner.Own(b.of.pool, p, 1)
	b.of.Lock()
	b.owner.Use(func(unsafe.Pointer) {}) // want `Use may call the release function, which waits for the lock embeds`
	b.of.Unlock()
	b.owner.Use(func(unsafe.Pointer) {})
}

// closesInUse releases after the function.
func (m *locked) closesInUse() {
	m.h.Use(func(unsafe.Pointer) {
		m.lib.mu.Lock()
		defer m.lib.mu.Unlock()
		m.h.Close()
	})
}

// queued is of a pool whose releases only Drain calls.
type queued struct {
	lib *library
	h   own.Handle[unsafe.Pointer]
}

var queue own.Queue

var queues = own.NewPool(own.Options{Release: releaseLocked, Run: queue.Run()})

func (m *queued) close(p unsafe.Pointer) {
	m.h.Own(queues, p, 1)
	m.lib.mu.Lock()
	defer m.lib.mu.Unlock()
	m.h.Use(func(unsafe.Pointer) {})
	m.h.Close()
	drain()   // want `drain may call the release function`
	m.Close() // want `Close may call the release function`
}

func drain() { queue.Drain(0) }

func (m *queued) Close() { m.h.CloseWait(context.Background()) }

// made is of a pool whose Release waits for no lock, and whose Construct does.
type made struct{ owner own.Handle[unsafe.Pointer] }

var global library

var makes = own.NewPool(own.Options{
	Construct: func([]uintptr) (int, error) { global.free(nil); return 0, nil },
	Release:   func(any, []uintptr) error { go global.free(nil); return nil },
})

func (m *made) close() {
	m.owner.Make(makes)
	global.mu.Lock()
	defer global.mu.Unlock()
	m.owner.Close()
}
