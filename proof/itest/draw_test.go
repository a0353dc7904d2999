package itest

import (
	"math/bits"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
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
