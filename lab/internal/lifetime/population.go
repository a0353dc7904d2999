//go:build cgo && unix

package lifetime

import (
	"fmt"
	"runtime"

	"github.com/cheapgo/cheap/internal/test/cside"
)

// A Population is many live objects of one kind, with a block of C each. The objects
// of all kinds have the same size. A slice of pointers holds them.
type Population struct {
	*Lifetime

	// Fill makes n objects, and returns the value that keeps them reachable. To
	// destroy the blocks, that value is dropped and drop is called.
	Fill func(n int) (keep any, drop func())
}

// PlainPopulation has objects whose blocks are destroyed by hand.
func PlainPopulation() *Population {
	return &Population{onBlocks(nil), func(n int) (any, func()) {
		objects := fill(n, NewPlain)
		return objects, func() {
			blocks := make([]uintptr, n)
			for i, o := range objects {
				blocks[i] = uintptr(o.Block)
			}
			cside.DestroyAll(blocks)
		}
	}}
}

// CleanupPopulation has objects with a cleanup each.
func CleanupPopulation() *Population {
	return &Population{onBlocks(nil), func(n int) (any, func()) { return fill(n, NewWithCleanup), func() {} }}
}

// FinalizerPopulation has objects with a finalizer each.
func FinalizerPopulation() *Population {
	return &Population{onBlocks(nil), func(n int) (any, func()) { return fill(n, NewWithFinalizer), func() {} }}
}

// OwnerPopulation has owners.
func OwnerPopulation() *Population {
	p := NewPool()
	newOwned := func() *Owned { return NewOwned(p) }
	return &Population{onPool(p, nil), func(n int) (any, func()) { return fill(n, newOwned), func() {} }}
}

func fill[T any](n int, make1 func() *T) []*T {
	objects := make([]*T, n)
	for i := range objects {
		objects[i] = make1()
	}
	return objects
}

// CheckLive returns an error unless n blocks have been made since Begin, and are
// live.
func (p *Population) CheckLive(n int) error {
	if k := p.Done(); k != 0 {
		return fmt.Errorf("%d blocks of live objects were destroyed", k)
	}
	if made := int(cside.Count().Created - p.before.Created); made != n {
		return fmt.Errorf("made %d blocks in C for %d live objects", made, n)
	}
	return nil
}

// HeapBytes collects, and returns the bytes of Go objects that are left.
func HeapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
