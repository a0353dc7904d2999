package pipeline_test

import (
	"flag"
	"maps"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
	"github.com/cheapgo/cheap/x/arrow/internal/pipeline"
)

var rows = flag.Int("rows", 1_000_000, "rows of the table that is taken through the pipeline")

// expected computes the groups in plain Go.
func expected(n int) map[string]pipeline.Group {
	groups := make(map[string]pipeline.Group)
	for r := range pipeline.Rows(n) {
		if r.Priced && r.Price >= pipeline.MinPrice {
			g := groups[r.Key]
			groups[r.Key] = pipeline.Group{Rows: g.Rows + 1, Quantity: g.Quantity + r.Quantity}
		}
	}
	return groups
}

// TestPipeline expects the right results, and that no buffer is left, neither in the
// counts of arrow's checked allocator nor in those of the heap.
func TestPipeline(t *testing.T) {
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.NewCheckedAllocator(cheaparrow.Allocator{Heap: heap})
	groups, err := pipeline.Run(t.Context(), mem, *rows, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if want := expected(*rows); !maps.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
	mem.AssertSize(t, 0)
	s := heap.Stats()
	if s.Blocks != 0 || s.Mallocs == 0 {
		t.Errorf("in the end: %+v", s)
	}
	if err := heap.Destroy(); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(mem)
}
