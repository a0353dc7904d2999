package replay

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// A MismatchError says that an allocator broke a promise.
type MismatchError struct {
	Allocator string
	Index     int // of the operation, from 0; those that free what the trace leaves come last
	Op        trace.Op
	Reason    string
}

// Error names the allocator, the operation and what is wrong.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("allocator %s: operation %d, %v of slot %d: %s",
		e.Allocator, e.Index, e.Op.Kind, e.Op.Slot, e.Reason)
}

// Verify replays a trace with every block filled with its own pattern. It checks the
// pattern before a block is freed or resized, and after a resize the part that the
// block keeps; that the blocks of calloc are zero; and that each block is aligned.
// A failed check is a [*MismatchError]. The operations run through the same code as
// those of [Time].
//
// If ctx is done, Verify returns early with its error.
func Verify(ctx context.Context, tr *trace.Trace, info peers.Info) (err error) {
	p, err := info.Open(tr.Slots)
	if err != nil {
		return err
	}
	v := verifier{
		info:   info,
		peer:   p,
		slots:  newSlots(tr.Slots),
		blocks: make([]block, tr.Slots),
	}
	if err := v.run(ctx, tr); err != nil {
		// The allocator's metadata may be damaged, so it is not closed.
		return err
	}
	return p.Close()
}

// A verifier replays one operation at a time.
type verifier struct {
	info   peers.Info
	peer   peers.Peer
	slots  peers.Slots
	blocks []block // by slot
	one    [1]trace.Op
}

// A block describes the block in a slot.
type block struct {
	size int
	seed uint64 // of its pattern
}

func (v *verifier) run(ctx context.Context, tr *trace.Trace) error {
	for i, op := range tr.Ops {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := v.step(i, op); err != nil {
			return err
		}
	}
	for i, op := range frees(tr.Ops, tr.Slots) {
		if err := v.step(len(tr.Ops)+i, op); err != nil {
			return err
		}
	}
	return nil
}

// step performs an operation and checks the block that it names, before and
// after.
func (v *verifier) step(i int, op trace.Op) error {
	b := &v.blocks[op.Slot]
	wrong := func(format string, args ...any) error {
		return &MismatchError{v.info.Name, i, op, fmt.Sprintf(format, args...)}
	}

	kept := 0
	if op.Kind == trace.Free || op.Kind == trace.Realloc {
		if at := differs(v.bytes(op.Slot, b.size), b.seed); at >= 0 {
			return wrong("byte %d of its %d was overwritten while it was live", at, b.size)
		}
		kept = min(b.size, op.Size)
	}

	v.one[0] = op
	v.one[0].Touch = false // the verifier fills the block
	if v.peer.Replay(v.one[:], v.slots) != nil {
		return &MemoryError{v.info.Name, i, op}
	}
	if op.Kind == trace.Free {
		return nil
	}

	align := max(v.info.Align, natural(op.Size))
	if op.Kind == trace.Aligned {
		align = max(align, op.Align())
	}
	if v.slots[op.Slot]%uintptr(align) != 0 {
		return wrong("its address %#x is not a multiple of %d", v.slots[op.Slot], align)
	}
	mem := v.bytes(op.Slot, op.Size)
	switch op.Kind {
	case trace.Calloc:
		for at, c := range mem {
			if c != 0 {
				return wrong("byte %d of its %d is %#02x, not zero", at, op.Size, c)
			}
		}
	case trace.Realloc:
		if at := differs(mem[:kept], b.seed); at >= 0 {
			return wrong("byte %d of the %d that it keeps was lost on the way from %d bytes to %d", at, kept, b.size, op.Size)
		}
	}
	*b = block{op.Size, seed(op.Slot, i)}
	fill(mem, b.seed)
	return nil
}

// bytes returns the block in a slot, whose size the caller knows.
func (v *verifier) bytes(slot uint32, size int) []byte {
	// The address is outside of the Go heap, or the allocator keeps the block
	// alive; see peers.Slots.
	return unsafe.Slice((*byte)(cheap.Pointer(v.slots[slot])), size)
}

// natural returns the alignment that C promises for a block of size bytes: enough
// for any object that fits in it.
func natural(size int) int {
	const word = int(unsafe.Sizeof(uintptr(0)))
	if size < 2*word {
		return word
	}
	return 2 * word
}
