// Code generated from loop.tmpl by go generate. DO NOT EDIT.

//go:build cgo

package rivals

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

func (p *cgoallocator) Replay(ops []trace.Op, slots peers.Slots) *trace.Op {
	a := p
	table := slots.Table()
	for op, last := peers.Ends(ops); ; op = peers.After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = a.Malloc(op.Slot, op.Size)
		case trace.Free:
			a.alloc.Free(a.hand.begin(table.At(op)))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = a.Calloc(op.Slot, 1, op.Size)
		case trace.Realloc:
			ptr = a.Realloc(op.Slot, table.At(op), op.Size)
		case trace.Aligned:
			ptr = a.AlignedMalloc(op.Slot, op.Size, op.Align())
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}
