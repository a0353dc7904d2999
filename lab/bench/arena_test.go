//go:build cgo

package bench

import (
	"testing"

	"github.com/cheapgo/cheap/lab/internal/loops"
)

func cheapArena(testing.TB) work    { return loops.ArenaBatch }
func cgoparamArena(testing.TB) work { return loops.OriginalBatch }

// BenchmarkArena takes a pooled arena, blocks of 1, 10, 100 and 1,000 bytes
// from it, and gives it back.
func BenchmarkArena(b *testing.B) {
	b.Run("allocator=cheap", func(b *testing.B) { loops.ArenaBatch(b.N) })
	b.Run("allocator=cgoparam", func(b *testing.B) { loops.OriginalBatch(b.N) })
}
