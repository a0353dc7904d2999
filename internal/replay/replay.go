// Package replay performs the operations of a trace on an allocator: to time them,
// to verify the blocks, and to measure resident memory.
package replay

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// A MemoryError says that an allocator had no memory for an operation.
type MemoryError struct {
	Allocator string
	Index     int // of the operation, from 0
	Op        trace.Op
}

// Error names the allocator, the operation and its size.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("allocator %s: operation %d: no memory for %v of %d bytes",
		e.Allocator, e.Index, e.Op.Kind, e.Op.Size)
}

// outOfMemory makes the error of an allocator that stopped at one of ops.
func outOfMemory(allocator string, ops []trace.Op, failed *trace.Op) *MemoryError {
	i := 0
	for &ops[i] != failed {
		i++
	}
	return &MemoryError{allocator, i, *failed}
}

// frees returns the operations that free the live blocks after ops, by slot.
func frees(ops []trace.Op, slots int) []trace.Op {
	live := make([]bool, slots)
	for i := range ops {
		live[ops[i].Slot] = ops[i].Kind != trace.Free
	}
	var out []trace.Op
	for slot, is := range live {
		if is {
			out = append(out, trace.Op{Kind: trace.Free, Slot: uint32(slot)})
		}
	}
	return out
}

// free frees the live blocks after ops.
func free(p peers.Peer, ops []trace.Op, slots peers.Slots) {
	if rest := frees(ops, len(slots)); len(rest) > 0 {
		p.Replay(rest, slots)
	}
}

// newSlots returns a table whose pages are resident, so that no operation faults.
func newSlots(n int) peers.Slots {
	s := make(peers.Slots, n)
	clear(s)
	return s
}
