package peers

import (
	"unsafe"

	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// A replay's loop is to cost what it costs in C. Go keeps no variable in a
// register across a call, so each one that lives through the loop is stored and
// loaded for every operation. Walking with two pointers and one base address,
// and without comparing slots to the length of a table, takes a tenth off the
// time of the faster allocators. What makes it safe is that [trace.Read] refuses
// slots that are out of range, and blocks that are freed while there are none.

// ends returns the first and the last of ops, which is not empty.
func ends(ops []trace.Op) (first, last *trace.Op) { return &ops[0], &ops[len(ops)-1] }

// after returns the operation behind op, which must not be the last: a pointer
// past the end of the array might be to what the collector thinks is free.
func after(op *trace.Op) *trace.Op {
	return (*trace.Op)(unsafe.Add(unsafe.Pointer(op), unsafe.Sizeof(*op)))
}

// A table is the base address of [Slots].
type table struct{ base unsafe.Pointer }

func (s Slots) table() table { return table{unsafe.Pointer(unsafe.SliceData(s))} }

// slot returns the entry that op names.
func (t table) slot(op *trace.Op) unsafe.Pointer {
	return unsafe.Add(t.base, uintptr(op.Slot)*unsafe.Sizeof(uintptr(0)))
}

// at returns the block that op names, which is live.
func (t table) at(op *trace.Op) unsafe.Pointer {
	// An address read as a pointer: it is not into the Go heap, or the
	// allocator keeps what it points to alive.
	return *(*unsafe.Pointer)(t.slot(op))
}

// put stores the block that op returned and touches it, unless it is nil.
func (t table) put(op *trace.Op, ptr unsafe.Pointer) bool {
	if ptr == nil {
		return false
	}
	*(*uintptr)(t.slot(op)) = uintptr(ptr)
	if op.Touch { // so there are Size bytes, and at least 1
		*(*byte)(ptr) = mark
		*(*byte)(unsafe.Add(ptr, op.Size-1)) = mark
	}
	return true
}

// mark is what a replay writes into the first and the last byte.
const mark = 0xa5
