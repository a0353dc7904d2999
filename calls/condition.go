//go:build cgo

package calls

/*
#include "ops.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// A Condition compares the result of a recorded call, an integer or a pointer, with a value.
// The list evaluates it while it runs.
type Condition struct {
	result Result
	kind   uint32
	value  int64
}

const (
	condEqual uint32 = iota
	condNotEqual
	condLess
	condAtLeast
	condNot = 1 // inverts the lowest bit of a kind
)

var (
	stopOps = [...]unsafe.Pointer{C.cheap_calls_stop_eq, C.cheap_calls_stop_ne, C.cheap_calls_stop_lt, C.cheap_calls_stop_ge}
	skipOps = [...]unsafe.Pointer{C.cheap_calls_skip_eq, C.cheap_calls_skip_ne, C.cheap_calls_skip_lt, C.cheap_calls_skip_ge}
)

// Equal is the condition that the result is v.
func Equal(r Result, v int64) Condition { return Condition{r, condEqual, v} }

// NotEqual is the condition that the result is not v.
func NotEqual(r Result, v int64) Condition { return Condition{r, condNotEqual, v} }

// Less is the condition that the result, as an integer with a sign, is less than v.
func Less(r Result, v int64) Condition { return Condition{r, condLess, v} }

// AtLeast is the condition that the result, as an integer with a sign, is v or more.
func AtLeast(r Result, v int64) Condition { return Condition{r, condAtLeast, v} }

// Negative is the condition that the result is less than 0.
func Negative(r Result) Condition { return Condition{r, condLess, 0} }

// Nil is the condition that the result is a null pointer.
func Nil(r Result) Condition { return Condition{r, condEqual, 0} }

// StopIf records that the list stops here if the condition holds. [List.Run] then returns a
// [StopError], and no later call of the list is made.
func (l *List) StopIf(c Condition) {
	w, at := l.condition(stopOps[c.kind&3], c)
	if w == nil {
		w, at = l.conditionSlow(stopOps[c.kind&3], c, "List.StopIf")
	}
	w[1], w[2] = uint64(uint32(int32(int(c.result.at)+1-at))), uint64(c.value)
}

// condition records an operation with a condition. It returns nil where something must be
// looked at: conditionSlow does.
func (l *List) condition(op unsafe.Pointer, c Condition) (*[3]uint64, int) {
	at := l.n
	if at+3 > l.room || c.result.gen != l.gen || int32(c.result.at) < 0 {
		return nil, 0
	}
	w := (*[3]uint64)(unsafe.Add(l.base, at*8))
	w[0] = uint64(uintptr(op))
	l.n = at + 3
	return w, at
}

//go:noinline
func (l *List) conditionSlow(op unsafe.Pointer, c Condition, method string) (*[3]uint64, int) {
	l.mustBeIdle("recording")
	l.check(c, method)
	w, at := l.add(op, 3)
	return (*[3]uint64)(w[:]), at
}

// check returns where the call of the condition begins.
func (l *List) check(c Condition, method string) int {
	if c.result.at&resultFloat != 0 {
		panicMisuse(method, "the result is a double; conditions are for integers and pointers")
	}
	return c.result.index(l, method)
}

// A skip waits for the call on which it ends.
type skip struct {
	at   int // the operation
	left int // calls that are still to be recorded
}

// SkipIf records that the next n calls are not made if the condition holds, with what belongs
// to them: the conditions that are recorded after each. What a repetition keeps of a row is
// not skipped. Run panics if fewer than n calls are recorded after SkipIf, and so do the
// methods of [Repeat] if a part of them is.
func (l *List) SkipIf(c Condition, n int) {
	if n < 1 {
		panicMisuse("List.SkipIf", "a skip of %d calls; the least is 1", n)
	}
	src := l.check(c, "List.SkipIf")
	w, at := l.add(skipOps[c.kind], 3)
	w[1], w[2] = pair(at, src+1, at), uint64(c.value)
	l.skips = append(l.skips, skip{at, n})
	l.room, l.plain = 0, false // calls are counted now
}

// countSkips counts a call that is about to be recorded.
func (l *List) countSkips() {
	kept := l.skips[:0]
	for _, s := range l.skips {
		if s.left == 0 {
			l.land(s)
			continue
		}
		s.left--
		kept = append(kept, s)
	}
	l.skips = kept
}

// land has a skip go on with what is recorded next.
func (l *List) land(s skip) {
	w := l.word(s.at + 1)
	*w = *w&(1<<32-1) | uint64(l.n-s.at)<<32
}

// endSkips ends the skips before something at which none may be open.
func (l *List) endSkips(what string) {
	if len(l.skips) == 0 {
		return
	}
	for _, s := range l.skips {
		if s.left > 0 {
			panicMisuse("List.SkipIf", "%d of the calls to skip were not recorded before %s", s.left, what)
		}
		l.land(s)
	}
	l.skips = l.skips[:0]
	l.room = max(len(l.words)-slack, 0)
}

// A StopError is what [List.Run] returns if a condition has stopped the list.
type StopError struct {
	Call  Result // the result of the condition: == says which call it was
	Value int64  // what the call has returned
}

// Error gives the result.
func (e *StopError) Error() string {
	return fmt.Sprintf("cheap: calls.List.Run: a call returned %d, and the list was to stop at that", e.Value)
}

// stopped makes the error of the stop operation at a word.
func (l *List) stopped(at int) error {
	result := at + int(int32(uint32(*l.word(at + 1))))
	return &StopError{Result{l, uint32(result - 1), l.gen}, int64(*l.word(result))}
}
