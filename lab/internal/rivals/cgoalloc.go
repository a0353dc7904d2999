//go:build cgo

package rivals

import (
	"unsafe"

	"github.com/CannibalVox/cgoalloc"

	"github.com/cheapgo/cheap/internal/replay/peers"
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

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o cgoalloc_loop.go ../../../internal/replay/loop.tmpl build=cgo package=rivals peers=peers. type=*cgoallocator alloc=p slot=op.Slot, free=a.alloc.Free(a.hand.begin(table.At(op)))

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

func (c *cgoallocator) Malloc(slot uint32, size int) unsafe.Pointer {
	c.caps[slot] = size
	return c.alloc.Malloc(size)
}

// Calloc clears a block of Malloc.
func (c *cgoallocator) Calloc(slot uint32, _, size int) unsafe.Pointer {
	ptr := c.Malloc(slot, size)
	clear(unsafe.Slice((*byte)(ptr), size)) // it does not return if there is no memory
	return ptr
}

// Realloc keeps the block if it is large enough.
func (c *cgoallocator) Realloc(slot uint32, ptr unsafe.Pointer, size int) unsafe.Pointer {
	if size <= c.caps[slot] {
		return ptr
	}
	to := c.hand.move(ptr, c.caps[slot], size)
	if to != nil {
		c.caps[slot] = size
	}
	return to
}

func (c *cgoallocator) AlignedMalloc(slot uint32, size, align int) unsafe.Pointer {
	c.caps[slot] = size
	return c.hand.aligned(size, align)
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
