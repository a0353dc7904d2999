//go:build cgo && unix

package lifetime

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// Bare forgets owners of something whose release does nothing. So it is what owning costs
// by itself: no C function is called, and no malloc.
func Bare() (*Lifetime, error) {
	var made, released atomic.Int64
	p := own.NewPool(own.Options{Name: "bench.bare", Release: func(_ any, resources []uintptr) error {
		released.Add(int64(len(resources)))
		return nil
	}})
	return &Lifetime{
		Run: func(n int) {
			made.Add(int64(n))
			for range n {
				o := new(Owned)
				must(o.Handle.Own(p, unsafe.Pointer(&aResource), cside.BlockSize))
				ownedSink = o
			}
			ownedSink = nil
		},
		Left:     func() int { return int(made.Load() - released.Load()) },
		Released: func() int { return int(released.Load()) },
		Close: func() error {
			return p.CloseWait(context.Background())
		},
	}, nil
}

// Children forgets owners of blocks that have a parent, which lives. Their release
// function uses the state of the parent.
func Children() (*Lifetime, error) {
	p := own.NewPool(own.Options{
		Name: "bench.child", Size: cside.BlockSize,
		Release: libc.Destructor(cside.DestroyBlock, libc.NoCallback),
	})
	parents := own.NewPool(own.Options{Name: "bench.parent", Release: func(any, []uintptr) error { return nil }})
	parent, context1 := new(Owned), new([1]byte)
	must(parent.Handle.Own(parents, unsafe.Pointer(&aResource), 1))
	must(parent.Handle.SetState(context1))
	l := onPool(p, func(n int) {
		for range n {
			o := new(Owned)
			must(o.Handle.OwnWith(p, cside.CreateBlock(), own.With{Size: cside.BlockSize, Parent: parent.Handle.Owner()}))
			ownedSink = o
		}
		ownedSink = nil
	})
	closePool := l.Close
	l.Close = func() error {
		if err := closePool(); err != nil {
			return err
		}
		must(parent.Handle.Close())
		return parents.CloseWait(context.Background())
	}
	return l, nil
}

// aResource is a resource outside the Go heap that needs no release.
var aResource byte
