//go:build cgo && unix

//cheapvet:ignore perobject this is what owners are compared with

package lifetime

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/cside"
)

// A Plain object has room for its pointer and a word of the binding. The objects of
// all ways have this size, because the cost of a cleanup depends on it.
type Plain struct {
	Block unsafe.Pointer
	_     uintptr
}

// Sink makes objects escape.
var Sink *Plain

// goSink makes arrays escape.
//
//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var goSink *[cside.BlockSize]byte

// NewPlain returns an object with a block.
func NewPlain() *Plain { return &Plain{Block: cside.CreateBlock()} }

// NewWithCleanup returns an object whose block a cleanup destroys.
func NewWithCleanup() *Plain {
	o := NewPlain()
	runtime.AddCleanup(o, cside.Destroy, o.Block)
	return o
}

// NewWithFinalizer returns an object whose block its finalizer destroys.
func NewWithFinalizer() *Plain {
	o := NewPlain()
	runtime.SetFinalizer(o, finalize)
	return o
}

func finalize(o *Plain) { cside.Destroy(o.Block) }

// Manual destroys blocks as soon as they are made, and has no object.
func Manual() (*Lifetime, error) {
	return onBlocks(func(n int) {
		for range n {
			cside.Destroy(cside.CreateBlock())
		}
	}), nil
}

// ManualObject destroys the block of each object as soon as it is made.
func ManualObject() (*Lifetime, error) {
	return onBlocks(func(n int) {
		for range n {
			o := NewPlain()
			Sink = o
			cside.Destroy(o.Block)
		}
	}), nil
}

// Defer destroys each block in a deferred call, and has no object.
func Defer() (*Lifetime, error) {
	return onBlocks(func(n int) {
		for range n {
			deferred()
		}
	}), nil
}

func deferred() {
	block := cside.CreateBlock()
	defer cside.Destroy(block)
	runtime.KeepAlive(block)
}

// Cleanup forgets objects that have a cleanup each.
func Cleanup() (*Lifetime, error) {
	return onBlocks(func(n int) {
		for range n {
			Sink = NewWithCleanup()
		}
	}), nil
}

// Finalizer forgets objects that have a finalizer each.
func Finalizer() (*Lifetime, error) {
	return onBlocks(func(n int) {
		for range n {
			Sink = NewWithFinalizer()
		}
	}), nil
}

// finalized counts the finalizers that do nothing else: without the count it would
// be unknown when they have run. forgotten counts the objects with such a
// finalizer. Both are for all Lifetimes together: several may be open and take
// turns.
var finalized, forgotten atomic.Int64

func count(*Plain) { finalized.Add(1) }

// FinalizerEmpty destroys the block of each object as soon as it is made, and
// forgets an object whose finalizer has nothing to do.
func FinalizerEmpty() (*Lifetime, error) {
	l := byCount(func() {
		o := NewPlain()
		runtime.SetFinalizer(o, count)
		Sink = o
		cside.Destroy(o.Block)
	})
	l.blocks = true
	return l, nil
}

// FinalizerNoC forgets objects that hold nothing and whose finalizer has nothing to
// do. They are as large as others, because the runtime ignores the finalizer of an
// object of no size.
func FinalizerNoC() (*Lifetime, error) {
	return byCount(func() {
		o := new(Plain)
		runtime.SetFinalizer(o, count)
		Sink = o
	}), nil
}

// byCount makes a Lifetime of objects whose finalizer counts. Make makes one.
func byCount(make func()) *Lifetime {
	released := func() int { return int(finalized.Load()) }
	return &Lifetime{
		Run: func(n int) {
			for range n {
				make()
			}
			forgotten.Add(int64(n))
		},
		Left:     func() int { return int(forgotten.Load()) - released() },
		Released: released,
		Close:    nothing,
	}
}

// Bulk makes as many blocks as a batch has owners, each with an object, and destroys
// them in one cgo call. This is the least that late destruction can cost.
func Bulk() (*Lifetime, error) {
	var batch [256]uintptr
	return onBlocks(func(n int) {
		for n > 0 {
			part := batch[:min(n, len(batch))]
			for i := range part {
				o := NewPlain()
				Sink = o
				part[i] = uintptr(o.Block)
			}
			cside.DestroyAll(part)
			n -= len(part)
		}
	}), nil
}

// Arrays forgets Go arrays as large as a block.
func Arrays() (*Lifetime, error) {
	return &Lifetime{
		Run: func(n int) {
			for range n {
				goSink = new([cside.BlockSize]byte)
			}
		},
		Left:  func() int { return 0 },
		Peak:  func() int64 { return 0 },
		Close: nothing,
	}, nil
}
