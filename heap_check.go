package cheap

import "github.com/cheapgo/cheap/internal/heap"

// A CheckLevel says what a heap checks in the use of its blocks.
type CheckLevel int

const (
	// CheckNone is the default. The heap makes only checks that cost next to nothing. It
	// detects a Free of an address that is not a live block, and a write to the first 16
	// bytes of a free block.
	CheckNone CheckLevel = iota

	// CheckBlocks fills blocks when they are handed out and when they are freed. It puts a
	// border of bytes that must not change before and behind each block. Freed blocks are
	// kept from reuse for a while, in quarantine. A write to a border is detected when the
	// block is freed, and by Destroy. A write to a freed block is detected when the block
	// leaves the quarantine, when its memory is handed out again, and by Destroy.
	CheckBlocks

	// CheckStacks is CheckBlocks with the stacks of the allocation and of the free in each
	// report.
	CheckStacks
)

// DefaultQuarantine is the default of HeapOptions.Quarantine.
const DefaultQuarantine = 16 << 20

// The levels and the default are those of package heap.
var (
	_ [CheckStacks]struct{}       = [heap.CheckStacks]struct{}{}
	_ [DefaultQuarantine]struct{} = [heap.DefaultQuarantine]struct{}{}
)
