package span

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// Shrink leaves the first size bytes of the units at base to their holder. It frees the units behind, as
// Free does.
//
//go:norace
func Shrink(base uintptr, units int, size uintptr) {
	const op = "span.Shrink"
	mustBeUnits(op, base, units)
	osmem.Must(0 < size && size <= uintptr(units)*UnitSize, op, "size", size)
	last := int((size - 1) / UnitSize)
	if last+1 < units {
		Free(base+uintptr(last+1)*UnitSize, units-last-1)
	}
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	u := int((base-r.base)/UnitSize) + last
	r.disown(u)
	r.own(u, size-uintptr(last)*UnitSize)
}

// FreeCarved frees a unit that AllocCarved returned. The caller calls Decay some time
// later.
func FreeCarved(base uintptr) {
	mustBeUnits("span.FreeCarved", base, 1)
	free(base, 1, true, false)
}

// Free frees units that Alloc or Extend returned. The caller calls Decay some time
// later.
func Free(base uintptr, units int) {
	mustBeUnits("span.Free", base, units)
	free(base, units, false, false)
}

// FreeFilled frees units that Alloc, AllocCarved or Extend returned, and in which each byte has the
// value that a caller of AllocFilled expects. They have memory from the start on.
func FreeFilled(base uintptr, units int) {
	mustBeUnits("span.FreeFilled", base, units)
	free(base, units, true, true)
}

// FreeEmpty frees units that Alloc or Extend returned, and that have no memory and read as zero.
func FreeEmpty(base uintptr, units int) {
	mustBeUnits("span.FreeEmpty", base, units)
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	first := int((base - r.base) / UnitSize)
	r.giveBack(first, units)
	r.emptied(first, first+units)
}

// giveBack makes units that were handed out, from i on, free.
//
//go:norace
func (r *region) giveBack(i, units int) {
	for u := i; u < i+units; u++ {
		r.used.remove(u)
	}
	pages.owned -= (units - 1) * unitParts
	r.disown(i + units - 1)
	r.free += units
	pages.used -= units
	pages.first = min(pages.first, r.index)
}

//go:norace
func free(base uintptr, units int, carved, filled bool) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	first := int((base - r.base) / UnitSize)
	r.giveBack(first, units)
	for u := first; u < first+units; u++ {
		r.warm.add(u)
		r.tabled &^= 1 << (u / chunkUnits)
		if !carved {
			r.spotty.add(u)
		}
		if filled {
			r.filled.add(u)
		}
	}
	if !carved {
		pages.last.r, pages.last.first, pages.last.units = r, first, units
	}
	r.nwarm += units
	pages.warm += units
	if over := pages.warm - mostWarm(); over > 0 {
		dropWarm(over)
		pages.dropped += over
	}
}

// mustEndInSpan panics if size bytes at addr begin in a span and end behind it.
//
//go:norace
func mustEndInSpan(op string, addr, size uintptr) {
	s := Lookup(addr)
	if s == nil || s.LoadTag() == 0 {
		return // memory for metadata
	}
	end := addr&^(UnitSize-1) + UnitSize
	switch s.LoadTag() & KindMask {
	case KindBody:
		s = Find(s.Base)
		fallthrough
	case KindLarge:
		end = s.Base + s.Size
	}
	osmem.Must(size <= end-addr, op, "size", size)
}

// mustBeUnits panics if base cannot be the first of so many units of a region.
//
//go:norace
func mustBeUnits(op string, base uintptr, units int) {
	osmem.Must(base%UnitSize == 0, op, "base", base)
	osmem.Must(0 < units && units <= regionUnits-int(base%RegionSize/UnitSize), op, "units", uintptr(units))
}

// mostWarm returns how many units may be warm: warmFloor, or 1/warmShare of the units that are handed out if
// that is more. A program that frees more, and soon takes as much again, would pay for fresh pages each time.
// So the floor rises by the units that were missed, and falls with the decay.
//
//go:norace
func mostWarm() int { return max(warmFloor+pages.missed, pages.used/warmShare) }

// Hollow releases the memory of all whole pages among size bytes at addr, and clears
// the rest. It reports whether it did: if pages would fault from then on, or if no page
// is whole, it does nothing.
//
//go:norace
func Hollow(addr, size uintptr) bool {
	start, end := osmem.RoundPage(addr), (addr+size)&^(osmem.PageSize-1)
	if osmem.DecommitRevokes || start >= end {
		return false
	}
	mustEndInSpan("span.Hollow", addr, size)
	clear(unsafe.Slice((*byte)(osmem.Pointer(addr)), start-addr))
	clear(unsafe.Slice((*byte)(osmem.Pointer(end)), addr+size-end))
	osmem.Decommit(start, end-start)
	return true
}

// Abandon releases the memory of the unit at base, which is never handed out again. From then on its first
// size bytes, which were usable, read as zero. Where pages without memory would fault, they keep it.
//
//go:norace
func Abandon(base, size uintptr) {
	mustBeUnits("span.Abandon", base, 1)
	osmem.Must(size <= UnitSize, "span.Abandon", "size", size)
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	u := int((base - r.base) / UnitSize)
	if osmem.DecommitRevokes {
		clear(unsafe.Slice((*byte)(osmem.Pointer(base)), size))
		r.dropTail(u)
		return
	}
	r.disown(u)
	r.reach[u] = 0
	osmem.Decommit(base, UnitSize)
}

// Huge asks for huge pages for the chunks of 2 MiB that the units at base lie in, which Alloc,
// AllocCarved or Extend returned. A huge page is used if all of a chunk is committed. The units from number
// from on were just handed out, and nobody has written to them since.
//
//go:norace
func Huge(base uintptr, from, units int) {
	if !osmem.HasHugePages {
		return
	}
	mustBeUnits("span.Huge", base, units)
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	first := int((base - r.base) / UnitSize)
	for i := first / chunkUnits; i <= (first+units-1)/chunkUnits; i++ {
		bit := uint32(1) << i
		if r.huge&bit == 0 && r.commit(i*chunkUnits, chunkUnits, chunkSize) == nil {
			// Of the units in use, none may be older, and none was warm since all were given back: mincore,
			// which dropTable calls, does not see what is swapped out.
			if r.tabled&bit != 0 && r.used.next(i*chunkUnits, true) >= first+from && r.used.next(first+units, true) >= (i+1)*chunkUnits {
				r.dropTable(i)
			}
			r.huge |= bit
			osmem.HugePages(r.base+uintptr(i)*chunkSize, chunkSize)
		}
	}
	r.disown(first + units - 1)
	r.own(first+units-1, UnitSize)
}

// dropTable drops the table of small pages of chunk i, in which nothing has contents that are needed. It moves
// the pages, and the table with them, and releases where they are then. If the system refuses, the table stays.
//
//go:norace
func (r *region) dropTable(i int) {
	at := r.base + uintptr(i)*chunkSize
	// What has memory now is locked by the program, which a move would undo.
	if !osmem.CanMove() || osmem.Resident(at, chunkSize) != 0 {
		return
	}
	to, err := osmem.Reserve(chunkSize, chunkSize)
	if err != nil {
		return
	}
	if osmem.Remap(at, to, chunkSize) != osmem.ErrLost {
		osmem.Release(to, chunkSize)
	}
}

// find returns the region that addr is in.
//
//go:norace
func find(addr uintptr) *region { return pages.regions[Find(addr&^(RegionSize-1)).Region] }
