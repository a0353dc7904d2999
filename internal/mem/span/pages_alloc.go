package span

import (
	"github.com/cheapgo/cheap/internal/mem/osmem"
)

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
	if l := &pages.last; l.units == units && l.first%align == 0 && !carved && l.r.isGap(l.first, units) {
		return l.r.take(l.first, units, size)
	}
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

// isGap reports whether units from i on are warm, and lie between units that are handed out.
//
//go:norace
func (r *region) isGap(i, units int) bool {
	end := i + units
	return r.warm.next(i, false) >= end && (i == 0 || r.used.has(i-1)) && (end == regionUnits || r.used.has(end))
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
	was := pages.warm
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
	missed := min(units-(was-pages.warm), pages.dropped)
	pages.dropped -= missed
	pages.missed += missed
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
