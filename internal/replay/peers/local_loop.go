// Code generated from loop.tmpl by go generate. DO NOT EDIT.

package peers

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/trace"
)

func (p *local) Replay(ops []trace.Op, slots Slots) *trace.Op {
	a := p.local
	table := slots.Table()
	for op, last := Ends(ops); ; op = After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = a.Malloc(op.Size)
		case trace.Free:
			a.Free(table.At(op))
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
