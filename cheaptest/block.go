package cheaptest

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"
)

type pointer = unsafe.Pointer

// A block is what an allocator gave out, and what was written to it.
type block struct {
	ptr  unsafe.Pointer
	size int
	mark int // tells its contents from those of other blocks
}

// text is what blocks are filled with: a piece of it, again and again, that
// begins at the block's mark. A prime is its period, so that neither blocks that
// are a power of two apart nor those of neighbouring marks look alike.
var text = func() []byte {
	const period = 251
	b := make([]byte, 64*period)
	for i := range b {
		b[i] = byte(i%period*7 + 1)
	}
	return b
}()

const textPeriod = 251

// pieces calls f with each piece of b, and what it is to be.
func (b block) pieces(f func(at int, have, want []byte) bool) {
	whole := unsafe.Slice((*byte)(b.ptr), b.size) // all of the block
	const step = 63 * textPeriod
	want := text[b.mark%textPeriod:][:step]
	for at := 0; at < b.size; at += step {
		have := whole[at:min(at+step, b.size)]
		if !f(at, have, want[:len(have)]) {
			return
		}
	}
}

// fill writes to all of the block.
func (b block) fill() {
	b.pieces(func(_ int, have, want []byte) bool {
		copy(have, want)
		return true
	})
}

// damage returns what is wrong with the first n bytes, or "".
func (b block) damage(n int) (damage string) {
	b.size = min(b.size, n)
	b.pieces(func(at int, have, want []byte) bool {
		if bytes.Equal(have, want) {
			return true
		}
		i := 0
		for have[i] == want[i] {
			i++
		}
		damage = fmt.Sprintf("byte %d of the block of %d at %#x is %#x, and %#x was written to it",
			at+i, b.size, uintptr(b.ptr), have[i], want[i])
		return false
	})
	return damage
}

// verify reports what has become of a block's contents.
func (t *trial) verify(b block) {
	t.Helper()
	if damage := b.damage(b.size); damage != "" {
		t.Fatalf("%s", damage)
	}
}

// malloc returns a block that is filled. Marks of blocks that live at the same
// time should differ.
func (t *trial) malloc(size, mark int) block {
	t.Helper()
	return t.take("Malloc", t.a.Malloc(size), size, mark)
}

// take looks at what a method has returned for a size, and fills it.
func (t *trial) take(method string, p unsafe.Pointer, size, mark int) block {
	t.Helper()
	b := t.look(method, p, size, mark)
	b.fill()
	return b
}

// look is take without the filling.
func (t *trial) look(method string, p unsafe.Pointer, size, mark int) block {
	t.Helper()
	if p == nil {
		t.Fatalf("%s of %d bytes returned nil", method, size)
	}
	if align := uintptr(t.promises.Align); align != 0 && uintptr(p)%align != 0 {
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

// A set is blocks by their addresses. No two overlap, and each has at least a
// byte of its own.
type set struct{ blocks []block }

// find returns the index of the first block at p or behind it.
func (s *set) find(p unsafe.Pointer) int {
	i, _ := slices.BinarySearchFunc(s.blocks, uintptr(p), func(b block, p uintptr) int {
		switch at := uintptr(b.ptr); {
		case at < p:
			return -1
		case at > p:
			return 1
		}
		return 0
	})
	return i
}

// add adds b, which overlaps none of the others, or else is reported.
func (s *set) add(t *trial, b block) {
	t.Helper()
	i := s.find(b.ptr)
	if i > 0 {
		t.apart(s.blocks[i-1], b)
	}
	if i < len(s.blocks) {
		t.apart(b, s.blocks[i])
	}
	s.blocks = slices.Insert(s.blocks, i, b)
}

// apart reports blocks that overlap, of which lower has the lower address.
func (t *trial) apart(lower, upper block) {
	t.Helper()
	if distance := uintptr(upper.ptr) - uintptr(lower.ptr); distance < uintptr(max(lower.size, 1)) {
		t.Fatalf("two live blocks overlap: that of %d bytes at %#x and that of %d at %#x",
			lower.size, uintptr(lower.ptr), upper.size, uintptr(upper.ptr))
	}
}
