//go:build cgo

package calls

/*
#cgo noescape cheap_calls_run_quiet
#cgo nocallback cheap_calls_run_quiet

#include "ops.h"
*/
import "C"

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"
)

// Run makes the recorded calls, in their order, in one cgo call. It returns when all were
// made; when the arrays of a [Repeat] are full, or a text does not fit; when a condition stops
// the list, with a [StopError]; or when ctx is done, with its error. C is not interrupted: Run
// looks at ctx between two calls. If there was no memory for what the list has, Run makes no
// call and returns an error that wraps cheap.ErrNoMemory.
//
// The next Run makes the calls again, from the first one on. After one that ended because there
// was no room for a row, or because ctx was done, it goes on where that one ended; [List.Rewind]
// has it begin again. A list can be run again and again.
//
// Run panics with a *cheap.MisuseError, before any call was made, if the recording is not
// complete: a repetition without an end, a skip of calls that were not recorded. A panic of a
// Go function that C has called reaches the caller of Run; the next Run begins with the first
// call.
//
// If ctx can never be done, Run allocates no Go memory but a StopError.
func (l *List) Run(ctx context.Context) error {
	if ctx.Done() != nil {
		return l.runUntil(ctx)
	}
	if !l.plain || l.state != idle || uint(len(l.words)-first-1) >= mostWords {
		return l.make()
	}
	l.call(first)
	if l.run.reason != C.CALLS_ENDED {
		return l.again()
	}
	return nil
}

// runUntil is Run with a ctx that may be done.
func (l *List) runUntil(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.state != idle || len(l.words) == first {
		return l.make()
	}
	flag, set := (*uint64)(&l.run.flag), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		atomic.StoreUint64(flag, 1)
		close(set)
	})
	defer func() { // also if a callback panics
		if !stop() {
			<-set
			atomic.StoreUint64(flag, 0)
		}
	}()
	if err := l.make(); err != errCancelled {
		return err
	}
	return ctx.Err()
}

// errCancelled is what make returns when the flag was set.
var errCancelled = errors.New("cancelled")

// Rewind has the next Run begin with the first call.
func (l *List) Rewind() {
	l.mustBeIdle("Rewind")
	l.from = 0
}

// make is Run until the flag is set.
func (l *List) make() error {
	if err := l.finish(); err != nil || len(l.words) == first {
		return err
	}
	l.call(l.startFrom())
	return l.again()
}

// again goes on with a run that has to, and returns its error.
func (l *List) again() error {
	for {
		if l.run.reason == C.CALLS_ENDED {
			return nil
		}
		if again, err := l.ended(); !again {
			return err
		}
		l.call(l.from) // the rows of other repetitions stay
	}
}

// ended looks at a run that did not come to the end of the list. It says whether to go on at
// once.
func (l *List) ended() (again bool, err error) {
	l.plain = false
	at := int(l.run.at)
	switch l.run.reason {
	case C.CALLS_STOPPED:
		return false, l.stopped(at)
	case C.CALLS_FULL:
		l.from = l.resumeAt(at)
		return l.growBuffer(at)
	case C.CALLS_CANCELLED:
		l.from = l.resumeAt(at)
		return false, errCancelled
	}
	l.from = at
	return false, nil
}

// call crosses to C.
func (l *List) call(from int) {
	l.words = append(l.words, C.CALLS_END)
	l.words = l.words[:len(l.words)-1]
	words := (*C.uint64_t)(unsafe.SliceData(l.words))
	l.state, l.ran, l.from = running, 0, 0
	if l.quiet {
		C.cheap_calls_run_quiet(&l.run, words, C.uint64_t(from))
		l.called()
		return
	}
	defer l.called() // also if a callback panics
	C.cheap_calls_run(&l.run, words, C.uint64_t(from))
}

func (l *List) called() { l.state, l.ran = idle, l.gen }

// finish completes a recording, or says why it cannot run.
func (l *List) finish() error {
	l.mustBeIdle("Run")
	if l.err != nil {
		return l.err
	}
	if l.open != nil {
		panicMisuse("List.Run", "a repetition has no end; call End")
	}
	if len(l.words) > mostWords {
		panicMisuse("List.Run", "the list has %d words; the most are %d: run it before, or repeat a range of calls", len(l.words), mostWords)
	}
	l.endSkips("Run")
	if len(l.words) == first {
		l.ran = l.gen
	}
	return nil
}

// startFrom returns where a run begins, and has the repetitions begin without rows.
func (l *List) startFrom() int {
	for _, p := range l.loops[:l.inUse] {
		l.words[p.begin+1] = 0
		if l.from == 0 {
			l.words[p.begin+3] = 0
		}
	}
	if l.from == 0 {
		return first
	}
	return l.from
}
