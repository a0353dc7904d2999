package resident

import "testing"

// TestBesideGo has a heap that begins below a multiple of 64 GiB, and an object above it: the runtime puts the heap
// anywhere.
func TestBesideGo(t *testing.T) {
	const object = 5<<36 + 3<<20
	for addr, want := range map[uint64]bool{
		object: true, 5<<36 - 40<<20: true, 5<<36 + 20<<30: true,
		0x400000: false, 0x7f0000000000: false, 0x555555554000: false,
	} {
		if got := besideGo(addr, object); got != want {
			t.Errorf("%#x beside %#x: %v", addr, uint64(object), got)
		}
	}
}
