package span

import (
	"sync"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// The cost of a mapping is its fresh pages: for 20 MiB they cost a thousand times as much
// as the system calls. So on systems that can move pages, the pages of a freed mapping
// move to units of regions, as far as the bound on warm units allows. These units are warm
// then. The addresses of the mapping go back to the system, so that an access faults. A
// new mapping takes the pages of warm units first.
//
// Pages move in chunks of 2 MiB, aligned to 2 MiB. That is what one page of a page table
// maps on amd64, so a move changes one entry of the table above. After a move the system
// may keep the chunk as a mapping of its own: a piece. The number of pieces is bounded,
// because the system bounds the number of mappings, and Go's runtime must not reach that
// bound.

const (
	chunkUnits = 2 << 20 / UnitSize
	chunkSize  = chunkUnits * UnitSize

	// movedMost is how many chunks are moved for one mapping. It bounds the time for
	// which the lock is held.
	movedMost = regionUnits / chunkUnits

	// movedLeast is how many bytes of a chunk have memory at least, or it is not stowed: to move it
	// costs as much as fresh pages for so many.
	movedLeast = chunkSize / 16
)

// Moves reports whether pages move: on a system that can, with 64 bits. With 32 a mapping
// has few chunks, and the address space for the units is needed for more.
func Moves() bool { return OwnMapping >= 4*chunkSize && osmem.CanMove() }

// mostPieces returns how many pieces there may be, a thirty-second of what the system
// allows.
var mostPieces = sync.OnceValue(func() int { return osmem.MaxMappings() / 32 })

const chunkMask = 1<<chunkUnits - 1

// chunk returns the units of s in the chunk that begins with unit i, as bits.
//
//go:norace
func (s *unitSet) chunk(i int) uint64 { return s[i/64] >> (i % 64) & chunkMask }

// stow moves chunks of the mapping at base, of which size bytes are usable, to units that
// are neither in use nor warm. These are warm then. It looks at as many chunks as it may move. Those that
// have little memory stay, and go with the mapping. So does a chunk that the pieces at the start of the
// mapping, of moved bytes in all, end within: for the system that is two mappings.
//
//go:norace
func stow(base, size, moved uintptr) {
	osmem.Must(base%RegionSize == 0, "span.stow", "base", base) // so that chunks are aligned
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if pages.unmoved {
		return
	}
	most := min(int(size/chunkSize), (mostWarm()-pages.warm)/chunkUnits, movedMost)
	end := base + min(size/chunkSize, movedMost)*chunkSize
	from := worthMoving(base, end, base+moved)
	n := 0
	for j := pages.first; n < most && from < end; j++ {
		if j == len(pages.regions) {
			if n > 0 {
				return
			}
			if _, err := newRegion(); err != nil { // all others are full
				return
			}
		}
		r := pages.regions[j]
		for i := 0; i < regionUnits && n < most && from < end; i += chunkUnits {
			if r.used.chunk(i)|r.warm.chunk(i) != 0 {
				continue
			}
			if !r.split(i, 0) || !r.stowAt(i, from) {
				return
			}
			n++
			from = worthMoving(from+chunkSize, end, base+moved)
		}
	}
}

// worthMoving returns the first chunk from from on, and before end, of which movedLeast bytes have
// memory, and that cut is not within. It returns end if there is none.
//
//go:norace
func worthMoving(from, end, cut uintptr) uintptr {
	for ; from < end; from += chunkSize {
		if cut-from-1 >= chunkSize-1 && uintptr(osmem.Resident(from, chunkSize))*osmem.PageSize >= movedLeast {
			return from
		}
	}
	return end
}

// stowAt moves the chunk at from to the units from i on. It reports whether it did.
//
//go:norace
func (r *region) stowAt(i int, from uintptr) bool {
	osmem.Must(i%chunkUnits == 0, "span.stowAt", "i", uintptr(i))
	osmem.Must(from%chunkSize == 0, "span.stowAt", "from", from)
	// The program may have changed the access.
	if osmem.Commit(from, chunkSize) != nil || r.commit(i, chunkUnits, chunkSize) != nil {
		return false
	}
	to := r.base + uintptr(i)*UnitSize
	switch osmem.Remap(from, to, chunkSize) {
	case nil:
		r.tabled &^= 1 << (i / chunkUnits) // it went with the pages
	case osmem.ErrLost: // the units stay in use forever
		pages.unmoved = true
		for u := i; u < i+chunkUnits; u++ {
			r.used.add(u)
		}
		r.free -= chunkUnits
		pages.used += chunkUnits
		return false
	default:
		return false
	}
	if r.index == 0 {
		osmem.SmallPages(to, chunkSize) // as in newRegion
	}
	for u := i; u < i+chunkUnits; u++ {
		r.warm.add(u)
		r.spotty.add(u)
		r.reach[u] = unitParts
	}
	r.nwarm += chunkUnits
	pages.warm += chunkUnits
	return true
}

// fetch moves chunks of warm units to a mapping of size bytes that is being made at base.
// It returns how many it has moved: they are at the start of the mapping. If ok is false,
// the addresses of the chunk behind them are lost.
//
//go:norace
func fetch(base, size uintptr) (n int, ok bool) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if pages.unmoved {
		return 0, true
	}
	most := min(int(size/chunkSize), pages.warm/chunkUnits, movedMost)
	for j := len(pages.regions) - 1; j >= pages.first; j-- {
		r := pages.regions[j]
		for i := 0; i < regionUnits && n < most; i += chunkUnits {
			if r.warm.chunk(i) != chunkMask {
				continue
			}
			if !r.split(i, 1) {
				return n, true
			}
			err := osmem.Remap(r.base+uintptr(i)*UnitSize, base+uintptr(n)*chunkSize, chunkSize)
			if err != nil {
				pages.pieces--
				pages.unmoved = err == osmem.ErrLost
				return n, !pages.unmoved
			}
			for u := i; u < i+chunkUnits; u++ {
				r.chill(u)
			}
			r.emptied(i, i+chunkUnits)
			n++
		}
	}
	return n, true
}

// split counts the chunk that begins with unit i as a piece, if it is none yet, and more
// other pieces. It counts nothing and returns false if these would exceed mostPieces.
//
//go:norace
func (r *region) split(i, more int) bool {
	bit := uint32(1) << (i / chunkUnits)
	if r.pieces&bit == 0 {
		more++
	}
	if pages.pieces+more > mostPieces() {
		return false
	}
	r.pieces |= bit
	pages.pieces += more
	return true
}

// countPiece counts a piece, if there may be another one, and reports whether it did.
//
//go:norace
func countPiece() bool {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	if pages.unmoved || pages.pieces >= mostPieces() {
		return false
	}
	pages.pieces++
	return true
}

// addPieces counts n more pieces, or fewer if n is below 0.
//
//go:norace
func addPieces(n int) {
	pages.mu.Lock()
	defer pages.mu.Unlock()
	pages.pieces += n
}
