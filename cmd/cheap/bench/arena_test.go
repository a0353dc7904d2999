//go:build cgo

package bench

import (
	"testing"

	"github.com/CannibalVox/cgoparam"

	"github.com/cheapgo/cheap"
)

// cheapBatch takes the arguments of one C call from a pooled arena, as
// cgoparam's benchmark of a small batch does.
func cheapBatch() {
	arena := cheap.GetArena()
	defer arena.Put()

	_ = arena.Malloc(1)
	_ = arena.Malloc(10)
	_ = arena.Malloc(100)
	_ = arena.Malloc(1000)
}

func cgoparamBatch() {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)

	_ = alloc.Malloc(1)
	_ = alloc.Malloc(10)
	_ = alloc.Malloc(100)
	_ = alloc.Malloc(1000)
}

func cheapArena(testing.TB) work {
	return func(n int) {
		for range n {
			cheapBatch()
		}
	}
}

func cgoparamArena(testing.TB) work {
	return func(n int) {
		for range n {
			cgoparamBatch()
		}
	}
}

// BenchmarkArena takes a pooled arena, blocks of 1, 10, 100 and 1,000 bytes
// from it, and gives it back.
func BenchmarkArena(b *testing.B) {
	b.Run("allocator=cheap", func(b *testing.B) { cheapArena(b)(b.N) })
	b.Run("allocator=cgoparam", func(b *testing.B) { cgoparamArena(b)(b.N) })
}
