package cleanupcycle

import (
	"runtime"
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
}
