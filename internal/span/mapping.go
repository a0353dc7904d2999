package span

import (
	"sync"

	"github.com/cheapgo/cheap/internal/osmem"
)

// own is the list of spans that have a mapping of their own.
var own struct {
	mu    sync.Mutex
	first uintptr // address of the record of the first unit; the records lead on
}

// AllocMapping returns a span with a mapping of its own, of which the first
// size bytes are usable and zero. It starts at a multiple of align bytes, a
// power of two. Its address space is whole regions, so that no table has to
// tell two mappings in one region apart; how much it is is returned, too.
//
//go:norace
func AllocMapping(size, align uintptr) (base, space uintptr, err error) {
	if err := Init(); err != nil {
		return 0, 0, err
	}
	space = (size + RegionSize - 1) &^ (RegionSize - 1)
	if space < size {
		return 0, 0, errAddress
	}
	base, err = osmem.Reserve(space, max(align, RegionSize))
	if err != nil {
		return 0, 0, err
	}
	if err = osmem.Commit(base, osmem.RoundPage(size)); err == nil {
		err = ensure(base, space)
	}
	if err != nil {
		osmem.Release(base, space)
		return 0, 0, err
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	s := Find(base)
	s.Base, s.Prev, s.Next = base, 0, own.first
	if own.first != 0 {
		At(own.first).Prev = s.Addr()
	}
	own.first = s.Addr()
	return base, space, nil
}

// GrowMapping makes the mapping of size bytes at base larger without moving
// it, if its address space of space bytes allows.
//
//go:norace
func GrowMapping(base, size, newSize, space uintptr) bool {
	if newSize > space {
		return false
	}
	from, to := osmem.RoundPage(size), osmem.RoundPage(newSize)
	return to <= from || osmem.Commit(base+from, to-from) == nil
}

// ShrinkMapping gives back the memory of the mapping at base behind newSize
// bytes.
//
//go:norace
func ShrinkMapping(base, size, newSize uintptr) {
	from, to := osmem.RoundPage(newSize), osmem.RoundPage(size)
	if from < to {
		osmem.Decommit(base+from, to-from)
	}
}

// MoveMapping moves the first size bytes of the mapping at from to the mapping
// at to, which has at least as many, without copying them. What is left at from
// is only good for FreeMapping. It reports whether the system could.
//
//go:norace
func MoveMapping(from, to, size uintptr) bool {
	return osmem.CanRemap && osmem.Remap(from, to, osmem.RoundPage(size)) == nil
}

// FreeMapping gives a mapping of space bytes of address space back to the
// system.
//
//go:norace
func FreeMapping(base, space uintptr) {
	own.mu.Lock()
	s := Find(base)
	if s.Prev != 0 {
		At(s.Prev).Next = s.Next
	} else {
		own.first = s.Next
	}
	if s.Next != 0 {
		At(s.Next).Prev = s.Prev
	}
	own.mu.Unlock()
	osmem.Release(base, space)
}
