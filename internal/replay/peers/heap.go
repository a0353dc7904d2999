package peers

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// ours lists the allocators of package cheap.
var ours = []Info{
	{
		Name:  "heap",
		About: "cheap.Heap, for any number of goroutines",
		Align: 16,
		Open:  openHeap,
	},
	localInfo,
}

// heap replays on a cheap.Heap.
type heap struct{ heap *cheap.Heap }

func openHeap(int) (Peer, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return nil, err
	}
	return heap{h}, nil
}

func (p heap) Replay(ops []trace.Op, slots Slots) *trace.Op {
	h := p.heap
	table := slots.Table()
	for op, last := Ends(ops); ; op = After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = h.Malloc(op.Size)
		case trace.Free:
			h.Free(table.At(op))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = h.Calloc(1, op.Size)
		case trace.Realloc:
			ptr = h.Realloc(table.At(op), op.Size)
		case trace.Aligned:
			ptr = h.AlignedMalloc(op.Size, op.Align())
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}

func (p heap) Trim() error {
	p.heap.Trim()
	return nil
}

func (p heap) Close() error { return p.heap.Destroy() }
