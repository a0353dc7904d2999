//go:build cgo

package calls_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// TestCancelled ends a repetition that would go on for long by its context, from within.
func TestCancelled(t *testing.T) {
	c := newCalls()
	ctx, cancel := context.WithCancel(context.Background())
	loop := c.List.Repeat(1 << 40)
	answer := c.Callback(5)
	loop.While(calls.Equal(answer, 0))
	for range 3 {
		c.Add(1, 2) // the calls of one function are made in a row
	}
	loop.End()
	last := c.Add(3, 4)
	var turns, end int64
	ctest.OnCallback = func(int64) int64 {
		if turns++; turns == 10 {
			cancel()
		}
		return end
	}
	if err := c.List.Run(ctx); err != context.Canceled {
		t.Fatalf("Run returned %v", err)
	}
	if turns < 10 || int64(loop.Rows()) < turns-1 || !loop.More() || last.Int() != 0 {
		t.Errorf("%d rows of %d turns, more: %t", loop.Rows(), turns, loop.More())
	}
	made := turns
	if err := c.List.Run(ctx); err != context.Canceled || turns != made {
		t.Errorf("Run of a cancelled context returned %v, after %d calls", err, turns-made)
	}
	end = 1
	mustRun(t, c.List) // goes on
	if turns > made+1 || loop.More() || last.Int() != 7 {
		t.Errorf("%d turns more, more: %t", turns-made, loop.More())
	}

	timed, stop := context.WithCancel(context.Background())
	defer stop()
	if err := c.List.Run(timed); err != nil { // it may be cancelled, and is not
		t.Error(err)
	}
}

// TestCancelledInARow ends a row of calls of one function.
func TestCancelledInARow(t *testing.T) {
	c := newCalls()
	ctx, cancel := context.WithCancel(context.Background())
	const most = 1000
	for range most {
		c.Callback(1)
	}
	turns := 0
	ctest.OnCallback = func(int64) int64 {
		if turns++; turns == 10 {
			cancelRun(c.List, cancel)
		}
		return 0
	}
	if err := c.List.Run(ctx); err != context.Canceled || turns != 10 {
		t.Fatalf("Run returned %v, after %d calls, want 10", err, turns)
	}
	c.List.Rewind()
	mustRun(t, c.List)
	if turns != 10+most {
		t.Errorf("%d calls after Rewind, want all", turns-10)
	}
}

// cancelRun cancels the context of the run of l that goes on, and waits until C is told.
func cancelRun(l *calls.List, cancel context.CancelFunc) {
	for cancel(); !l.Flagged(); {
		runtime.Gosched()
	}
}
