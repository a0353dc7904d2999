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
// made; when the arrays of a [Repeat] are full; when a condition stops the list, with a
// [StopError]; or when ctx is done, with its error. C is not interrupted: Run looks at ctx
// between two calls.
//
// The next Run makes the calls again, from the first one on. After one that ended because
// arrays were full, or because ctx was done, it goes on where that one ended; [List.Rewind]
// has it begin again. A list can be run again and again.
//
// Run panics with a *cheap.MisuseError, before any call was made, if the recording is not
// complete: a repetition without an end, a skip of calls that were not recorded. A panic of a
// Go function that C has called reaches the caller of Run; the next Run begins with the first
// call.
//
// If ctx can never be done, Run allocates no Go memory.
func (l *List) Run(ctx context.Context) error {
	if ctx.Done() != nil {
		return l.runUntil(ctx)
	}
	if l.plain && l.state == idle && l.n > header {
		l.call(header)
		if *l.word(C.CHEAP_CALLS_REASON) == C.CHEAP_CALLS_END {
			return nil
		}
		return l.again()
	}
	return l.run()
}

// runUntil is Run with a ctx that may be done.
func (l *List) runUntil(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.state != idle || l.n <= header {
		return l.run()
	}
	flag, set := (*uint64)(l.base), make(chan struct{})
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
	if err := l.run(); err != errCancelled {
		return err
	}
	return ctx.Err()
}

// errCancelled is what run returns when the flag was set.
var errCancelled = errors.New("cancelled")

// Rewind has the next Run begin with the first call.
func (l *List) Rewind() {
	l.mustBeIdle("Rewind")
	l.from = 0
}

// run is Run until the flag is set.
func (l *List) run() error {
	if err := l.finish(); err != nil || l.n <= header {
		return err
	}
	l.call(l.startFrom())
	return l.again()
}

// again goes on with a run that has to, and returns its error.
func (l *List) again() error {
	for {
		reason := *l.word(C.CHEAP_CALLS_REASON)
		if reason == C.CHEAP_CALLS_END {
			return nil
		}
		if again, err := l.ended(reason); !again {
			return err
		}
		l.call(l.startFrom())
	}
}

// ended looks at a run that did not come to the end of the list. It says whether to go on at
// once.
func (l *List) ended(reason uint64) (again bool, err error) {
	l.plain = false
	at := int(l.words[C.CHEAP_CALLS_AT])
	switch reason {
	case C.CHEAP_CALLS_STOP:
		return false, l.stopped(at)
	case C.CHEAP_CALLS_BYTES:
		l.from = l.resumeAt(at)
		return l.growBuffer(at)
	case C.CHEAP_CALLS_CANCEL:
		l.from = l.resumeAt(at)
		return false, errCancelled
	}
	l.from = at
	return false, nil
}

// call crosses to C.
func (l *List) call(from int) {
	*(*uint64)(unsafe.Add(l.base, l.n*8)) = 0 // there is slack
	words, start := (*C.uint64_t)(l.base), C.uint64_t(from)
	room := l.room
	l.room, l.state, l.from = 0, running, 0
	if l.quiet {
		C.cheap_calls_run_quiet(words, start)
		l.called(room)
		return
	}
	defer l.called(room) // also if a callback panics
	C.cheap_calls_run(words, start)
}

func (l *List) called(room int) { l.room, l.state, l.ran = room, idle, true }

// finish completes a recording, or says why it cannot run.
func (l *List) finish() error {
	l.mustBeIdle("Run")
	if l.err != nil {
		return l.err
	}
	if l.open != nil {
		panicMisuse("List.Run", "a repetition has no end; call End")
	}
	l.endSkips("Run")
	if l.n <= header {
		l.ran = true
	}
	return nil
}

// startFrom returns where a run begins, and has the repetitions begin without rows.
func (l *List) startFrom() int {
	for _, p := range l.loops[:l.inUse] {
		*l.word(p.begin + 1) = 0
		if l.from == 0 {
			*l.word(p.begin + 3) = 0
		}
	}
	if l.from == 0 {
		return header
	}
	return l.from
}
