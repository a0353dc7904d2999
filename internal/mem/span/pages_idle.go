package span

import (
	"github.com/cheapgo/cheap/internal/mem/osmem"
)

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
	pages.dropped, pages.missed = 0, pages.missed/2
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
	pages.dropped, pages.missed = 0, 0
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
func Warm() int { return peek(&pages.warm) }

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
