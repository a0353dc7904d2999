//go:build asan

package cheap

import (
	"os"
	"testing"
	"unsafe"

	_ "github.com/cheapgo/cheap/asan"
	"github.com/cheapgo/cheap/internal/testchild"
)

// The tests of this package look at how heaps work that are not checked. So only the regions
// and the free memory of arenas and pools are told to the sanitizer here, unless
// CHEAP_TEST_ASAN is set.
func init() {
	if os.Getenv("CHEAP_TEST_ASAN") == "" {
		poisonsBlocks = false
		if std.checked.poisons = false; os.Getenv("CHEAP_CHECK") == "" {
			checkAll, std.checked = CheckNone, nil
		}
	}
}

// TestNoPoisonAfterDestroy has a block poisoned by a call that goes on while another goroutine
// destroys the heap. The memory may be another heap's by then.
func TestNoPoisonAfterDestroy(t *testing.T) {
	output, status := testchild.Run(t, func() {
		poisonsBlocks = true
		SetDecay(-1) // the memory stays, and so may be touched
		h, err := NewHeap(HeapOptions{Check: CheckBlocks})
		if err != nil {
			panic(err)
		}
		p := h.Malloc(100)
		hd := headerAt(uintptr(unsafe.Add(p, -headerBytes)))
		if err := h.DestroyAll(); err != nil {
			panic(err)
		}
		h.checked.poison(hd)
		rawBytes(p, 101)[100] = 1
	})
	if status != 0 || output != "" {
		t.Errorf("status %d\n%s", status, output)
	}
}
