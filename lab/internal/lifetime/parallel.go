//go:build cgo && unix

package lifetime

import (
	"sync"

	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/own"
)

// OwnerParallel forgets owners of one pool, with or without own.Inline, in several
// goroutines.
func OwnerParallel(goroutines int, run own.Run) Way {
	return func() (*Lifetime, error) {
		p := newPool(run)
		return onPool(p, parallel(goroutines, func() any { return NewOwned(p) })), nil
	}
}

// ManualParallel destroys the block of each object as soon as it is made, in several
// goroutines.
func ManualParallel(goroutines int) Way {
	return func() (*Lifetime, error) {
		return onBlocks(parallel(goroutines, func() any {
			o := NewPlain()
			cside.Destroy(o.Block)
			return o
		})), nil
	}
}

// CleanupParallel forgets objects that have a cleanup each, in several goroutines.
func CleanupParallel(goroutines int) Way {
	return func() (*Lifetime, error) {
		return onBlocks(parallel(goroutines, func() any { return NewWithCleanup() })), nil
	}
}

// parallel returns a Run that divides its objects among goroutines. Each goroutine
// has a sink of its own, on cache lines of its own.
func parallel(goroutines int, make1 func() any) func(n int) {
	return func(n int) {
		var wg sync.WaitGroup
		for i := range goroutines {
			share := n / goroutines
			if i < n%goroutines {
				share++
			}
			wg.Go(func() {
				sink := new([16]any)
				for range share {
					sink[8] = make1()
				}
			})
		}
		wg.Wait()
	}
}
