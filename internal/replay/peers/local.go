package peers

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

var localInfo = Info{
	Name:  "local",
	About: "cheap.Local, the cache of a heap that one goroutine owns",
	Align: 16,
	Open:  openLocal,
}

// local replays on a cheap.Local of a separate heap.
type local struct {
	heap  *cheap.Heap
	local *cheap.Local
}

func openLocal(int) (Peer, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return nil, err
	}
	return &local{h, h.NewLocal()}, nil
}

func (p *local) Replay(ops []trace.Op, slots Slots) *trace.Op {
	l := p.local
	table := slots.Table()
	for op, last := Ends(ops); ; op = After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = l.Malloc(op.Size)
		case trace.Free:
			l.Free(table.At(op))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = l.Calloc(1, op.Size)
		case trace.Realloc:
			ptr = l.Realloc(table.At(op), op.Size)
		case trace.Aligned:
			ptr = l.AlignedMalloc(op.Size, op.Align())
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}

// Trim destroys the Local, which returns its blocks to the heap.
func (p *local) Trim() error {
	err := p.local.Destroy()
	p.local = nil
	p.heap.Trim()
	return err
}

func (p *local) Close() error {
	if p.local != nil {
		if err := p.local.Destroy(); err != nil {
			return err
		}
	}
	return p.heap.Destroy()
}
