package own

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

type thing struct {
	Owner
	x int
}

var sink *thing

func TestSmoke(t *testing.T) {
	var released atomic.Int64
	p := NewPool(Options{Release: func(r []uintptr) { released.Add(int64(len(r))) }})
	var b byte
	for i := range 100000 {
		o := &thing{}
		if err := p.Own(&o.Owner, unsafe.Pointer(&b), 100); err != nil {
			t.Fatal(err)
		}
		sink = o
		if i%3 == 0 {
			o.Close()
		}
	}
	sink = nil
	for i := 0; released.Load() < 100000 && i < 10; i++ {
		runtime.GC()
		Flush(context.Background())
		t.Log(released.Load(), p.Stats())
	}
	t.Log(p.Destroy(time.Second), p.Stats())
}

func BenchmarkOwnForget(b *testing.B) {
	p := NewPool(Options{Release: func(r []uintptr) {}})
	var x byte
	for b.Loop() {
		o := &thing{}
		p.Own(&o.Owner, unsafe.Pointer(&x), 100)
		sink = o
	}
}
func BenchmarkOwnClose(b *testing.B) {
	p := NewPool(Options{Release: func(r []uintptr) {}})
	var x byte
	for b.Loop() {
		o := &thing{}
		p.Own(&o.Owner, unsafe.Pointer(&x), 100)
		sink = o
		o.Close()
	}
}
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		sink = &thing{}
	}
}
