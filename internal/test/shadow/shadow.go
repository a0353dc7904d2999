// Package shadow records the live blocks of an allocator under test. It reports a new block
// that overlaps another, and fills each block with a pattern of its own, which shows whether
// anything else wrote to the block.
//
// Only tests and packages for tests import it. It uses nothing of the allocators, so
// that it cannot have the same mistakes.
package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"
)

// A Block is a live block in a [Set].
type Block struct {
	Addr   uintptr
	Size   int // in bytes, as it was asked for
	Usable int // in bytes, as the allocator says
	seed   uint64
}

// Bounds returns the addresses of the block and of what is behind it. A block of size 0
// takes one byte, because it is distinct from others.
func (b Block) Bounds() (start, end uintptr) { return b.Addr, b.Addr + uintptr(max(b.Usable, 1)) }

// A Set has the live blocks of one allocator. The zero value is empty. One goroutine at
// a time may use it.
type Set struct {
	blocks []Block // by address
	bytes  int64
	seeds  uint64
}

// Seed makes the patterns of the blocks that are added from now on those that begin at
// seed. Sets whose blocks must not be taken for each other begin at different ones.
func (s *Set) Seed(seed uint64) { s.seeds = seed }

// Len returns how many blocks are live.
func (s *Set) Len() int { return len(s.blocks) }

// Bytes returns the sum of their usable sizes.
func (s *Set) Bytes() int64 { return s.bytes }

// At returns the i-th live block by address.
func (s *Set) At(i int) Block { return s.blocks[i] }

// Find returns the live block that addr is in.
func (s *Set) Find(addr uintptr) (b Block, ok bool) {
	i := search(s.blocks, addr+1) - 1
	if i < 0 {
		return Block{}, false
	}
	b = s.blocks[i]
	_, end := b.Bounds()
	return b, addr < end
}

// Add adds the block at p, which has just been allocated, and fills it with a pattern of
// its own. It returns an error if the address is not a multiple of align, if the block
// is smaller than was asked for, or if it overlaps a live block.
func (s *Set) Add(p unsafe.Pointer, size, usable, align int) error {
	if p == nil {
		return fmt.Errorf("no block of %d bytes", size)
	}
	b := Block{Addr: uintptr(p), Size: size, Usable: usable, seed: s.seeds + 1}
	if b.Addr%uintptr(align) != 0 {
		return fmt.Errorf("%v is not aligned to %d", b, align)
	}
	if usable < size {
		return fmt.Errorf("%v has fewer bytes than were asked for", b)
	}
	if err := Insert(&s.blocks, b); err != nil {
		return err
	}
	s.seeds++
	Fill(p, usable, b.seed)
	s.bytes += int64(usable)
	return nil
}

// A bounded is a block: it takes the addresses in [start, end).
type bounded interface{ Bounds() (start, end uintptr) }

// search returns the index of the first of some blocks, which are in the order of their
// addresses, that begins at addr or behind.
func search[B bounded](blocks []B, addr uintptr) int {
	i, _ := slices.BinarySearchFunc(blocks, addr, func(b B, addr uintptr) int {
		start, _ := b.Bounds()
		return cmp.Compare(start, addr)
	})
	return i
}

// Insert inserts b into a list of blocks that are in the order of their addresses. It
// returns an error, and inserts nothing, if b overlaps one of them.
func Insert[B bounded](blocks *[]B, b B) error {
	start, end := b.Bounds()
	i := search(*blocks, start)
	for _, other := range (*blocks)[max(i-1, 0):min(i+1, len(*blocks))] {
		if s, e := other.Bounds(); s < end && start < e {
			return fmt.Errorf("%v overlaps %v", b, other)
		}
	}
	*blocks = slices.Insert(*blocks, i, b)
	return nil
}

// Take removes the i-th live block by address, which goes to another set.
func (s *Set) Take(i int) Block {
	b := s.blocks[i]
	s.blocks = slices.Delete(s.blocks, i, i+1)
	s.bytes -= int64(b.Usable)
	return b
}

// Give adds a block that Take has removed from a set. It keeps its contents. Give returns
// an error if the block overlaps a live one.
func (s *Set) Give(b Block) error {
	if err := Insert(&s.blocks, b); err != nil {
		return err
	}
	s.bytes += int64(b.Usable)
	return nil
}

// Remove removes the block at p, which is about to be freed. It returns an error if the
// block is not in the set, or if its contents are not what was written to it.
func (s *Set) Remove(p unsafe.Pointer) error {
	i := search(s.blocks, uintptr(p))
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

// Move is Remove and Add for a reallocation: the block that was at from is at to, with a
// new size. It returns an error as they do, and if the block has not kept its contents,
// up to the smaller size.
func (s *Set) Move(from uintptr, to unsafe.Pointer, size, usable, align int) error {
	i := search(s.blocks, from)
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

// CheckAll returns an error if the contents of a live block are not what was written to
// it. pointer turns the address of a block into a pointer.
func (s *Set) CheckAll(pointer func(uintptr) unsafe.Pointer) error {
	for _, b := range s.blocks {
		if err := Check(pointer(b.Addr), b.Usable, b.seed); err != nil {
			return fmt.Errorf("%v: %w", b, err)
		}
	}
	return nil
}

// String returns the addresses and the size of the block.
func (b Block) String() string {
	start, end := b.Bounds()
	return fmt.Sprintf("block [%#x, %#x) of %d bytes", start, end, b.Size)
}
