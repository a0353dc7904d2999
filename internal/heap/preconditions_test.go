package heap

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// TestPreconditions calls each function that wants a multiple of something with what is none, and
// wants a panic that names it.
func TestPreconditions(t *testing.T) {
	h := NewHeap(t, Options{})
	size := 2 * osmem.PageSize
	large := h.Malloc(int(span.UnitSize + osmem.PageSize))
	defer h.Free(large)
	s := span.Find(uintptr(large))

	type row struct {
		op, arg string
		call    func()
	}
	var rows []row
	for _, off := range []uintptr{1, 128, osmem.PageSize - 1} {
		rows = append(rows,
			row{"largeCost", "size", func() { largeCost(size + off) }},
			row{"Heap.newLarge", "size", func() { h.newLarge(size+off, 16, 0) }},
			row{"Heap.resizeLarge", "size", func() { h.resizeLarge(s, uintptr(large), size+off, false) }},
		)
	}
	rows = append(rows, row{"Heap.newLarge", "size", func() { h.newLarge(0, 16, 0) }})
	before := h.Stats()
	for _, row := range rows {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "cheap: "+row.op+": "+row.arg+" is 0x") {
					t.Errorf("%s with a wrong %s: %q", row.op, row.arg, text)
				}
			}()
			row.call()
		}()
	}
	if after := h.Stats(); after.Held != before.Held {
		t.Errorf("the heap has %+v after that, and had %+v before", after, before)
	}
}
