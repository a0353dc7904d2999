package inspect

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/cheapgo/cheap/internal/watch/guard"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// SetGuardRate has heaps place one block in blocks, in the mean, between two pages that
// fault when they are touched, and returns the old rate. The rate 0 places none; a program begins
// with it. The environment variable CHEAP_GUARD sets the rate when the program
// starts, as in CHEAP_GUARD=10000.
//
// A guarded block is alone on its pages, and lies at their end or at their start, at random. An
// access behind the end of one block, and before the start of another, faults at once. A write to
// the rest of the pages is found when the block is freed, resized, or its heap is destroyed: that
// panics with a cheap.MisuseError. Blocks lie in slots, 255 of them, or 62 on 32-bit systems. After
// the free each access faults until the slot is used again; free slots are used in the order in
// which their blocks were freed. A system call that gets such memory does not fault, but fails with EFAULT (bad
// address). Reports have the stacks of the allocation and of the free, and those of the block that
// the slot had before, if that block had the accessed byte.
//
// All blocks of up to 32 KiB of a heap or a Local can be guarded, except in a heap
// with a cheap.CheckLevel, which checks all of its blocks. A guarded block has the size that
// cheap.GoodSize returns, as any other block. So an access behind the requested size is not reported
// if it is within that size. If all slots have a block in use, or if guarded blocks would
// have more than a sixteenth of the limit of their heap, the next one is an ordinary block.
// So blocks that live long keep their slots, and fewer others are guarded. A heap may reach
// its limit up to a sixteenth earlier. The pages of freed guarded blocks keep about 1 MiB.
//
// A guarded block takes about 5 microseconds more, its free included, and 10 with [Monitor].
// With the build tag cheap_gomem there are no guarded blocks, and the rate stays 0. On s390x
// the system tells only the page of a fault, so reports name the first byte of the page.
//
// A program that touches such a page ends, as with any fault. [Guard] makes the fault an
// error, and [Monitor] says what it was when the program has ended.
//
// SetGuardRate may be called at any time, from any goroutine.
func SetGuardRate(blocks int) (old int) {
	return int(min(guard.SetRate(int64(blocks)), math.MaxInt))
}

// GuardRate returns what SetGuardRate has set.
func GuardRate() int { return int(min(sample.GuardRate(), math.MaxInt)) }

// A Fault is an access beside a guarded block, or to one that was freed; see [SetGuardRate].
type Fault struct {
	Addr  uintptr // the address that was accessed
	Block uintptr // the start of the block
	Size  int     // the usable size of the block in bytes
	Freed bool    // the block was free by then

	Allocation []runtime.Frame // the stack of the goroutine that has allocated the block
	Free       []runtime.Frame // that of the one that has freed it, or nil

	// OtherGoroutine says that one goroutine allocated the block and another one freed it.
	OtherGoroutine bool

	// Earlier is the block that lay there before this one, if Addr was a byte of it, or nil. The
	// pointer may be one to that block. Nothing is known of blocks before Earlier.
	Earlier *Fault
}

// Offset returns how far Addr is behind the start of the block. It is below 0 for an access
// before the start, and Size for one to the first byte behind the end.
func (f *Fault) Offset() int { return int(f.Addr - f.Block) }

// Error says what was accessed, and who has allocated and freed the block.
func (f *Fault) Error() string {
	return "cheap: " + f.text()
}

func (f *Fault) text() string {
	var b strings.Builder
	what, look := "after it was freed", "a pointer that is used after Free"
	switch at := f.Offset(); {
	case at < 0:
		what, look = "before its start", "an index below 0"
	case at >= f.Size:
		what, look = "behind its end", "an index or a length that is too large"
	}
	fmt.Fprintf(&b, "the block at %#x (%d bytes) was accessed %s, at byte %d; look for %s", f.Block, f.Size, what, f.Offset(), look)
	writeStack(&b, "allocated by", f.Allocation)
	if f.OtherGoroutine {
		writeStack(&b, "freed by, in another goroutine,", f.Free)
	} else {
		writeStack(&b, "freed by", f.Free)
	}
	if f.Earlier != nil {
		fmt.Fprintf(&b, "\nor, of the block that was there before: %s", f.Earlier.text())
	}
	return b.String()
}

// writeStack writes a stack without the functions of the runtime at its end.
func writeStack(b *strings.Builder, title string, stack []runtime.Frame) {
	if len(stack) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s", title)
	for _, f := range stack {
		if !strings.HasPrefix(f.Function, "runtime.") {
			fmt.Fprintf(b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
		}
	}
}

// Guard calls f. If f accesses memory beside a guarded block, or a guarded block that was
// freed, f ends there as by a panic, and Guard returns a [*Fault]. Else it returns nil.
//
// Only accesses by the goroutine that calls Guard count: a fault in a goroutine that f starts
// ends the program. So does a fault in C code that f calls, from which a Go program cannot
// recover; [Monitor] reports these. Any other panic goes on, with its value, and so does any
// other fault, as a panic (see debug.SetPanicOnFault). Functions that f has deferred run. If f
// has not returned, what it was changing may be half done, and locks that it holds without a
// deferred Unlock stay locked. The block stays as it is: in use, or free.
//
// Guard may be called by any number of goroutines at the same time, and within f. It takes
// about 15 nanoseconds.
func Guard(f func()) error {
	ended, err := guardedCall(f)
	if !ended {
		panic(nil) // f did, in a program for which recover returns nil then: GODEBUG=panicnil=1
	}
	return err
}

// guardedCall is Guard, and says whether f has ended by a return or by a fault. It reports false
// if recover has returned nil for a panic. If f calls runtime.Goexit recover returns nil as
// well, and guardedCall does not return.
func guardedCall(f func()) (ended bool, err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		v := recover()
		if v == nil {
			return
		}
		if e, ok := v.(addressError); ok {
			if fault := faultAt(e.Addr()); fault != nil {
				ended, err = true, fault
				return
			}
		}
		panic(v)
	}()
	f()
	return true, nil
}

// addressError is what the runtime panics with for a fault.
type addressError interface {
	runtime.Error
	Addr() uintptr
}

// faultAt returns the fault of an access to addr, or nil if addr is not beside a guarded block.
func faultAt(addr uintptr) *Fault {
	b, earlier, ok := guard.Find(addr)
	if !ok {
		return nil
	}
	return newFault(addr, guard.Trace(b), guard.Trace(earlier))
}

// newFault returns the fault of an access to addr that is near b. If b is in use and has addr, the
// slot was used anew since; then it is the fault of the block before, or nil if that did not have
// addr.
func newFault(addr uintptr, b, earlier guard.Traced) *Fault {
	var before *Fault
	if earlier.Start != 0 {
		before = faultOf(addr, earlier)
	}
	if b.Live && b.Distance(addr) == 0 {
		return before
	}
	f := faultOf(addr, b)
	f.Earlier = before
	return f
}

func faultOf(addr uintptr, b guard.Traced) *Fault {
	f := &Fault{Addr: addr, Block: b.Start, Size: int(b.Size), Freed: !b.Live, Allocation: framesOf(b.AllocPCs)}
	if !b.Live {
		f.Free, f.OtherGoroutine = framesOf(b.FreePCs), b.Block.Free != b.Block.Alloc
	}
	return f
}
