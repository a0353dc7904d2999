// Package sizeclass has the table of size classes: which sizes share one block size,
// and what a heap needs to know about each class.
//
// Block sizes up to 128 bytes are 16 apart. Above that each doubling has eight classes,
// so that rounding up wastes at most an eighth of a block. gen/main.go decides which sizes there
// are, and writes table.go.
package sizeclass

//go:generate go run ./gen

import "math/bits"

const (
	// Quantum is what every block size is a multiple of, and what every block is
	// aligned to, in bytes.
	Quantum = 16

	// SpanSize is the size in bytes of the spans that blocks of a class are carved
	// from. It is a power of two, and spans are aligned to it.
	SpanSize = 64 << 10
)

// A Class describes the blocks of one size class.
type Class struct {
	// Size of a block in bytes.
	Size uint32

	// Blocks is how many blocks a span has.
	Blocks uint32

	// Inverse and Shift divide by Size: see Index.
	Inverse uint32
	Shift   uint8

	// Magazine is how many blocks move between a cache and the heap at once.
	Magazine uint8

	// Least is how many blocks of a magazine a cache has room for whatever other classes
	// take. Above 16 KiB that is none.
	Least uint8
}

// SpanBytes returns how many bytes of a span have blocks in them, rounded up to pages of
// 4 KiB. The rest of the span is never touched.
func (c *Class) SpanBytes() uintptr {
	return (uintptr(c.Size)*uintptr(c.Blocks) + 4095) &^ 4095
}

// Of returns the class of a size from 0 to MaxSize. A larger one panics.
func Of(size int) uint8 { return index[(uint(size)+Quantum-1)/Quantum] }

// Index returns the number of the block that begins at offset off of its span. inverse
// and shift are those of the block's class. If no block begins there, because the size
// of the blocks does not divide off, Index returns a number above (2³²-1)/size, which is
// more than any span has blocks. So one comparison tells whether a block begins at off.
//
// This is exact division by the inverse modulo 2³² (Granlund and Montgomery, "Division
// by Invariant Integers using Multiplication", 1994, section 9). The product with the
// inverse of the odd part of size is another number for each off, and 0, 1, 2, … for
// the multiples of the odd part. Rotating it right divides by the power of two in size,
// and moves the bits that this division would lose to the top.
func Index(off, inverse uint32, shift uint8) uint32 {
	return bits.RotateLeft32(off*inverse, -int(shift))
}
