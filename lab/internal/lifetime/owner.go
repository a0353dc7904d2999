//go:build cgo && unix

package lifetime

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Owned object is as large as a Plain one. The field is exported for benchmarks that
// time the methods of a Handle.
type Owned struct{ Handle own.Handle[unsafe.Pointer] }

var _ = [1]struct{}{}[unsafe.Sizeof(Owned{})-unsafe.Sizeof(Plain{})]

// ownedSink makes objects escape.
//
//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var ownedSink *Owned

// NewPool returns a pool of blocks.
func NewPool() *own.Pool { return newPool(own.Run{}) }

func newPool(run own.Run) *own.Pool {
	return own.NewPool(own.Options{
		Run:       run,
		Name:      "bench.block",
		Release:   libc.Destructor(cside.DestroyBlock, libc.NoCallback),
		Construct: libc.Constructor(cside.ConstructBlock, nil),
		Size:      cside.BlockSize,
	})
}

// ClosePool destroys a pool whose owners have been dropped. It returns an error if
// blocks are left.
func ClosePool(p *own.Pool) error {
	dropAll()
	runtime.GC()
	p.CloseWait(context.Background()) // its error counts owners that were never closed, which is intended here
	if c := cside.Count(); c.Created != c.Destroyed {
		return fmt.Errorf("made %d blocks in C and destroyed %d", c.Created, c.Destroyed)
	}
	return nil
}

// NewOwned returns an object that owns a block of a pool. It panics if there is no
// memory.
func NewOwned(p *own.Pool) *Owned {
	o := new(Owned)
	must(o.Handle.Own(p, cside.CreateBlock(), cside.BlockSize))
	return o
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// onPool makes a Lifetime of a pool.
func onPool(p *own.Pool, run func(n int)) *Lifetime {
	l := onBlocks(run)
	l.Close = func() error { return ClosePool(p) }
	return l
}

// Owner forgets owners.
func Owner() (*Lifetime, error) { return owner(NewPool()) }

// OwnerInline is Owner with own.Inline.
func OwnerInline() (*Lifetime, error) { return owner(newPool(own.Inline())) }

func owner(p *own.Pool) (*Lifetime, error) {
	return onPool(p, func(n int) {
		for range n {
			ownedSink = NewOwned(p)
		}
		ownedSink = nil
	}), nil
}

// Make forgets owners of blocks that were made in advance.
func Make() (*Lifetime, error) { return makes(NewPool()) }

// MakeInline is Make with own.Inline.
func MakeInline() (*Lifetime, error) { return makes(newPool(own.Inline())) }

func makes(p *own.Pool) (*Lifetime, error) {
	l := onPool(p, func(n int) {
		for range n {
			o := new(Owned)
			must(o.Handle.Make(p))
			ownedSink = o
		}
		ownedSink = nil
	})
	l.Left = func() int { return Live() - int(p.Stats().Made) }
	l.Released = nil // C does not know it either: unused blocks made in advance are destroyed, too
	l.ahead = true
	return l, nil
}

// Close closes owners.
func Close() (*Lifetime, error) {
	p := NewPool()
	return onPool(p, func(n int) {
		for range n {
			o := NewOwned(p)
			ownedSink = o
			o.Handle.Close()
		}
	}), nil
}
