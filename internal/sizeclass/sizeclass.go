// Package sizeclass holds the table of size classes: which sizes share one
// block size, and what a heap needs to know of each.
//
// Sizes up to 128 bytes are 16 apart. Above, each doubling has eight classes,
// so that rounding up wastes at most an eighth of a block.
package sizeclass

//go:generate go run gen.go

import "math/bits"

const (
	// Quantum is what every block size is a multiple of, and what every
	// block is aligned to, in bytes.
	Quantum = 16

	// SpanSize is the size, in bytes, of the span that blocks of a class are
	// carved from. It is a power of two, and a span is aligned to it.
	SpanSize = 64 << 10
)

// A Class describes the blocks of one size class.
type Class struct {
	// Size of a block in bytes.
	Size uint32

	// Blocks is how many blocks a span has.
	Blocks uint32

	// Inverse and Shift divide by Size. See Index.
	Inverse uint32
	Shift   uint8

	// Batch is how many blocks move between a cache and the heap at once.
	// It is 0 for classes that are not cached.
	Batch uint8
}

// SpanBytes returns how many bytes of a span its blocks reach into, rounded up
// to pages of 4 KiB. The rest of the span is never touched.
func (c *Class) SpanBytes() uintptr {
	return (uintptr(c.Size)*uintptr(c.Blocks) + 4095) &^ 4095
}

// Of returns the class of a size from 0 to MaxSize. A larger one panics.
func Of(size int) uint8 { return index[(uint(size)+Quantum-1)/Quantum] }

// Index returns off/size for the block size that inverse and shift belong to
// if size divides off, and a number above (2³²-1)/size otherwise, which is
// more than any span has blocks: so one comparison tells whether off is the
// start of a block that exists. This is exact division by the inverse modulo
// 2³² (Granlund and Montgomery, "Division by Invariant Integers using
// Multiplication", 1994, section 9): multiplying with the inverse of the odd
// part of size permutes the numbers, and turns the multiples of it into 0, 1,
// 2, …; turning the result right moves bits that a division by the power of
// two would lose to the top.
func Index(off, inverse uint32, shift uint8) uint32 {
	return bits.RotateLeft32(off*inverse, -int(shift))
}
