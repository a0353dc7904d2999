//go:build cgo

package rivals

import (
	"unsafe"

	"github.com/CannibalVox/cgoalloc"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/libc"
)

var cgoallocInfo = peers.Info{
	Name:  "cgoalloc",
	About: "github.com/CannibalVox/cgoalloc: fixed blocks of 64, 256 and 1024 bytes, malloc through cgo beyond",
	Open:  openCgoalloc,
}

// tiers are the fixed block sizes, the largest first, since each falls back on
// the one before it.
var tiers = []uintptr{1024, 256, 64}

const (
	tierPage  = 64 << 10
	tierAlign = 16
)

// cgoallocator replays on cgoalloc as a program would set it up. It knows
// malloc and free only, and not how large a block is.
type cgoallocator struct {
	alloc cgoalloc.Allocator
	hand  handmade
	caps  []int // by slot, how large its block may be
}

func openCgoalloc(slots int) (peers.Peer, error) {
	c := &cgoallocator{alloc: &cgoalloc.DefaultAllocator{}, caps: make([]int, slots)}
	for _, size := range tiers {
		fixed, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, tierPage, size, tierAlign)
		if err != nil {
			return nil, err
		}
		c.alloc = cgoalloc.CreateFallbackAllocator(fixed, c.alloc)
	}
	c.hand.malloc, c.hand.free = c.alloc.Malloc, c.alloc.Free
	return c, nil
}

// calloc clears a block of malloc.
func (c *cgoallocator) calloc(size int) unsafe.Pointer {
	ptr := c.alloc.Malloc(size)
	clear(unsafe.Slice((*byte)(ptr), size)) // it does not return if there is no memory
	return ptr
}

// realloc keeps the block if it is large enough.
func (c *cgoallocator) realloc(ptr unsafe.Pointer, slot uint32, size int) unsafe.Pointer {
	if size <= c.caps[slot] {
		return ptr
	}
	to := c.hand.move(ptr, c.caps[slot], size)
	if to != nil {
		c.caps[slot] = size
	}
	return to
}

func (c *cgoallocator) Replay(ops []trace.Op, slots peers.Slots) *trace.Op {
	table := slots.Table()
	for op, last := peers.Ends(ops); ; op = peers.After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = c.alloc.Malloc(op.Size)
			c.caps[op.Slot] = op.Size
		case trace.Free:
			c.alloc.Free(c.hand.begin(table.At(op)))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = c.calloc(op.Size)
			c.caps[op.Slot] = op.Size
		case trace.Realloc:
			ptr = c.realloc(table.At(op), op.Slot, op.Size)
		case trace.Aligned:
			ptr = c.hand.aligned(op.Size, op.Align())
			c.caps[op.Slot] = op.Size
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}

// Trim destroys the tiers, because they release nothing before that, and has malloc
// release the memory that they used.
func (c *cgoallocator) Trim() error {
	err := c.alloc.Destroy()
	libc.Allocator{}.Trim()
	return err
}

// Close has nothing to do after Trim. A second Destroy would free the pages
// once more.
func (c *cgoallocator) Close() error { return nil }
