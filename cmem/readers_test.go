//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestReaders reads what threads write that sample each block.
func TestReaders(t *testing.T) {
	withRate(t, 1)
	const writers = 4
	var all sync.WaitGroup
	var ended atomic.Int64
	for range writers {
		all.Go(func() {
			cwork.Pairs(600, 1000) // the thread looks at the rate
			for range 8000 {
				cwork.Free(cwork.Site(rand.IntN(100), rand.IntN(10_000)))
			}
			ended.Add(1)
		})
	}
	w := NewWatch(2)
	for ended.Load() < writers {
		if _, err := Libraries(); err != nil {
			t.Error(err)
		}
		found, err := w.Look()
		testcall.Want(t, err)
		for _, s := range found {
			if s.Grown > s.Live || len(s.Stack) == 0 {
				t.Errorf("%+v", s)
			}
		}
		eachSite(func(s *site) {
			if s.frees > s.allocs*(1+1e-9) || s.freeBytes > s.allocBytes*(1+1e-9) || s.freeVar > s.allocVar*(1+1e-9) {
				t.Errorf("more was freed than allocated: %+v", *s)
			}
		})
	}
	all.Wait()
}
