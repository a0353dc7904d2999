package cheap

import (
	"testing"
)

// TestCheckedAlignments asks for alignments that are large, with a size for which there may be
// no room.
func TestCheckedAlignments(t *testing.T) {
	h := newCheckedHeap(t, HeapOptions{Check: CheckStacks})
	for shift := 4; shift < 63; shift++ {
		align := uint64(1) << shift
		if align > uint64(maxInt) {
			break
		}
		for _, size := range []int{0, 1, 100, maxInt, maxInt - 200, int(maxLarge)} {
			p, _, err := h.malloc("Heap.AlignedMalloc", size, int(align))
			if err != nil {
				continue
			}
			if uint64(p)%align != 0 {
				t.Errorf("align %d: %#x", align, p)
			}
			h.Free(anyPointer(p))
		}
	}
	if s := h.Stats(); s.Blocks != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

const maxInt = int(^uint(0) >> 1)
