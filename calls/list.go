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
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A List records calls of C functions and makes them later, all in one cgo call. It is made
// once and used again and again: methods record, [List.Run] makes the calls, results are
// read, and [List.Reset] begins the next recording. A list that is used again allocates no Go
// memory.
//
// The zero List is ready for use. A List must not be copied after its first use. It is for
// one goroutine at a time.
//
// A List that becomes unreachable needs no end: its memory is freed after a collection.
type List struct {
	_ noCopy

	// base is the address of words. The first words of it are the header, in which C says
	// how a run ended.
	base unsafe.Pointer
	n    int    // words that are recorded, with the header
	room int    // while n is at most this, a call can be recorded; 0 if something must be looked at
	gen  uint32 // of the recording; no other recording of any list has it, but for a wrap

	state state
	plain bool  // nothing but calls, references and StopIf was recorded, and no Run ended early
	ran   bool  // there are results
	quiet bool  // NoCallback
	err   error // why the recording cannot run

	words []uint64
	from  int // the word at which the next Run begins, 0: the first call

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
	idle    state = iota // calls can be recorded and run
	running              // C is making them
	put                  // the list is in the pool
)

const (
	header = C.CHEAP_CALLS_HEADER // words, in which C says how a run ended

	// MaxWords is the most arguments that a call can have.
	MaxWords = 30

	// slack is kept free behind the words of a list, so that a recorded call can be written
	// as an array of its largest size, without looking at its length.
	slack = MaxWords + 3

	firstWords = 256
	mostWords  = 1 << 27 // of a list, 1 GiB: a distance has 31 bits, an index 28
	keptWords  = 1 << 15 // of a list in the pool
)

// callWords is a recorded call.
type callWords struct {
	op     uint64
	result uint64
	args   [MaxWords]uint64
}

var _ [slack*8 - unsafe.Sizeof(callWords{})]byte // it is not larger

// An Option changes a list.
type Option int

// NoCallback promises that no C function of the list calls Go. If one does, the Go runtime
// ends the program.
const NoCallback Option = 1

// New returns a list. Without options, &List{} is the same.
func New(options ...Option) *List {
	l := new(List)
	for _, o := range options {
		if o != NoCallback {
			panicMisuse("New", "%d is no Option; pass NoCallback or nothing", o)
		}
		l.quiet = true
	}
	return l
}

var pool = sync.Pool{New: func() any { return new(List) }}

// Get returns a list without options from a pool, for a single use. [List.Put] gives it back.
func Get() *List {
	l := pool.Get().(*List)
	l.state = idle
	l.nextRecording()
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
	if len(l.words) > keptWords {
		l.words, l.base = nil, nil
	}
	if l.memory != nil {
		l.memory.Put()
		l.memory = nil
	}
	l.state, l.room, l.n = put, 0, 0
	pool.Put(l)
}

// Reset forgets the calls of the list, and begins a new recording. Results, loops, strings,
// bytes and arrays of the old one are no longer valid; what was pinned is unpinned.
func (l *List) Reset() {
	if l.plain && l.state == idle && l.gen&(generations-1) != 0 {
		l.gen++
		l.n, l.ran = header, false
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
	if l.gen&(generations-1) == 0 {
		l.gen = nextGen.Add(generations) - generations
	}
	l.gen++
	l.n, l.from, l.room = header, 0, max(len(l.words)-slack, 0)
	l.plain, l.ran, l.err, l.open, l.inUse = true, false, nil, nil, 0
	l.skips = l.skips[:0]
}

// Generations are numbers of recordings. A list takes some thousand at a time. The first of
// them is left out, and the last is the first of the next.
const generations = 1 << 12

var nextGen atomic.Uint32

// makeRoom makes room for words more, of a call if isCall is true, and returns where they
// begin. It is called where room says so: because the memory is used up, because skips count
// calls, or because nothing may be recorded.
//
//go:noinline
func (l *List) makeRoom(words int, isCall bool) int {
	l.mustBeIdle("recording")
	if l.gen == 0 {
		l.nextRecording()
	}
	if isCall && len(l.skips) > 0 {
		l.countSkips()
	}
	end := l.n + words
	if have := len(l.words) - slack; end > have {
		if end > mostWords {
			panicMisuse("List", "a list has at most %d words; run it before, or repeat a range of calls", mostWords)
		}
		grown := make([]uint64, max(firstWords, 2*len(l.words), end+slack))
		copy(grown, l.words[:min(l.n, len(l.words))])
		l.words, l.base = grown, unsafe.Pointer(unsafe.SliceData(grown))
	}
	l.room = len(l.words) - slack
	if len(l.skips) > 0 {
		l.room = 0 // the next call comes here, too
	}
	return l.n
}

// add records an operation of n words, the first of which is its function, and returns its
// words and where they begin.
func (l *List) add(op unsafe.Pointer, n int) (*[slack]uint64, int) {
	at := l.n
	if at+n > l.room {
		at = l.makeRoom(n, false)
	}
	w := (*[slack]uint64)(unsafe.Add(l.base, at*8))
	w[0] = uint64(uintptr(op))
	l.n = at + n
	return w, at
}

// word is word i of the list.
func (l *List) word(i int) *uint64 { return &l.words[i] }

// mustBeIdle panics if the list runs, or was given back.
func (l *List) mustBeIdle(what string) {
	switch l.state {
	case running:
		panicMisuse("List", "%s while the list runs: a callback, or another goroutine, must use another list", what)
	case put:
		panicMisuse("List", "%s after Put; call Get for another list", what)
	}
}

// panicMisuse panics with a [cheap.MisuseError] in the name of a function or method of this
// package.
func panicMisuse(name, format string, args ...any) {
	panic(&cheap.MisuseError{Op: "calls." + name, Reason: fmt.Sprintf(format, args...)})
}

// pair packs two distances from the word at: src in the low half.
func pair(at, src, other int) uint64 {
	return uint64(uint32(int32(src-at))) | uint64(uint32(int32(other-at)))<<32
}
