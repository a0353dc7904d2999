package peers

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/trace"
)

// The loop of a replay should cost as much as in C. Go keeps no variable in a
// register across a call, so each variable of the loop is stored and loaded for
// every operation. A walk with two pointers and one base address, without comparing
// slots to the length of a table, saves a tenth of the time of the faster
// allocators. It is safe because [trace.Read] refuses slots out of range, and a
// free of a slot without a block.

// Ends returns the first and the last of ops, which is not empty.
func Ends(ops []trace.Op) (first, last *trace.Op) { return &ops[0], &ops[len(ops)-1] }

// After returns the operation behind op, which must not be the last: a pointer past
// the end of the array might point to memory that the collector regards as free.
func After(op *trace.Op) *trace.Op {
	return (*trace.Op)(unsafe.Add(unsafe.Pointer(op), unsafe.Sizeof(*op)))
}

// A Table is the base address of [Slots].
type Table struct{ base unsafe.Pointer }

func (s Slots) Table() Table { return Table{unsafe.Pointer(unsafe.SliceData(s))} }

// slot returns the entry that op names.
func (t Table) slot(op *trace.Op) unsafe.Pointer {
	return unsafe.Add(t.base, uintptr(op.Slot)*unsafe.Sizeof(uintptr(0)))
}

// At returns the block that op names, which is live.
func (t Table) At(op *trace.Op) unsafe.Pointer {
	// An address is read as a pointer. It is outside of the Go heap, or the
	// allocator keeps the block alive.
	return *(*unsafe.Pointer)(t.slot(op))
}

// Put stores the block that op returned and touches it, unless it is nil.
func (t Table) Put(op *trace.Op, ptr unsafe.Pointer) bool {
	if ptr == nil {
		return false
	}
	*(*uintptr)(t.slot(op)) = uintptr(ptr)
	if op.Touch { // then Size is at least 1
		*(*byte)(ptr) = mark
		*(*byte)(unsafe.Add(ptr, op.Size-1)) = mark
	}
	return true
}

// mark is written to the first and the last byte.
const mark = 0xa5
