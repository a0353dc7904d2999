// Package span hands out spans, runs of address space in units of 64 KiB, and
// knows for every address that the CPU can form which span it lies in.
//
// # Addresses
//
// Address space is divided into regions (64 MiB on 64-bit systems, 4 MiB on
// 32-bit ones), and a region into units of 64 KiB. The map has a word for each
// region, which is 0 or leads to a table with a [Span], a record of 128 bytes,
// for each unit. So Find is two loads. The words and the tables lie outside the
// Go heap, are committed by the system as they are touched, are read with
// atomic loads, and are never unmapped; a record that is no longer in use says
// so, and so every number can be asked about at any time.
//
// # Who writes a record
//
// A unit that is handed out belongs to the caller of Alloc, and so do the
// records of its units, but for Chunk, which has a lock of its own. Tag is
// written last, atomically, when the rest is in place, and is 0 in a unit that
// nobody holds.
//
// # Memory
//
// Spans that were given back keep their memory for a while, because fresh pages
// cost more than anything else here (about half a microsecond per 4 KiB).
// Which units may still have some is known per unit: those are handed out
// first, and Age, called twice, drops the memory of those that were idle in
// between. Requests of a quarter of a region and more get a mapping of their own, which is
// given back at once.
package span

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
)

const (
	// UnitShift is the binary logarithm of UnitSize.
	UnitShift = 16

	// UnitSize is the size and the alignment of a unit, in bytes.
	UnitSize = 1 << UnitShift

	// regionShift is 26 on 64-bit systems and 22 on 32-bit ones.
	regionShift = 22 + 4*(bits.UintSize>>6)

	// RegionSize is the size and the alignment of a region, in bytes.
	RegionSize = 1 << regionShift

	regionUnits = RegionSize / UnitSize

	// OwnMapping is the size in bytes from which a span gets a mapping of its
	// own.
	OwnMapping = RegionSize / 4

	// addressBits is how many bits of an address may be set. The kernels of
	// all systems that Go runs on give out no more than 48 unless asked for.
	addressBits = 32 + 16*(bits.UintSize>>6)
)

// A Span is the record of a unit. Its address is fixed for the life of the
// process.
type Span struct {
	// Read by every Free.

	// Tag says whose the unit is: the number of the heap, shifted left by 8,
	// and the size class or one of the kinds below. 0 if nobody's.
	Tag uintptr

	// Carved is how many blocks have been made of the span, from its start.
	// Addresses behind have never been handed out. Written atomically.
	Carved uint32

	Inverse uint32  // see sizeclass.Index
	Shift   uint32  // see sizeclass.Index
	Blocks  uint32  // how many blocks fit
	Size    uintptr // of a block, in bytes

	// Base is the address of the span's first byte. In units behind the
	// first of a longer span, too.
	Base uintptr

	// Was is what Tag was before the unit was given back.
	Was uintptr

	// Chunk is the innermost entry of a chunk that covers the unit; see
	// EnterChunk.
	Chunk uintptr

	_ [64 - (5*ptrSize + 16)]byte

	// Touched in slow paths only, under the lock of the class.

	Free       uintptr // first of the blocks that came back
	NumFree    uint32  // how many there are
	Fresh      bool    // blocks that are still to be carved are zero
	Listed     bool    // the span is in its class's list
	Next, Prev uintptr // in that list; addresses of Spans

	// Space is the address space of a large block that has a mapping of its
	// own, in bytes, and 0 in all other spans.
	Space uintptr

	// Region is the number of the region, in its first unit.
	Region uint32

	_ [64 - (4*ptrSize + 12)]byte
}

const (
	ptrSize  = bits.UintSize / 8
	spanSize = 128
)

// The layout is part of the design: what Free reads lies in one cache line.
var (
	_ [spanSize]byte = [unsafe.Sizeof(Span{})]byte{}
	_ [64]byte       = [unsafe.Offsetof(Span{}.Free)]byte{}
)

// The kinds of span beside the size classes, in the low byte of Tag.
const (
	KindLarge = 0xFF // one block, from the span's start
	KindBody  = 0xFE // a unit behind the first of a large block
	KindMask  = 0xFF
	KindBits  = 8
)

// At returns the Span at an address that was taken of one.
//
//go:norace
func At(addr uintptr) *Span { return (*Span)(osmem.Pointer(addr)) }

// Addr returns the address of s.
//
//go:norace
func (s *Span) Addr() uintptr { return uintptr(unsafe.Pointer(s)) }

// LoadTag returns the Tag of s.
//
//go:norace
func (s *Span) LoadTag() uintptr { return atomic.LoadUintptr(&s.Tag) }

// StoreTag makes s a span of a heap, or nobody's.
//
//go:norace
func (s *Span) StoreTag(tag uintptr) {
	if tag == 0 {
		atomic.StoreUintptr(&s.Was, s.Tag)
	}
	atomic.StoreUintptr(&s.Tag, tag)
}
