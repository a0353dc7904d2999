package cheaptest

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/shadow"
)

type pointer = unsafe.Pointer

// A block is a block of the tested allocator, and the contents written to it.
type block struct {
	ptr  unsafe.Pointer
	size int
	mark int // selects the contents, so that they differ from those of other blocks
}

// Bounds returns the addresses of the block and of the byte behind it. A block of size 0
// counts as one byte.
func (b block) Bounds() (start, end uintptr) {
	return uintptr(b.ptr), uintptr(b.ptr) + uintptr(max(b.size, 1))
}

func (b block) String() string {
	return fmt.Sprintf("the block of %d bytes at %#x", b.size, uintptr(b.ptr))
}

// behind returns the block without its first n bytes, as a block with contents of its
// own.
func (b block) behind(n int) block { return block{unsafe.Add(b.ptr, n), b.size - n, b.mark} }

// pieces calls f with each piece of the block, and the seed of its contents. All of a
// piece has the pattern: package shadow leaves gaps in larger blocks only. pieces returns
// the first error of f.
func (b block) pieces(f func(p unsafe.Pointer, n int, seed uint64) error) error {
	for at := 0; at < b.size; at += shadow.Whole {
		n := min(b.size-at, shadow.Whole)
		if err := f(unsafe.Add(b.ptr, at), n, uint64(b.mark+at)); err != nil {
			return fmt.Errorf("%v, from byte %d on: %w", b, at, err)
		}
	}
	return nil
}

// fill writes to all of the block.
func (b block) fill() {
	b.pieces(func(p unsafe.Pointer, n int, seed uint64) error {
		shadow.Fill(p, n, seed)
		return nil
	})
}

// damage describes the first wrong one of the first n bytes. It returns "" if all are
// right.
func (b block) damage(n int) string {
	b.size = min(b.size, n)
	if err := b.pieces(shadow.Check); err != nil {
		return err.Error()
	}
	return ""
}

// verify reports a block whose contents have changed.
func (t *trial) verify(b block) {
	t.Helper()
	if damage := b.damage(b.size); damage != "" {
		t.Fatalf("%s", damage)
	}
}

// malloc returns a filled block. Marks of blocks that are live at the same time should
// differ.
func (t *trial) malloc(size, mark int) block {
	t.Helper()
	return t.take("Malloc", t.a.Malloc(size), size, mark)
}

// take checks the result of a method for a size, and fills the block.
func (t *trial) take(method string, p unsafe.Pointer, size, mark int) block {
	t.Helper()
	b := t.look(method, p, size, mark)
	b.fill()
	return b
}

// look is take without filling the block.
func (t *trial) look(method string, p unsafe.Pointer, size, mark int) block {
	t.Helper()
	if p == nil {
		t.Fatalf("%s of %d bytes returned nil", method, size)
	}
	if align := uintptr(t.guarantees.Align); align != 0 && uintptr(p)%align != 0 {
		t.Fatalf("%s of %d bytes returned %#x, which is not aligned to %d", method, size, uintptr(p), align)
	}
	return block{p, size, mark}
}

// free verifies a block and frees it.
func (t *trial) free(b block) {
	t.Helper()
	t.verify(b)
	t.a.Free(b.ptr)
}

// A set is a list of blocks, sorted by address. No two overlap, and each has at least
// one byte of its own.
type set struct{ blocks []block }

// add adds b, which overlaps none of the others, or else is reported.
func (s *set) add(t *trial, b block) {
	t.Helper()
	if err := shadow.Insert(&s.blocks, b); err != nil {
		t.Fatalf("two live blocks: %v", err)
	}
}
