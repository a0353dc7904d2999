package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "a", Type: arrow.BinaryTypes.String},
	{Name: "b", Type: arrow.PrimitiveTypes.Int64},
}, nil)

// TestLeaksOfArrow shows the buffers that version 18.8.0 of arrow never releases. With
// Go memory the collector frees them; with every other allocator they leak. The
// pipeline calls both functions within a scope, which frees these buffers. If this test
// fails because no buffer is left, arrow is corrected, and the scope must be removed.
func TestLeaksOfArrow(t *testing.T) {
	for _, row := range []struct {
		name   string
		reason string
		call   func(ctx context.Context, r arrow.RecordBatch) error
		blocks int64
	}{
		{
			"sort_indices", "kernels.SortIndices allocates a buffer to sort in, and does not release it",
			func(ctx context.Context, r arrow.RecordBatch) error {
				indices, err := compute.SortIndicesRecordBatch(ctx, r, []compute.SortKey{{ColumnIndex: 0}, {ColumnIndex: 1}})
				if err == nil {
					indices.Release()
				}
				return err
			}, 1,
		},
		{
			"unique", "the builder in hashing.BinaryMemoTable, with its three buffers, has a Release that the kernel does not call",
			func(ctx context.Context, r arrow.RecordBatch) error {
				unique, err := compute.UniqueArray(ctx, r.Column(0))
				if err == nil {
					unique.Release()
				}
				return err
			}, 3,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			heap, err := cheap.NewHeap(cheap.HeapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer heap.DestroyAll()
			mem := cheaparrow.Allocator{Heap: heap}
			r, _, err := array.RecordFromJSON(memory.NewGoAllocator(), schema, strings.NewReader(`[{"a":"y","b":1},{"a":"x","b":2},{"a":"y","b":3}]`))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			if err := row.call(compute.WithAllocator(t.Context(), mem), r); err != nil {
				t.Fatal(err)
			}
			if left := heap.Stats().Blocks; left != row.blocks {
				t.Errorf("%d blocks are left, not %d as in arrow 18.8.0: %s", left, row.blocks, row.reason)
			}
		})
	}
}
