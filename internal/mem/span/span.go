// Package span hands out spans, runs of units of 64 KiB, and finds the span that an address
// lies in.
//
// # Addresses
//
// Address space is divided into regions of 64 MiB (4 MiB on 32-bit systems), and a
// region into units of 64 KiB. The map has a word for each region, which is 0 or the
// address of a table. The table has a [Span], a record of 128 bytes, for each unit. So
// [Find] is two loads.
//
// The words and the tables are outside the Go heap. The system commits them as they are
// touched. They are read by atomic loads, and never unmapped, and the record of a unit
// that is not in use says so. So Find may be called for any number at any time.
//
// # Records
//
// A unit that is handed out belongs to the caller of [Alloc], together with its record,
// except for the field Chunk, which has a lock of its own. Tag is written last,
// atomically, when the other fields are in place. It is 0 in a unit that is not handed
// out.
//
// # Memory
//
// Units that were freed keep their memory for a while, because fresh pages cost more
// than anything else here, about half a microsecond for 4 KiB. Such units are warm, and
// are handed out first. [Age], called twice, releases the memory of those that were
// warm all the time between the two calls. What is behind a span in its last unit may have
// memory of an earlier span. This is a tail. Tails are given back by the same calls.
//
// A request of a quarter of a region or more gets a mapping of its own. The mapping is
// released as soon as it is freed. On systems that can move pages, its pages come from
// warm units, and become warm units again; see stow.go.
package span

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
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

	// addressBits is how many bits an address has. On all systems that Go runs on,
	// the kernel uses no more than 48 unless a program asks for more.
	addressBits = 32 + 16*(bits.UintSize>>6)
)

// A Span is the record of a unit. Its address never changes.
type Span struct {
	// Read by every Free.

	// Tag says to which heap the unit belongs, and how it is used: the number of the
	// heap, shifted left by KindBits, and the size class or one of the kinds below. It
	// is 0 in a unit that is not handed out.
	Tag uintptr

	// Carved is how many blocks have been carved, from the start of the span. Behind
	// them nothing has been handed out. It is written atomically.
	Carved uint32

	Inverse uint32  // see sizeclass.Index
	Shift   uint32  // see sizeclass.Index
	Blocks  uint32  // how many blocks fit
	Size    uintptr // of a block, in bytes

	// Base is the address of the span's first byte, also in the records of the units
	// behind the first.
	Base uintptr

	// Was is the Tag before the unit was freed.
	Was uintptr

	// Chunk is the innermost entry of a chunk that covers the unit; see
	// EnterChunk.
	Chunk uintptr

	_ [64 - (5*ptrSize + 16)]byte

	// Touched in slow paths only, under the lock of the class.

	Free       uintptr // the first of the blocks that were sorted back; they are a list
	NumFree    uint32  // how many these are
	Fresh      bool    // memory that is not carved yet is zero
	Listed     bool    // the span is in its class's list
	Runs       uint16  // how many times blocks came before Free since the list was ordered
	Next, Prev uintptr // in that list; addresses of Spans

	// Space is the size of the mapping of a large block that has its own, in bytes, and
	// 0 in all other spans.
	Space uintptr

	// Lost is how many bytes at the start of a mapping are not its own any more; see MoveUnits.
	Lost uintptr

	// Region is the number of the region, in the record of its first unit.
	Region uint32

	// Pieces is how many pieces at the start of a mapping were moved there, and PieceSize how many bytes
	// each of them has: chunks, see fetch, or all that MoveUnits has moved.
	Pieces, PieceSize uint32

	// Sampled says that package sample knows of the large block.
	Sampled bool

	// Filled says that the unit of the span, or the units of the large block, came from AllocFilled
	// as they were filled, or that those of the large block are to go back by FreeFilled.
	Filled bool

	_ [64 - (5*ptrSize + 24)]byte
}

const (
	ptrSize  = bits.UintSize / 8
	spanSize = 128
)

// The layout is part of the design: what Free reads is in one cache line.
var (
	_ [spanSize]byte = [unsafe.Sizeof(Span{})]byte{}
	_ [64]byte       = [unsafe.Offsetof(Span{}.Free)]byte{}
)

// The kinds of span beside the size classes, in the low byte of Tag.
const (
	KindLarge = 0xFF // one block, from the span's start

	// KindSampled is added to a size class: the span has blocks of that class of which
	// package sample knows.
	KindSampled = 0x80

	// KindGuarded is a unit with one block of a class that package guard has placed. Base is
	// the start of the block, and may lie anywhere in the unit.
	KindGuarded = 0xFD

	KindBody = 0xFE // a unit behind the first of a large block
	KindMask = 0xFF
	KindBits = 8
)

// At returns the Span at addr, which [Span.Addr] returned.
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

// StoreTag sets the Tag of s. With 0 the unit belongs to no heap any more.
//
//go:norace
func (s *Span) StoreTag(tag uintptr) {
	if tag == 0 {
		s.Was = s.Tag
	}
	atomic.StoreUintptr(&s.Tag, tag)
}
