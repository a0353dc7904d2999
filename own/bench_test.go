package own

import (
	"testing"
	"unsafe"
)

var sink *thing

// benchPool returns a pool that releases nothing.
func benchPool() *Pool { return NewPool(Options{Release: func([]uintptr) {}}) }

func BenchmarkOwn(b *testing.B) {
	var x byte
	b.Run("end=forget", func(b *testing.B) {
		p := benchPool()
		for b.Loop() {
			m := &thing{}
			p.Own(&m.Owner, unsafe.Pointer(&x), 100)
			sink = m
		}
	})
	b.Run("end=close", func(b *testing.B) {
		p := benchPool()
		for b.Loop() {
			m := &thing{}
			p.Own(&m.Owner, unsafe.Pointer(&x), 100)
			sink = m
			m.Close()
		}
	})
	b.Run("end=none", func(b *testing.B) { // the object alone
		for b.Loop() {
			sink = &thing{}
		}
	})
}

func BenchmarkMake(b *testing.B) {
	p := NewPool(Options{
		Release:   func([]uintptr) {},
		Construct: func(r []uintptr) (int, error) { return len(r), nil },
	})
	for b.Loop() {
		m := &thing{}
		p.Make(&m.Owner)
		sink = m
	}
}

func BenchmarkUse(b *testing.B) {
	for _, unshared := range []bool{false, true} {
		name := "count=yes"
		if unshared {
			name = "count=no"
		}
		b.Run(name, func(b *testing.B) {
			p := NewPool(Options{Release: func([]uintptr) {}, Unshared: unshared})
			var x byte
			m := &thing{}
			p.Own(&m.Owner, unsafe.Pointer(&x), 100)
			n := 0
			for b.Loop() {
				m.Use(func(unsafe.Pointer) { n++ })
			}
		})
	}
}
