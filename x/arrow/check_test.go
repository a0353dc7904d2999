//go:build cheap_check

package cheaparrow_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

// TestReleased reads and writes buffers after their release, which the comment of Allocator says is
// detected with the build tag cheap_check.
func TestReleased(t *testing.T) {
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer heap.DestroyAll()
	mem := cheaparrow.Allocator{Heap: heap}
	for _, size := range []int{64, 1000, 16 << 10, 32 << 10} {
		b := memory.NewResizableBuffer(mem)
		b.Resize(size)
		bytesOf := b.Bytes()
		copy(bytesOf, bytes.Repeat([]byte("data"), size/4))
		b.Release()
		if got := bytesOf[16:]; !bytes.Equal(got, bytes.Repeat([]byte{0xDF}, len(got))) {
			t.Errorf("after its release a buffer of %d bytes has % x…", size, got[:16])
		}

		if size > 16<<10 {
			continue // a write to such a block is not detected
		}
		bytesOf[size-1] = 'x'
		func() {
			defer func() {
				if v, ok := recover().(*cheap.MisuseError); !ok {
					t.Errorf("a write to a released buffer of %d bytes was not detected: %v", size, v)
				}
			}()
			mem.Allocate(size) // gets the same memory
		}()
	}
}
