// Code generated from loop.tmpl by go generate. DO NOT EDIT.

package rivals

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

func (p *modernc) Replay(ops []trace.Op, slots peers.Slots) *trace.Op {
	a := p
	table := slots.Table()
	for op, last := peers.Ends(ops); ; op = peers.After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = a.Malloc(op.Size)
		case trace.Free:
			a.free(a.hand.begin(table.At(op)))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = a.Calloc(1, op.Size)
		case trace.Realloc:
			ptr = a.Realloc(table.At(op), op.Size)
		case trace.Aligned:
			ptr = a.AlignedMalloc(op.Size, op.Align())
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}
