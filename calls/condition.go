//go:build cgo

package calls

/*
#include "ops.h"
*/
import "C"

import (
	"fmt"
	"math"
)

// A Condition compares the result of a recorded call, an integer or a pointer, with a value.
// The list evaluates it while it runs.
type Condition struct {
	// It holds if the result is one of low to low + span. These are without a sign, and a
	// range may go from the largest number to 0. So there is one comparison for all conditions.
	result    Result
	low, span uint64
}

// never is a condition that does not hold: the first word of a list is 0.
func never(r Result) Condition { return Condition{Result{r.list, 0, r.gen}, 1, 0} }

// not is the opposite.
func (c Condition) not() Condition {
	switch {
	case c.span == math.MaxUint64:
		return never(c.result)
	case c.result.at == 0:
		return Condition{c.result, 0, math.MaxUint64}
	}
	return Condition{c.result, c.low + c.span + 1, math.MaxUint64 - 1 - c.span}
}

// Equal is the condition that the result is v.
func Equal(r Result, v int64) Condition { return Condition{r, uint64(v), 0} }

// NotEqual is the condition that the result is not v.
func NotEqual(r Result, v int64) Condition { return Condition{r, uint64(v) + 1, math.MaxUint64 - 1} }

// Less is the condition that the result, as an integer with a sign, is less than v.
func Less(r Result, v int64) Condition {
	if v == math.MinInt64 {
		return never(r)
	}
	return Condition{r, 1 << 63, uint64(v) - 1 - 1<<63}
}

// AtLeast is the condition that the result, as an integer with a sign, is v or more.
func AtLeast(r Result, v int64) Condition { return Condition{r, uint64(v), math.MaxInt64 - uint64(v)} }

// Negative is the condition that the result is less than 0.
func Negative(r Result) Condition { return Condition{r, 1 << 63, math.MaxInt64} }

// Nil is the condition that the result is a null pointer.
func Nil(r Result) Condition { return Condition{r, 0, 0} }

// StopIf records that the list stops here if the condition holds. [List.Run] then returns a
// [StopError], and no later call of the list is made.
func (l *List) StopIf(c Condition) {
	if l.state != idle {
		panic(refusals[l.state])
	}
	if c.result.gen != l.gen {
		panic(wrongCondition)
	}
	l.words = append(l.words, C.CALLS_STOP, uint64(c.result.at), c.low, c.span)
}

var wrongCondition = misuse("List", "the result of the condition is not of an earlier call of this recording, or it is a double: conditions are for integers and pointers")

// check panics if a condition cannot be recorded. A method that calls it is not inlined.
func (l *List) check(c Condition) {
	l.mustBeIdle("recording")
	if c.result.gen != l.gen {
		panic(wrongCondition)
	}
}

// A skip waits for the call on which it ends.
type skip struct {
	at int // the operation
	n  int // calls
}

const skipWords = 5

// SkipIf records that the next n calls are not made if the condition holds, with what belongs
// to them: conditions and [List.Errno] that are recorded after each, [List.ClearErrno] before.
// The result of a call that was skipped is what it was before: see [Result]. What a repetition
// keeps of a row is not skipped, so that of a skipped call is the result of a row before. Run
// panics if fewer than n calls are recorded after SkipIf, and so do the methods of [Repeat] if
// a part of them is.
func (l *List) SkipIf(c Condition, n int) {
	if n < 1 {
		panicMisuse("List.SkipIf", "a skip of %d calls; the least is 1", n)
	}
	l.check(c)
	at := l.skip(c)
	l.skips = append(l.skips, skip{at, n})
	l.plain = false
}

// skip records an operation that skips to an index which is not known yet.
func (l *List) skip(c Condition) (at int) {
	at = len(l.words)
	l.words = append(l.words, C.CALLS_SKIP, uint64(c.result.at), c.low, c.span, 0)
	return at
}

// land has a skip go on at an index.
func (l *List) land(at, target int) { l.words[at+4] = uint64(target) }

// endSkips ends the skips, before something which no skip goes beyond.
func (l *List) endSkips(what string) {
	for _, s := range l.skips {
		at, left := s.at+skipWords, s.n
		for at < len(l.words) {
			words, isCall := l.opWords(at)
			if left == 0 && (isCall || l.words[at] == C.CALLS_CLEAR_ERRNO) {
				break
			}
			if isCall {
				left--
			}
			at += words
		}
		if left > 0 {
			panicMisuse("List.SkipIf", "%d of the calls to skip were not recorded before %s", left, what)
		}
		l.land(s.at, at)
	}
	l.skips = l.skips[:0]
}

// A StopError is what [List.Run] returns if a condition has stopped the list.
type StopError struct {
	Call     Result // the result of the condition: == says which call it was
	Value    int64  // what the call has returned
	Function string // the name of the C function
}

// Error gives the function and the result.
func (e *StopError) Error() string {
	return fmt.Sprintf("cheap: calls.List.Run: %s returned %d, and the list was to stop at that", e.Function, e.Value)
}

// stopped makes the error of the stop operation at an index.
func (l *List) stopped(at int) error {
	result := l.words[at+1]
	return &StopError{Result{l, uint32(result), l.gen}, int64(l.words[result]), l.function(result)}
}
