package span

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
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

// warmFloor and warmShare bound how many units stay warm: warmFloor, or 1/warmShare of
// the units that are handed out if that is more.
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
	owned   int // parts of the units handed out, without tails
	tails   int // parts in tails
	pieces  int // chunks that may be mappings of their own for the system; see stow.go

	unmoved bool // no chunk is moved any more, because the addresses of one were lost
}

// Alloc returns units in a row, at a multiple of align units, a power of two. Both numbers are at
// most regionUnits. The first size bytes are committed. fresh says that these bytes are known to
// read as zero.
func Alloc(units, align int, size uintptr) (base uintptr, fresh bool, err error) {
	mustBeRequest("span.Alloc", units, align, size)
	base, fresh, _, err = alloc(units, align, size, false)
	return base, fresh, err
}

// AllocFilled is Alloc for a caller that gives units back by FreeFilled. filled says that each of
// the units reads as zero, or has the contents that it had in its last call of FreeFilled.
func AllocFilled(units, align int, size uintptr) (base uintptr, fresh, filled bool, err error) {
	mustBeRequest("span.AllocFilled", units, align, size)
	return alloc(units, align, size, false)
}

// mustBeRequest panics if no region has so many units, aligned so, with so many bytes.
func mustBeRequest(op string, units, align int, size uintptr) {
	osmem.Must(0 < units && units <= regionUnits, op, "units", uintptr(units))
	osmem.Must(osmem.IsPower(uintptr(align)) && align <= regionUnits, op, "align", uintptr(align))
	osmem.Must(size <= uintptr(units)*UnitSize, op, "size", size)
}

// AllocCarved is Alloc of one unit that is carved: it is used from its start on, as
// far as blocks are needed.
//
// That makes a difference for the memory of warm units. If a unit was carved, its
// memory begins at the start, and the next blocks that are carved lie on it. If a
// unit was part of a large block, its memory may be anywhere (the unit is spotty),
// and where no block is carved it would stay without use. So while the program uses
// more units than it ever did, a spotty unit that is to be carved gives its memory
// up first. filled is that of AllocFilled.
func AllocCarved(size uintptr) (base uintptr, fresh, filled bool, err error) {
	osmem.Must(size <= UnitSize, "span.AllocCarved", "size", size)
	return alloc(1, 1, size, true)
}

//go:norace
func alloc(units, align int, size uintptr, carved bool) (base uintptr, fresh, filled bool, err error) {
	if err := Init(); err != nil {
		return 0, false, false, err
	}
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if pages.warm >= units {
		for _, r := range pages.regions[pages.first:] {
			if r.nwarm >= units {
				if i := r.warm.run(units, align, true); i >= 0 {
					if carved && pages.used >= pages.most && r.spotty.has(i) {
						r.drop(i, i+1)
					}
					return r.take(i, units, size)
				}
			}
		}
	}
	for _, r := range pages.regions[pages.first:] {
		if r.free >= units {
			if i := r.used.run(units, align, false); i >= 0 {
				return r.take(i, units, size)
			}
		}
	}
	r, err := newRegion()
	if err != nil {
		return 0, false, false, err
	}
	return r.take(0, units, size)
}

//go:norace
func newRegion() (*region, error) {
	base, err := osmem.Reserve(RegionSize, RegionSize)
	if err != nil {
		return nil, err
	}
	if err := ensure(base, RegionSize); err != nil {
		osmem.Release(base, RegionSize)
		return nil, err
	}
	if len(pages.regions) == 0 && !osmem.GoBacked {
		// If the system used huge pages here, a small heap, which touches a little
		// of each of its spans, would take up to 2 MiB for each. A heap that has
		// filled a region is not small.
		osmem.SmallPages(base, RegionSize)
	}
	r := &region{base: base, index: len(pages.regions), free: regionUnits}
	pages.regions = append(pages.regions, r)
	Find(base).Region = uint32(r.index)
	return r, nil
}

// take hands out units from i on, and makes their first size bytes usable.
//
//go:norace
func (r *region) take(i, units int, size uintptr) (base uintptr, fresh, filled bool, err error) {
	if err := r.commit(i, units, size); err != nil {
		return 0, false, false, err
	}
	fresh, filled = true, true
	for u := i; u < i+units; u++ {
		r.used.add(u)
		if r.warm.has(u) {
			fresh = false
			filled = filled && r.filled.has(u)
			r.chill(u)
		} else {
			r.reach[u] = 0
		}
	}
	last := i + units - 1
	whole := r.reach[i:last]
	for u := range whole {
		whole[u] = unitParts
	}
	pages.owned += (units - 1) * unitParts
	r.own(last, size-min(size, uintptr(units-1)*UnitSize))
	r.free -= units
	pages.used += units
	pages.most = max(pages.most, pages.used)
	for pages.first < len(pages.regions) && pages.regions[pages.first].free == 0 {
		pages.first++
	}
	return r.base + uintptr(i)*UnitSize, fresh, filled, nil
}

// own makes the first size bytes of unit u, which disown was called for, its holder's. What is behind them and
// may have memory is a tail from now on, or is given back. In a chunk with huge pages no tail is made, because
// to give one back would break a huge page.
//
//go:norace
func (r *region) own(u int, size uintptr) {
	n := int(osmem.RoundPage(size) / partSize)
	if r.huge>>(u/chunkUnits)&1 != 0 {
		n = unitParts
	}
	pages.owned += n
	if had := int(r.reach[u]); had > n {
		r.tail[u] = uint8(had - n)
		pages.tails += had - n
		r.lasting.remove(u)
		if pages.tails > max(tailFloor/partSize, pages.owned/tailShare) || unspared.Load() {
			r.dropTail(u)
		}
		return
	}
	r.reach[u] = uint8(n)
}

// disown takes back what own has counted.
//
//go:norace
func (r *region) disown(u int) {
	pages.owned -= int(r.reach[u] - r.tail[u])
	pages.tails -= int(r.tail[u])
	r.tail[u] = 0
}

// dropTail releases the memory of the tail of unit u.
//
//go:norace
func (r *region) dropTail(u int) {
	if n := uintptr(r.tail[u]); n > 0 {
		r.reach[u] -= r.tail[u]
		pages.tails -= int(n)
		r.tail[u] = 0
		osmem.Decommit(r.base+uintptr(u)*UnitSize+uintptr(r.reach[u])*partSize, n*partSize)
	}
}

// commit makes the first size bytes of some units usable.
//
//go:norace
func (r *region) commit(i, units int, size uintptr) error {
	if osmem.DecommitRevokes {
		return osmem.Commit(r.base+uintptr(i)*UnitSize, osmem.RoundPage(size))
	}
	end := i + units
	if end <= r.committed {
		return nil
	}
	step := min((end+commitStep-1)/commitStep*commitStep, regionUnits)
	if osmem.Commit(r.base+uintptr(r.committed)*UnitSize, uintptr(step-r.committed)*UnitSize) == nil {
		r.committed = step
		return nil
	}
	if err := osmem.Commit(r.base+uintptr(r.committed)*UnitSize, uintptr(end-r.committed)*UnitSize); err != nil {
		return err
	}
	r.committed = end
	return nil
}

// chill takes u, which is warm, out of the set.
//
//go:norace
func (r *region) chill(u int) {
	r.warm.remove(u)
	r.cool.remove(u)
	r.spotty.remove(u)
	r.filled.remove(u)
	r.nwarm--
	pages.warm--
}

// Extend hands out more units right behind the units at base, if they are free, and
// makes the first size bytes from base usable. It reports whether it could.
//
//go:norace
func Extend(base uintptr, units, more int, size uintptr) bool {
	const op = "span.Extend"
	mustBeUnits(op, base, units)
	osmem.Must(0 < more && more <= regionUnits, op, "more", uintptr(more))
	osmem.Must(uintptr(units)*UnitSize < size && size <= uintptr(units+more)*UnitSize, op, "size", size)
	pages.mu.Lock()
	defer pages.mu.Unlock()
	r := find(base)
	i := int((base-r.base)/UnitSize) + units
	if r.used.next(i, true) < i+more { // it is regionUnits at most
		return false
	}
	own := uintptr(units) * UnitSize
	// All of the last of them, where a part is usable. First what may fail: a tail there would be lost.
	if r.commit(i, more, size-own) != nil || r.extend(base, own) != nil {
		return false
	}
	_, _, _, err := r.take(i, more, size-own)
	return err == nil
}

// Commit makes the first size bytes at base usable. They are in units that were handed
// out.
//
//go:norace
func Commit(base, size uintptr) error {
	osmem.Must(base%UnitSize == 0, "span.Commit", "base", base)
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return find(base).extend(base, size)
}

// extend is Commit under the lock.
//
//go:norace
func (r *region) extend(base, size uintptr) error {
	if osmem.DecommitRevokes { // elsewhere whole units are usable
		if err := osmem.Commit(base, osmem.RoundPage(size)); err != nil {
			return err
		}
	}
	last := (size - 1) / UnitSize
	u := int((base-r.base)/UnitSize + last)
	r.disown(u)
	r.own(u, size-last*UnitSize)
	return nil
}

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
	r.nwarm += units
	pages.warm += units
	if over := pages.warm - mostWarm(); over > 0 {
		dropWarm(over)
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

// mostWarm returns how many units may be warm.
//
//go:norace
func mostWarm() int { return max(warmFloor, pages.used/warmShare) }

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

// dropWarm releases the memory of n warm units or somewhat more. It begins at the
// highest addresses, because the lowest are handed out first.
//
//go:norace
func dropWarm(n int) {
	for i := len(pages.regions) - 1; i >= 0 && n > 0; i-- {
		r := pages.regions[i]
		for u := regionUnits - 1; u >= 0 && n > 0 && r.nwarm > 0; u-- {
			if !r.warm.has(u) {
				continue
			}
			end := u + 1
			for u > 0 && r.warm.has(u-1) && end-u < n {
				u--
			}
			r.drop(u, end)
			n -= end - u
		}
	}
}

// drop releases the memory of the units in [start, end), which are warm.
//
//go:norace
func (r *region) drop(start, end int) {
	for u := start; u < end; u++ {
		r.chill(u)
	}
	osmem.Decommit(r.base+uintptr(start)*UnitSize, uintptr(end-start)*UnitSize)
	r.emptied(start, end)
}

// emptied notes which chunks of the units in [start, end), whose memory was given back, have no unit any more
// that is in use or warm. It takes back what Huge has asked for, and what is left of the huge page. Else
// a block of another heap would take 2 MiB there.
//
//go:norace
func (r *region) emptied(start, end int) {
	for i := start / chunkUnits; i <= (end-1)/chunkUnits; i++ {
		if r.used.chunk(i*chunkUnits)|r.warm.chunk(i*chunkUnits) != 0 {
			continue
		}
		bit := uint32(1) << i
		r.tabled |= bit
		if r.huge&bit != 0 {
			r.huge &^= bit
			osmem.SmallPages(r.base+uintptr(i)*chunkSize, chunkSize)
			osmem.Decommit(r.base+uintptr(i)*chunkSize, chunkSize)
		}
	}
}

// Age releases the memory of the units that have been warm since the last Age, and of the tails that have
// been there since. It returns how many bytes are idle still.
//
//go:norace
func Age() (idle uintptr) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for _, r := range pages.regions {
		r.dropTails(&r.lasting)
		r.lasting = r.used // own takes a unit out that gets another tail
		r.dropAll(&r.cool)
		r.cool = r.warm
	}
	return idleBytes()
}

// TrimTo releases idle memory, except keep bytes: tails, and then the memory of warm units.
//
//go:norace
func TrimTo(keep uintptr) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if idleBytes() <= keep {
		return
	}
	for _, r := range pages.regions {
		r.dropTails(&r.used)
	}
	if most := int(keep / UnitSize); pages.warm > most {
		dropWarm(pages.warm - most)
	}
}

// TrimAll releases all idle memory.
//
//go:norace
func TrimAll() {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	for _, r := range pages.regions {
		r.dropTails(&r.used)
		r.dropAll(&r.warm)
	}
}

// dropTails releases the memory of the tails of the units in set.
//
//go:norace
func (r *region) dropTails(set *unitSet) {
	for u := set.next(0, true); u < regionUnits && pages.tails > 0; u = set.next(u+1, true) {
		r.dropTail(u)
	}
}

//go:norace
func (r *region) dropAll(set *unitSet) {
	for start := set.next(0, true); start < regionUnits; {
		end := set.next(start, false)
		r.drop(start, end)
		start = set.next(end, true)
	}
}

// Warm returns how many units are warm: not handed out, but may have memory.
//
//go:norace
func Warm() int {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return pages.warm
}

// Idle returns how many bytes the warm units and the tails have.
//
//go:norace
func Idle() uintptr {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	return idleBytes()
}

// idleBytes is Idle under the lock.
//
//go:norace
func idleBytes() uintptr { return uintptr(pages.warm)*UnitSize + uintptr(pages.tails)*partSize }

// InUse returns how many units of regions are handed out, and how many spans have a
// mapping of their own. Addresses that Abandon was called for stay in use.
//
//go:norace
func InUse() (units, mapped int) {
	pages.mu.Lock()
	units = pages.used
	pages.mu.Unlock()
	mappings.mu.Lock()
	mapped = mappings.n
	mappings.mu.Unlock()
	return units, mapped
}

// Reserved reports whether addr, which may be any number, is in a region.
//
//go:norace
func Reserved(addr uintptr) bool {
	base := addr &^ (RegionSize - 1)
	s := Lookup(base)
	if s == nil {
		return false
	}
	pages.mu.Lock()
	defer pages.mu.Unlock()
	i := int(s.Region)
	return i < len(pages.regions) && pages.regions[i].base == base
}
