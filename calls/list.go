//go:build cgo

package calls

/*
#include "ops.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap"
)

// A List records calls of C functions and makes them later, all in one cgo call. [New] or
// [Get] makes it, and it is used again and again: methods record, [List.Run] makes the calls,
// results are read, and [List.Reset] begins the next recording. A list that is used again
// allocates no Go memory, but for an error, and where more than five objects are pinned in a
// recording: a runtime.Pinner has room for five.
//
// A List must not be copied. It is for one goroutine at a time.
//
// A List that becomes unreachable needs no end: its memory is freed after a collection. What is
// in it, as bytes of [List.Alloc] or the numbers of a [Column], does not keep the list: use
// runtime.KeepAlive where the list is not used after it.
type List struct {
	_ noCopy

	words []uint64 // what is recorded; the first one is 0, so that no operation has the index 0
	state state
	gen   uint32 // of the recording; no other recording of any list has it, but for a wrap
	ran   uint32 // gen if there are results, or 0

	plain bool  // nothing but calls and StopIf was recorded, and no Run ended early
	quiet bool  // NoCallback
	err   error // why the recording cannot run

	run  C.struct_cheap_calls_run
	from int // the operation at which the next Run begins, 0: the first

	skips []skip
	loops []*Repeat // those of the recording, then those of former ones
	inUse int       // of loops
	open  *Repeat   // between Repeat and End

	memory *cheap.Arena    // strings, bytes, arrays; nil before the first
	pins   *runtime.Pinner // nil before the first
	pinned bool
}

// A noCopy has go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

type state uint8

const (
	unmade  state = iota // the zero List
	idle                 // calls can be recorded and run
	running              // C is making them
	put                  // the list is in the pool
)

// refusals say why nothing can be done with a list in a state. The array has an element for each value
// of a uint8, so that the compiler leaves the bounds check out, and Begin is inlined.
var refusals = [256]*cheap.MisuseError{
	idle:    wrongArg, // from Begin2 alone, whose arguments may be wrong as well
	unmade:  misuse("List", "the zero List is no list; call New or Get"),
	running: misuse("List", "the list runs; a callback, or another goroutine, must use another list"),
	put:     misuse("List", "the list was given back by Put; call Get for another one"),
}

const (
	first      = 1       // the index of the first operation
	firstWords = 256     // of a new list
	mostWords  = 1 << 27 // of a list, 1 GiB; an index has 28 bits
	keptWords  = 1 << 15 // of a list in the pool
)

// An Option changes a list.
type Option int

// NoCallback promises that no C function of the list calls Go. It makes no call faster. If a C
// function calls Go, the runtime panics.
const NoCallback Option = 1

// New returns a list.
func New(options ...Option) *List {
	l := newList()
	for _, o := range options {
		if o != NoCallback {
			panicMisuse("New", "%d is no Option; pass NoCallback or nothing", o)
		}
		l.quiet = true
	}
	return l
}

func newList() *List {
	l := &List{words: make([]uint64, first, firstWords), state: idle}
	l.nextRecording()
	return l
}

var pool = sync.Pool{New: func() any { return newList() }}

// Get returns a list without options from a pool, for a single use. [List.Put] gives it back.
func Get() *List {
	l := pool.Get().(*List)
	l.state = idle
	return l
}

// Put gives a list from [Get] back. The caller must not use the list, its results and its
// memory afterwards: until another goroutine has the list, each use panics.
func (l *List) Put() {
	l.mustBeIdle("Put")
	if l.quiet {
		panicMisuse("List.Put", "the list is not from Get; let go of it")
	}
	l.Reset()
	if cap(l.words) > keptWords {
		l.words = make([]uint64, first, firstWords)
	}
	if l.memory != nil {
		l.memory.Put()
		l.memory = nil
	}
	l.state = put
	pool.Put(l)
}

// Reset forgets the calls of the list, and begins a new recording. Results, loops, strings,
// bytes and arrays of the old one are no longer valid; what was pinned is unpinned.
func (l *List) Reset() {
	if l.plain && l.state == idle && l.gen&(generations-genStep) != 0 {
		l.gen += genStep
		l.words, l.ran = l.words[:first], 0
		return
	}
	l.resetSlow()
}

// resetSlow is Reset of a list that has more than its words, or needs generations.
func (l *List) resetSlow() {
	l.mustBeIdle("Reset")
	if l.pinned {
		l.pins.Unpin()
		l.pinned = false
	}
	if l.memory != nil {
		l.memory.Reset()
	}
	l.nextRecording()
}

// nextRecording makes the list empty.
func (l *List) nextRecording() {
	if l.gen&(generations-genStep) == 0 {
		l.gen = nextGen.Add(generations) - generations + genResult
	}
	l.gen += genStep
	l.words, l.skips, l.from = l.words[:first], l.skips[:0], 0
	l.plain, l.ran, l.err, l.open, l.inUse = true, 0, nil, nil, 0
}

// A generation is the number of a recording. A result has it, with genFloat if it is a double. A
// list takes some thousand at a time; the first is left out, and the last is the first of the next.
const (
	genResult = 1 // set in each, so that none is equal to argAt and its like
	genFloat  = 2
	genStep   = 8

	generations = genStep << 12
)

var nextGen atomic.Uint32

// mustBeIdle panics unless calls can be recorded and run.
func (l *List) mustBeIdle(what string) {
	if l.state != idle {
		refusal := *refusals[l.state]
		refusal.Reason = what + ": " + refusal.Reason
		panic(&refusal)
	}
}

// panicMisuse panics with a [cheap.MisuseError] in the name of a function or method of this
// package.
func panicMisuse(name, format string, args ...any) {
	panic(misuse(name, format, args...))
}

func misuse(name, format string, args ...any) *cheap.MisuseError {
	return &cheap.MisuseError{Op: "calls." + name, Reason: fmt.Sprintf(format, args...)}
}
