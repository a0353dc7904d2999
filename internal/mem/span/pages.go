package span

import (
	"math/bits"
	"sync"
)

// Regions, and the units in them: where a region is reserved, with which pages, and which units are
// handed out, warm or given back.

// A region is address space from which spans are taken: 64 MiB, or 4 MiB on 32-bit
// systems. It stays reserved forever.
type region struct {
	base      uintptr
	index     int // in pages.regions
	committed int // units from the start that have been committed at least once

	used unitSet // handed out
	warm unitSet // not handed out, but may have memory and contents
	cool unitSet // the part of warm that was warm at the last Age already

	// Of a unit that is handed out or warm, the first reach parts may have memory. If it is the last unit of
	// a span, the last tail of these parts lie behind the end of the span, and have what an earlier holder of
	// the unit has left. Tails are idle memory, as warm units are. lasting has the units whose tail was there
	// at the last Age already.
	reach, tail [regionUnits]uint8
	lasting     unitSet

	// spotty is the part of warm that was not carved; see AllocCarved.
	spotty unitSet

	// filled is the part of warm that was given back by FreeFilled.
	filled unitSet

	huge   uint32 // the chunks for which Huge has asked for huge pages
	tabled uint32 // the chunks that may have a table of small pages, where the system uses no huge one, and no warm unit
	pieces uint32 // the chunks of which pages were moved, a bit for each; see stow.go

	free  int // units not in used
	nwarm int // units in warm
}

// A unitSet is a set of units of a region.
type unitSet [(regionUnits + 63) / 64]uint64

//go:norace
func (s *unitSet) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

//go:norace
func (s *unitSet) add(i int) { s[i/64] |= 1 << (i % 64) }

//go:norace
func (s *unitSet) remove(i int) { s[i/64] &^= 1 << (i % 64) }

// next returns the first unit from i on that is in s, or that is not in s if in is
// false. It returns regionUnits if there is none.
//
//go:norace
func (s *unitSet) next(i int, in bool) int {
	for i < regionUnits {
		w := s[i/64]
		if !in {
			w = ^w
		}
		if w >>= i % 64; w != 0 {
			return min(i+bits.TrailingZeros64(w), regionUnits)
		}
		i = (i/64 + 1) * 64
	}
	return regionUnits
}

// run returns the first of n units in a row that are in s, or that are not in s if in
// is false. It is a multiple of align, a power of two. It is -1 if there are none.
//
//go:norace
func (s *unitSet) run(n, align int, in bool) int {
	i := s.next(0, in)
	if n == 1 && align == 1 && i < regionUnits {
		return i
	}
	for i < regionUnits {
		start := (i + align - 1) &^ (align - 1)
		end := s.next(start, !in)
		if end-start >= n {
			return start
		}
		i = s.next(max(end, start+1), in)
	}
	return -1
}

// commitStep is how many units are committed at once, because each time is a system
// call. Committed units cost no memory before they are touched.
const commitStep = 1 << 20 / UnitSize

// warmFloor and warmShare bound how many units stay warm; see mostWarm.
const (
	warmFloor = 1024
	warmShare = 4
)

// tailFloor and tailShare bound the bytes of all tails: tailFloor, or 1/tailShare of the bytes of spans if
// that is more. A tail beyond that is given back at once, which costs a call of the system, and fresh pages
// when the unit is used again.
const (
	tailFloor = 4 << 20
	tailShare = 3
)

// The memory of a unit is counted in parts. No system has smaller pages.
const (
	partSize  = 4 << 10
	unitParts = UnitSize / partSize
)

// pages is the state of the package. All of it is under mu.
var pages struct {
	mu      sync.Mutex
	regions []*region
	first   int // no region before this one has a free unit
	used    int // units handed out
	most    int // the largest value that used ever had
	warm    int // units in the warm sets
	dropped int // units beyond mostWarm that were given back since the last Age, and not taken again
	missed  int // units that were; see mostWarm
	owned   int // parts of the units handed out, without tails
	tails   int // parts in tails
	pieces  int // chunks that may be mappings of their own for the system; see stow.go

	// last is where units were freed last that were not carved. If they are a gap, the next request for as many
	// takes them, because the processor has what is there at hand.
	last struct {
		r            *region
		first, units int
	}

	unmoved bool // no chunk is moved any more, because the addresses of one were lost
}
