// Package shadow is the reference that tests compare an allocator with: it
// knows every block that is live, says when a new one overlaps another, and
// keeps a pattern in each that shows who wrote where he had no business.
//
// Only tests import it. It knows nothing of the allocator, so that none of its
// mistakes can agree with the allocator's.
package shadow

import (
	"fmt"
	"slices"
	"unsafe"
)

// A Block is what a [Set] knows of a live block.
type Block struct {
	Addr   uintptr
	Size   int // as it was asked for, in bytes
	Usable int // as the allocator says
	seed   uint64
}

// end is the address behind the block. Blocks of no size take one byte, because
// they are distinct, too.
func (b *Block) end() uintptr { return b.Addr + uintptr(max(b.Usable, 1)) }

// A Set is the live blocks of one allocator. The zero value is empty. It may be
// used by one goroutine at a time.
type Set struct {
	blocks []Block // by address
	bytes  int64
	seeds  uint64
}

// Len returns how many blocks are live.
func (s *Set) Len() int { return len(s.blocks) }

// Bytes returns the sum of their usable sizes.
func (s *Set) Bytes() int64 { return s.bytes }

// At returns the i-th live block by address.
func (s *Set) At(i int) Block { return s.blocks[i] }

// Find returns the live block that addr lies in.
func (s *Set) Find(addr uintptr) (b Block, ok bool) {
	i := s.search(addr + 1)
	if i == 0 || s.blocks[i-1].end() <= addr {
		return Block{}, false
	}
	return s.blocks[i-1], true
}

// search returns the index of the first block at addr or behind.
func (s *Set) search(addr uintptr) int {
	i, _ := slices.BinarySearchFunc(s.blocks, addr, func(b Block, addr uintptr) int {
		switch {
		case b.Addr < addr:
			return -1
		case b.Addr > addr:
			return 1
		}
		return 0
	})
	return i
}

// Add enters the block at p, which has just been allocated, and fills it with a
// pattern of its own. The error says what is wrong with it: no multiple of
// align, smaller than was asked for, overlapping a live block.
func (s *Set) Add(p unsafe.Pointer, size, usable, align int) error {
	if p == nil {
		return fmt.Errorf("no block of %d bytes", size)
	}
	b := Block{Addr: uintptr(p), Size: size, Usable: usable}
	if b.Addr%uintptr(align) != 0 {
		return fmt.Errorf("%v is not aligned to %d", b, align)
	}
	if usable < size {
		return fmt.Errorf("%v has fewer bytes than were asked for", b)
	}
	i := s.search(b.Addr)
	if i > 0 && s.blocks[i-1].end() > b.Addr {
		return fmt.Errorf("%v overlaps %v", b, s.blocks[i-1])
	}
	if i < len(s.blocks) && b.end() > s.blocks[i].Addr {
		return fmt.Errorf("%v overlaps %v", b, s.blocks[i])
	}
	s.seeds++
	b.seed = s.seeds
	Fill(p, usable, b.seed)
	s.blocks = slices.Insert(s.blocks, i, b)
	s.bytes += int64(usable)
	return nil
}

// Remove forgets the block at p, which is about to be freed. The error says
// that it is not known, or that its contents are not what was written there.
func (s *Set) Remove(p unsafe.Pointer) error {
	i := s.search(uintptr(p))
	if i == len(s.blocks) || s.blocks[i].Addr != uintptr(p) {
		return fmt.Errorf("%p is not live", p)
	}
	b := s.blocks[i]
	s.blocks = slices.Delete(s.blocks, i, i+1)
	s.bytes -= int64(b.Usable)
	if err := Check(p, b.Usable, b.seed); err != nil {
		return fmt.Errorf("%v: %w", b, err)
	}
	return nil
}

// Move does for a reallocation what Remove and Add do: the block at from is at
// to now, with a new size, and has kept its contents up to the smaller one.
func (s *Set) Move(from uintptr, to unsafe.Pointer, size, usable, align int) error {
	i := s.search(from)
	if i == len(s.blocks) || s.blocks[i].Addr != from {
		return fmt.Errorf("%#x is not live", from)
	}
	b := s.blocks[i]
	s.blocks = slices.Delete(s.blocks, i, i+1)
	s.bytes -= int64(b.Usable)
	if to == nil {
		return fmt.Errorf("%v became nothing", b)
	}
	if err := check(to, b.Usable, min(b.Usable, size), b.seed); err != nil {
		return fmt.Errorf("%v, moved to %p: %w", b, to, err)
	}
	return s.Add(to, size, usable, align)
}

// CheckAll looks at the contents of every live block, for which pointer turns
// an address back into a pointer.
func (s *Set) CheckAll(pointer func(uintptr) unsafe.Pointer) error {
	for _, b := range s.blocks {
		if err := Check(pointer(b.Addr), b.Usable, b.seed); err != nil {
			return fmt.Errorf("%v: %w", b, err)
		}
	}
	return nil
}

// String names a block by its interval.
func (b Block) String() string {
	return fmt.Sprintf("block [%#x, %#x) of %d bytes", b.Addr, b.end(), b.Size)
}
