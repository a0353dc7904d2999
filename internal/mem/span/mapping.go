package span

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// mappings is the list of the spans that have a mapping of their own.
var mappings struct {
	mu    sync.Mutex
	first uintptr // the record of a first unit; Next leads from one to the next
	n     int     // how many there are, including those that are being made
}

// mostMappings returns how many spans may have a mapping. Linux bounds the mappings of a
// process, and Go's runtime ends the program when it cannot have another one. A span
// takes two mappings, its memory and the address space behind. A quarter of what the
// system allows is left to Go and C.
var mostMappings = sync.OnceValue(func() int { return osmem.MaxMappings() / 8 * 3 })

var errMappings = errors.New("cheap: the program has almost as many mappings as the system allows (vm.max_map_count)")

// countMapping counts a mapping before it is made, and reports whether it may be made.
//
//go:norace
func countMapping() bool {
	most := mostMappings()
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	if mappings.n >= most {
		return false
	}
	mappings.n++
	return true
}

// uncountMapping takes back what countMapping has counted.
//
//go:norace
func uncountMapping() {
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	mappings.n--
}

// AllocMapping returns a span with a mapping of its own. Its first size bytes are
// usable and zero. It starts at a multiple of align bytes, a power of two. space is the
// size of its address space, which is whole regions, so that no table has records of
// two mappings.
func AllocMapping(size, align uintptr) (base, space uintptr, err error) {
	base, space, _, err = allocMapping(size, align, false)
	return base, space, err
}

// AllocWarmMapping is AllocMapping that takes the pages of warm units where it can. If it
// has taken some, fresh is false, and the contents of the mapping are undefined.
func AllocWarmMapping(size, align uintptr) (base, space uintptr, fresh bool, err error) {
	return allocMapping(size, align, Moves())
}

//go:norace
func allocMapping(size, align uintptr, warm bool) (base, space uintptr, fresh bool, err error) {
	osmem.Must(size > 0, "span.AllocMapping", "size", size)
	osmem.Must(osmem.IsPower(align), "span.AllocMapping", "align", align)
	if err := Init(); err != nil {
		return 0, 0, false, err
	}
	space = (size + RegionSize - 1) &^ (RegionSize - 1)
	if space < size {
		return 0, 0, false, errAddress
	}
	if !countMapping() {
		return 0, 0, false, errMappings
	}
	base, err = osmem.Reserve(space, max(align, RegionSize))
	if err != nil {
		uncountMapping()
		return 0, 0, false, err
	}
	n := 0
	if warm {
		var ok bool
		if n, ok = fetch(base, size); !ok {
			addPieces(-n)
			release(base, base+uintptr(n)*chunkSize)
			release(base+uintptr(n+1)*chunkSize, base+space)
			uncountMapping()
			return allocMapping(size, align, false)
		}
	}
	if err = osmem.Commit(base, osmem.RoundPage(size)); err == nil {
		err = ensure(base, space)
	}
	if err != nil {
		addPieces(-n)
		osmem.Release(base, space)
		uncountMapping()
		return 0, 0, false, err
	}
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	s := Find(base)
	s.Base, s.Prev, s.Next = base, 0, mappings.first
	s.Pieces, s.PieceSize = uint32(n), chunkSize
	if mappings.first != 0 {
		At(mappings.first).Prev = s.Addr()
	}
	mappings.first = s.Addr()
	return base, space, n == 0, nil
}

// mustBeMapping panics if base cannot be where a mapping begins that has space bytes, of which size
// are usable.
//
//go:norace
func mustBeMapping(op string, base, size, space uintptr) {
	osmem.Must(base%RegionSize == 0, op, "base", base)
	osmem.Must(space%RegionSize == 0, op, "space", space)
	osmem.Must(0 < size && size <= space, op, "size", size)
}

// release releases the addresses in [start, end).
//
//go:norace
func release(start, end uintptr) {
	if start < end {
		osmem.Release(start, end-start)
	}
}

// GrowMapping makes newSize bytes of the mapping at base usable; size bytes are
// usable already. It reports whether it could: newSize has to fit in the address
// space of the mapping, and the system has to have the memory.
//
//go:norace
func GrowMapping(base, size, newSize, space uintptr) bool {
	mustBeMapping("span.GrowMapping", base, size, space)
	if newSize > space {
		return false
	}
	from, to := osmem.RoundPage(size), osmem.RoundPage(newSize)
	return to <= from || osmem.Commit(base+from, to-from) == nil
}

// ShrinkMapping releases the memory of the mapping at base behind its first newSize
// bytes. Before the call its first size bytes are usable.
//
//go:norace
func ShrinkMapping(base, size, newSize uintptr) {
	osmem.Must(base%RegionSize == 0, "span.ShrinkMapping", "base", base)
	osmem.Must(newSize <= size, "span.ShrinkMapping", "newSize", newSize)
	from, to := osmem.RoundPage(newSize), osmem.RoundPage(size)
	if from < to {
		osmem.Decommit(base+from, to-from)
	}
}

// MoveMapping moves the first size bytes of one mapping to another, which is at least as
// large, without copying them. It reports whether the system could. Then the mapping at
// from may only be given to FreeMapping.
//
//go:norace
func MoveMapping(from, to, size uintptr) bool {
	osmem.Must(from%RegionSize == 0, "span.MoveMapping", "from", from)
	osmem.Must(to%RegionSize == 0 && to != from, "span.MoveMapping", "to", to)
	if !osmem.CanMove() {
		return false
	}
	size = osmem.RoundPage(size)
	pieces, piece := Find(from).Pieces, Find(from).PieceSize // the system moves one mapping at a time
	for at := uintptr(0); at < size; {
		n := size - at
		if at < uintptr(pieces)*uintptr(piece) {
			n = min(n, uintptr(piece))
		}
		if err := osmem.Remap(from+at, to+at, n); err != nil {
			copy(bytesAt(from, at), bytesAt(to, at)) // what was moved already; it is still usable at from
			if err == osmem.ErrLost {
				Find(to).Lost = at + n
				release(to, to+at)
			}
			return false
		}
		at += n
	}
	addPieces(int(pieces))
	Find(to).Pieces, Find(to).PieceSize = pieces, piece
	return true
}

// MoveUnits moves units of which size bytes are in use, and which Alloc or Extend returned at
// from, to a new mapping that is at least as large as the units, without copying them. It
// reports whether the system could. If so the units read as zero, and may only be given to
// FreeEmpty. If not they are as before, and the mapping may only be given to FreeMapping.
//
//go:norace
func MoveUnits(from, to, size uintptr) bool {
	osmem.Must(from%UnitSize == 0, "span.MoveUnits", "from", from)
	osmem.Must(to%RegionSize == 0, "span.MoveUnits", "to", to)
	if !countPiece() {
		return false
	}
	// All of the last unit, which may have contents of another block behind these bytes.
	size = (size + UnitSize - 1) &^ (UnitSize - 1)
	// No lock: the units are the caller's.
	err := osmem.Remap(from, to, size)
	if err == nil {
		Find(to).Pieces, Find(to).PieceSize = 1, uint32(size)
		return true
	}
	addPieces(-1)
	if err == osmem.ErrLost {
		Find(to).Lost = size
	}
	return false
}

// bytesAt returns size bytes at addr.
//
//go:norace
func bytesAt(addr, size uintptr) []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(addr)), size) // they are committed
}

// FreeWarmMapping is FreeMapping of a mapping of which size bytes are usable. Where it can,
// it moves their pages to units, which are warm then. The caller calls Decay some time
// later.
func FreeWarmMapping(base, size, space uintptr) {
	mustBeMapping("span.FreeWarmMapping", base, size, space)
	if Moves() {
		stow(base, size, uintptr(Find(base).Pieces)*uintptr(Find(base).PieceSize))
	}
	FreeMapping(base, space)
}

// FreeMapping releases a mapping, whose address space has space bytes.
//
//go:norace
func FreeMapping(base, space uintptr) {
	mustBeMapping("span.FreeMapping", base, 1, space)
	mappings.mu.Lock()
	s := Find(base)
	if s.Prev != 0 {
		At(s.Prev).Next = s.Next
	} else {
		mappings.first = s.Next
	}
	if s.Next != 0 {
		At(s.Next).Prev = s.Prev
	}
	mappings.mu.Unlock()
	release(base+s.Lost, base+space)
	addPieces(-int(s.Pieces))
	s.Pieces, s.Lost = 0, 0
	uncountMapping()
}
