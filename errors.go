package cheap

import (
	"errors"
	"fmt"
)

var (
	// ErrNoMemory says that the operating system, or the allocator below,
	// refused memory.
	ErrNoMemory = errors.New("cheap: out of memory")

	// ErrLimit says that [Options.Limit] is met.
	ErrLimit = errors.New("cheap: limit of the heap is met")

	// ErrDestroyed is returned by a second Destroy.
	ErrDestroyed = errors.New("cheap: allocator is destroyed already")
)

// A LiveError is returned by Destroy of an allocator that has blocks which
// were never freed. Nothing has been given back; the blocks are still valid.
type LiveError struct {
	Op     string // the method that failed, such as "Heap.Destroy"
	Blocks int    // how many blocks are live
	Bytes  int64  // their usable bytes
}

// Error names the blocks and bytes.
func (e *LiveError) Error() string {
	return fmt.Sprintf("cheap: %s: %d blocks (%d bytes) were never freed; free them, or call DestroyAll to drop them", e.Op, e.Blocks, e.Bytes)
}

// A MisuseError is the value of every panic that this package raises for a
// mistake of its caller: a block freed twice, a pointer that nobody gave out, a
// negative size. The panic comes before anything is changed, so a program that
// recovers it may go on; so it may where a free block was written to, which is
// found later than it happened, and costs the free blocks that it led to.
type MisuseError struct {
	Op     string  // the method that was misused, such as "Heap.Free"
	Addr   uintptr // the pointer it was given, 0 where it was given none
	Reason string  // what is wrong, and the likely mistake
}

// Error names the method and the reason.
func (e *MisuseError) Error() string { return "cheap: " + e.Op + ": " + e.Reason }

// misuse panics with a [MisuseError].
func misuse(op string, addr uintptr, format string, args ...any) {
	panic(&MisuseError{Op: op, Addr: addr, Reason: fmt.Sprintf(format, args...)})
}
