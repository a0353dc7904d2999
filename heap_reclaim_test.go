package cheap

import "testing"

// TestSettleEnds uses an almost empty heap for one size after the other. After a
// while it has what it takes, and gives none of it back to take it again.
func TestSettleEnds(t *testing.T) {
	for _, sizes := range [][]int{
		{4, 128, 512},
		{16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16 << 10, 32 << 10},
	} {
		h := newHeap(t, HeapOptions{})
		rounds := func(n int) {
			for range n {
				for _, size := range sizes {
					h.Free(h.Malloc(size))
				}
			}
		}
		rounds(100)
		before := h.consolidations.Load()
		const n = 1000
		rounds(n)
		if k := h.consolidations.Load() - before; k > n/100 {
			t.Errorf("%v: the heap settled %d times in %d rounds", sizes, k, n)
		}
	}
}
