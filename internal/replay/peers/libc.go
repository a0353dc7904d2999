//go:build cgo

package peers

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/libc"
)

// clib lists the ways to the C library's malloc.
var clib = []Info{
	{
		Name:  "libc",
		About: "the malloc of the C library, called from Go through cgo",
		Open:  func(int) (Peer, error) { return viaCgo{}, nil },
	},
	nativeInfo,
}

// viaCgo replays on the C library's malloc with a cgo call for each operation.
type viaCgo struct{ alloc libc.Allocator }

func (v viaCgo) Replay(ops []trace.Op, slots Slots) *trace.Op {
	table := slots.Table()
	for op, last := Ends(ops); ; op = After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = v.alloc.Malloc(op.Size)
		case trace.Free:
			v.alloc.Free(table.At(op))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = v.alloc.Calloc(1, op.Size)
		case trace.Realloc:
			ptr = v.alloc.Realloc(table.At(op), op.Size)
		case trace.Aligned:
			ptr = v.alloc.AlignedMalloc(op.Size, op.Align())
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}

func (v viaCgo) Trim() error {
	v.alloc.Trim()
	return nil
}

func (v viaCgo) Close() error { return nil }
