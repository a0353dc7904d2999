package cheaparrow_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

// TestReleased reads and writes buffers after their release, which the comment of Allocator says is
// detected with HeapOptions.Check.
func TestReleased(t *testing.T) {
	for _, size := range []int{64, 1000, 16 << 10, 32 << 10} {
		heap, err := cheap.NewHeap(cheap.HeapOptions{Check: cheap.CheckBlocks})
		if err != nil {
			t.Fatal(err)
		}
		mem := cheaparrow.Allocator{Heap: heap}
		b := memory.NewResizableBuffer(mem)
		b.Resize(size)
		bytesOf := b.Bytes()
		copy(bytesOf, bytes.Repeat([]byte("data"), size/4))
		b.Release()
		if got := bytesOf[16:]; !bytes.Equal(got, bytes.Repeat([]byte{0xDF}, len(got))) {
			t.Errorf("after its release a buffer of %d bytes has % x…", size, got[:16])
		}

		bytesOf[size-1] = 'x'
		func() {
			defer func() {
				if v, ok := recover().(*cheap.MisuseError); !ok {
					t.Errorf("a write to a released buffer of %d bytes was not detected: %v", size, v)
				}
			}()
			heap.Destroy()
		}()
		if err := heap.DestroyAll(); err != nil {
			t.Error(err)
		}
	}
}
