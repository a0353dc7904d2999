package fill

import "fmt"

// A Damage is what is known of a free block that was written to, or that was freed
// twice at the same time.
type Damage struct {
	Block, Size uintptr
	Twice       bool // it was freed twice, or a block behind it in a list was

	// The bytes in [From, To) of the block were written to. If Exact is false, the
	// bytes that were are among these.
	From, To uintptr
	Exact    bool
}

// Reason says what is wrong, and what to look for.
func (d Damage) Reason() string {
	if d.Twice {
		return fmt.Sprintf("the block at %#x, or one behind it in a list of free blocks, was freed twice at the same time; look for two goroutines that free one block, or that use one Local", d.Block)
	}
	where := fmt.Sprintf("%d bytes from byte %d on", d.To-d.From, d.From)
	if !d.Exact {
		where = fmt.Sprintf("some of its first %d bytes", d.To)
	}
	return fmt.Sprintf("the free block at %#x (%d bytes) was written to after it was freed: %s; look for a pointer that is used after Free", d.Block, d.Size, where)
}
