//go:build asan

package asan_test

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
)

// TestConformance is the test of every allocator, with heaps that the sanitizer watches. A
// freed block is in quarantine at first, so a heap does not reuse it soon.
func TestConformance(t *testing.T) {
	heap := func(t testing.TB) *cheap.Heap {
		h, err := cheap.NewHeap(cheap.HeapOptions{Quarantine: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.DestroyAll() })
		return h
	}
	test := func(name string, g cheaptest.Guarantees, f func(t testing.TB) (cheap.Allocator, func() error)) {
		g.Align = 16
		t.Run(name, func(t *testing.T) { cheaptest.TestAllocator(t, f, g) })
	}
	test("Heap", cheaptest.Guarantees{Concurrent: true, CountsLive: true, DetectsMisuse: true}, func(t testing.TB) (cheap.Allocator, func() error) {
		h := heap(t)
		return h, h.Destroy
	})
	test("Local", cheaptest.Guarantees{DetectsMisuse: true}, func(t testing.TB) (cheap.Allocator, func() error) {
		l := heap(t).NewLocal()
		return l, l.Destroy
	})
	test("Arena", cheaptest.Guarantees{}, func(t testing.TB) (cheap.Allocator, func() error) {
		a := cheap.NewArena(heap(t), 4096)
		return a, a.Destroy
	})
	test("FixedBlock", cheaptest.Guarantees{Reuses: true, CountsLive: true, DetectsMisuse: true}, func(t testing.TB) (cheap.Allocator, func() error) {
		f := cheap.NewFixedBlock(heap(t), cheap.FixedBlockOptions{BlockSize: 112, Align: 16})
		return f, f.Destroy
	})
	test("Fallback", cheaptest.Guarantees{CountsLive: true, DetectsMisuse: true}, func(t testing.TB) (cheap.Allocator, func() error) {
		h := heap(t)
		large := cheap.NewFixedBlock(h, cheap.FixedBlockOptions{BlockSize: 128 << 10, Align: 16})
		rest := cheap.NewFallback(large, h)
		small := cheap.NewFixedBlock(rest, cheap.FixedBlockOptions{BlockSize: 64, Align: 16})
		return cheap.NewFallback(small, rest), func() error {
			if err := small.Destroy(); err != nil {
				return err
			}
			if err := large.Destroy(); err != nil {
				return err
			}
			return h.Destroy()
		}
	})
}
