package itest

import (
	"math/bits"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
)

// scarce says whether large blocks cost real memory before they are touched, or
// address space that there is little of.
const scarce = osmem.GoBacked || bits.UintSize == 32

// Sizes of blocks in bytes: most are small, some fill a good part of a span, and
// few are large.
var (
	smallSizes = rapid.IntRange(0, 1100)
	classSizes = rapid.IntRange(0, sizeclass.MaxSize+1)
	largeSizes = rapid.IntRange(sizeclass.MaxSize+1, 6*span.UnitSize+1)
	sizes      = rapid.OneOf(smallSizes, smallSizes, smallSizes, classSizes, classSizes, largeSizes, hugeSizes())
)

// hugeSizes are sizes of blocks that get a mapping of their own, where that
// costs little.
func hugeSizes() *rapid.Generator[int] {
	if scarce {
		return largeSizes
	}
	return rapid.IntRange(span.OwnMapping-1, span.OwnMapping+3*span.UnitSize)
}

// aligns are powers of two up to most.
func aligns(most int) *rapid.Generator[int] {
	return rapid.Map(rapid.IntRange(0, bits.Len(uint(most))-1), func(n int) int { return 1 << n })
}

// drawBlock draws one of the live blocks. The action is skipped if there is none.
func drawBlock(t *rapid.T, live *shadow.Set) shadow.Block {
	if live.Len() == 0 {
		t.Skip("no block is live")
	}
	return live.At(rapid.IntRange(0, live.Len()-1).Draw(t, "block"))
}

// drawBurst draws a size, and a number of blocks that is enough to fill caches,
// batches and spans.
func drawBurst(t *rapid.T, sizes *rapid.Generator[int]) (n, size int) {
	size = sizes.Draw(t, "size")
	const bytes = 256 << 10
	return rapid.IntRange(1, max(2, min(300, bytes/(size+1)))).Draw(t, "n"), size
}
