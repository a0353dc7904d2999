//go:build cgo

package calls_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestCallback calls Go from a list, moves the stack there, and collects.
func TestCallback(t *testing.T) {
	for range 20 {
		testcall.Aside(func() { // with a small stack
			c := newCalls()
			var results []calls.Result
			data := make([]byte, 3*calls.CopyMax)
			for i := range data {
				data[i] = byte(i)
			}
			sum := c.Sum(c.List.Bytes(data), uint64(len(data)))
			for i := range int64(10) {
				results = append(results, c.Callback(i))
			}
			after := c.Sum(c.List.Bytes(data), uint64(len(data)))
			last := c.CallbackArgs(results[9].Arg())
			ctest.OnCallback = func(x int64) int64 {
				if x == 5 {
					runtime.GC()
				}
				testcall.Deep(64*int(x%10)+10, func() {})
				return x + 100
			}
			mustRun(t, c.List)
			for i, r := range results {
				if r.Int() != int64(i)+100 {
					t.Errorf("callback %d returned %d", i, r.Int())
				}
			}
			if last.Int() != 209 || sum.Uint() != after.Uint() {
				t.Errorf("the last returned %d; the sums are %d and %d", last.Int(), sum.Uint(), after.Uint())
			}
		})
	}
}

// TestCallbackUsesList records, runs, reads and resets a list in its own callback.
func TestCallbackUsesList(t *testing.T) {
	c := newCalls()
	r := c.Callback(1)
	ctest.OnCallback = func(int64) int64 {
		mustPanic(t, "the list runs", func() { c.Add(1, 2) })
		mustPanic(t, "the list runs", func() { c.AddArgs(r.Arg(), calls.Int(2)) })
		mustPanic(t, "the list runs", func() { c.List.StopIf(calls.Negative(r)) })
		mustPanic(t, "the list runs", func() { c.List.SkipIf(calls.Negative(r), 1) })
		mustPanic(t, "the list runs", func() { c.List.Errno() })
		mustPanic(t, "the list runs", func() { c.List.Repeat(1) })
		mustPanic(t, "the list runs", func() { c.List.String("") })
		mustPanic(t, "the list runs", func() { c.List.Reset() })
		mustPanic(t, "the list runs", func() { c.List.Rewind() })
		mustPanic(t, "the list runs", func() { c.List.Put() })
		mustPanic(t, "the list runs", func() { c.List.Run(context.Background()) })
		ctx, cancel := context.WithCancel(context.Background())
		mustPanic(t, "the list runs", func() { c.List.Run(ctx) })
		cancel()
		mustPanic(t, "the list runs", func() { r.Int() })

		other := newCalls() // another list is fine
		sum := other.Add(1, 2)
		mustRun(t, other.List)
		return sum.Int()
	}
	mustRun(t, c.List)
	if r.Int() != 3 {
		t.Errorf("the callback returned %d", r.Int())
	}
}

// TestCallbackPanics has a panic go through C to the caller of Run.
func TestCallbackPanics(t *testing.T) {
	c, m := newCalls(), newMachine(t)
	c.Note(m, 1)
	c.Callback(1)
	c.Note(m, 2)
	want := errors.New("told to")
	fail := true
	ctest.OnCallback = func(int64) int64 {
		if fail {
			panic(want)
		}
		return 0
	}
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("panic of %v", v)
				}
			}()
			c.List.Run(ctx)
		}()
	}
	fail = false
	mustRun(t, c.List)
	if _, n := ctest.State(m); n != 4 {
		t.Errorf("%d calls, want 4: one before each panic, and two", n)
	}
	c.List.Reset()
	r := c.Add(1, 1)
	mustRun(t, c.List)
	if r.Int() != 2 {
		t.Error("the list does not work after a panic")
	}
}

// TestNoCallback runs a list that promises to call no Go.
func TestNoCallback(t *testing.T) {
	c := ctest.Calls{List: calls.New(calls.NoCallback)}
	r := c.Add(2, 3)
	mustRun(t, c.List)
	if r.Int() != 5 {
		t.Errorf("the result is %d", r.Int())
	}
	mustPanic(t, "not from Get", func() { c.List.Put() })
}
