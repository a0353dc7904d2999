//go:build cgo

package bench

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// replacement is 4,096 live blocks of 16 to 1,024 bytes. One after the other, in random
// order, is freed and replaced by another. The first and the last byte of each new
// block are written.
type replacement struct {
	steps *[manySteps]step
	slots *[liveBlocks]uintptr // addresses: a pointer would need a write barrier
}

func newReplacement() replacement {
	rng := rand.New(rand.NewPCG(3, 4))
	r := replacement{new([manySteps]step), new([liveBlocks]uintptr)}
	for i := range r.steps {
		r.steps[i] = step{slot: rng.Uint32N(liveBlocks), size: 16 + rng.Uint32N(1024-16+1)}
	}
	for i := range liveBlocks { // fills every slot
		r.steps[i].slot = uint32(i)
	}
	rng.Shuffle(liveBlocks, func(i, j int) { r.steps[i], r.steps[j] = r.steps[j], r.steps[i] })
	return r
}

// at returns the block in a slot, nil if there is none. The blocks are not in
// the Go heap, or their heap keeps them alive.
func (r replacement) at(slot uint32) unsafe.Pointer {
	return cheap.Pointer(r.slots[slot&(liveBlocks-1)])
}

// put stores and touches a block of size bytes.
func (r replacement) put(slot uint32, ptr unsafe.Pointer, size uint32) {
	r.slots[slot&(liveBlocks-1)] = uintptr(ptr)
	*(*byte)(ptr) = 1
	*(*byte)(unsafe.Add(ptr, size-1)) = 1
}

func heapReplace(tb testing.TB) work {
	h, r := newHeap(tb), newReplacement()
	tb.Cleanup(func() {
		for slot := range r.slots {
			h.Free(r.at(uint32(slot)))
		}
	})
	return func(n int) {
		for i := range n {
			s := &r.steps[i&(manySteps-1)]
			h.Free(r.at(s.slot))
			r.put(s.slot, h.Malloc(int(s.size)), s.size)
		}
	}
}

func localReplace(tb testing.TB) work {
	l, r := newLocal(tb), newReplacement()
	tb.Cleanup(func() {
		for slot := range r.slots {
			l.Free(r.at(uint32(slot)))
		}
	})
	return func(n int) {
		for i := range n {
			s := &r.steps[i&(manySteps-1)]
			l.Free(r.at(s.slot))
			r.put(s.slot, l.Malloc(int(s.size)), s.size)
		}
	}
}

func nativeReplacing(tb testing.TB) work {
	r := newReplacement()
	tb.Cleanup(func() { nativeFreeAll(r.slots) })
	return func(n int) {
		if got := nativeReplace(n, r.steps, r.slots); got != n {
			tb.Fatalf("malloc failed %d times", n-got)
		}
	}
}

// BenchmarkReplace replaces blocks of mixed sizes among many.
func BenchmarkReplace(b *testing.B) {
	for _, c := range []struct {
		allocator string
		open      contender
	}{
		{"heap", heapReplace},
		{"local", localReplace},
		{"native", nativeReplacing},
	} {
		b.Run("allocator="+c.allocator, func(b *testing.B) {
			run := c.open(b)
			run(manySteps)
			b.ResetTimer()
			run(b.N)
		})
	}
}
