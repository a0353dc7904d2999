package cheap

import (
	"errors"
	"fmt"
)

var (
	// ErrNoMemory is wrapped by errors of calls for which the operating system,
	// or the inner allocator, has no memory.
	ErrNoMemory = errors.New("cheap: out of memory")

	// ErrLimit is wrapped by errors of calls that would exceed
	// [HeapOptions.Limit].
	ErrLimit = errors.New("cheap: a memory limit is reached")

	// ErrDestroyed is returned by Destroy and DestroyAll of an allocator that is
	// destroyed.
	ErrDestroyed = errors.New("cheap: it is destroyed already")
)

// A LiveError is returned by Destroy of an allocator with blocks that were not
// freed. Destroy has released nothing; the blocks are still valid.
type LiveError struct {
	Op     string // the method that failed, such as "Heap.Destroy"
	Blocks int64  // the number of live blocks
	Bytes  int64  // the usable bytes of the live blocks
}

// Error gives the numbers of blocks and bytes.
func (e *LiveError) Error() string {
	return fmt.Sprintf("cheap: %s: live blocks: %d (%d bytes); free them, or call DestroyAll to drop them", e.Op, e.Blocks, e.Bytes)
}

// A MisuseError is the value of every panic that this module raises for a mistake
// of its caller: a block that is freed twice, a pointer from somewhere else, a
// negative size.
//
// The panic comes before anything has changed, so a program that recovers from it can go on.
// There are two exceptions. First, a write to a freed block, or two calls of Free at the same
// time, are detected only when the block is about to be used again or its span is given back; the
// free blocks linked behind it are then lost. The program can go on after that, too. Second, with
// a [CheckLevel] or between guard pages the memory around a block may be found to be written to:
// after that panic of Free or Realloc the block is free.
type MisuseError struct {
	Op     string  // the function or method that was misused, such as "Heap.Free"
	Addr   uintptr // the pointer that it got, or 0 if it got none
	Reason string  // what is wrong, and what to do
}

// Error gives the method and the reason.
func (e *MisuseError) Error() string { return "cheap: " + e.Op + ": " + e.Reason }

// Functions that never return are called panicX, functions that may panic mustX.

// panicMisuse panics with a [MisuseError].
func panicMisuse(op string, addr uintptr, format string, args ...any) {
	panic(&MisuseError{Op: op, Addr: addr, Reason: fmt.Sprintf(format, args...)})
}

// mustHaveInner panics if a, the allocator below the one that op makes, is nil.
func mustHaveInner(op string, a Allocator) {
	if a == nil {
		panicMisuse(op, 0, "the inner allocator is nil")
	}
}

// mustBeUnshared panics if ok is false, which only a second goroutine can have caused that uses an
// allocator for one.
func mustBeUnshared(op string, ok bool) {
	if !ok {
		panicMisuse(op, 0, "two goroutines use it at the same time, so blocks may have two owners; give each its own, or hold a lock")
	}
}
