// Package bump cuts blocks off a chunk of memory, one after the other.
package bump

// Align is what chunks begin at a multiple of, and what blocks are aligned to at
// least, in bytes.
const Align = 16

// A Chunk is memory of which the first Left bytes at Base are free. Blocks are cut
// off their end: then rounding down aligns a block, and Left is all there is to
// check and to change. The zero value has nothing left.
//
// Base is a number, so that to set it takes no write barrier. The memory stays
// whether or not the collector sees a pointer to it: it is a block of an allocator,
// which keeps it until it is freed.
type Chunk struct {
	Base uintptr // a multiple of Align
	Left int
}

// Cut takes a block of size bytes. It returns false, and takes nothing, if Left does
// not suffice or size is less than 1.
func (c *Chunk) Cut(size int) (addr uintptr, ok bool) {
	left := c.Left
	if uint(size-1) >= uint(left) { // 0 and negative sizes are huge here
		return 0, false
	}
	left = (left - size) &^ (Align - 1)
	c.Left = left
	return c.Base + uintptr(left), true
}

// CutAligned takes a block of size bytes, not negative, at a multiple of align, a
// power of two and at least Align. It returns false, and takes nothing, if Left does
// not suffice.
func (c *Chunk) CutAligned(size, align int) (addr uintptr, ok bool) {
	left := c.Left - size
	left -= int((c.Base + uintptr(left)) & uintptr(align-1))
	if size > c.Left || left < 0 {
		return 0, false
	}
	c.Left = left
	return c.Base + uintptr(left), true
}
