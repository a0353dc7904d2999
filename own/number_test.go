package own

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestReleaseByNumber has a release function free blocks whose addresses it gets as
// numbers, closed ones and collected ones. With the tag cheap_gomem the blocks are in Go
// memory, and with -race each conversion of a number is checked: cheap.Pointer passes,
// and unsafe.Pointer(r) would end the program.
func TestReleaseByNumber(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	t.Cleanup(func() { h.DestroyAll() })
	p := NewPool(Options{Name: "by number", Release: func(_ any, resources []uintptr) error {
		for _, r := range resources {
			b := unsafe.Slice((*byte)(cheap.Pointer(r)), 100)
			if b[0] != 7 || b[99] != 7 {
				t.Errorf("the block at %#x holds %d and %d", r, b[0], b[99])
			}
			h.Free(cheap.Pointer(r))
		}
		return nil
	}})
	type owned struct{ h Handle[unsafe.Pointer] }
	testcall.Aside(func() { // no stack that stays keeps an owner
		for i := range 1000 {
			block := h.Malloc(100)
			*(*byte)(block), *(*byte)(unsafe.Add(block, 99)) = 7, 7
			o := new(owned)
			if err := o.h.Own(p, block, 100); err != nil {
				t.Error(err)
				return
			}
			if i%3 == 0 {
				o.h.Close()
			}
		}
	})
	testwait.Until(t, "no block is left, and no owner", func() bool {
		runtime.GC()
		return h.Stats().Blocks == 0 && p.Stats().Live == 0
	})
	testcall.Want(t, p.CloseWait(t.Context()))
}
