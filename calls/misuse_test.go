//go:build cgo

package calls_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// TestMisuse records and reads lists wrongly. No call is made.
func TestMisuse(t *testing.T) {
	c, m := newCalls(), newMachine(t)
	other := newCalls()
	r := c.Mul(m, 1, 2)
	x := c.Mix(1, 2, 3, 4, 5, 6, 7, 8)
	foreign := other.Add(1, 2)
	mustPanic(t, "did not run", func() { r.Int() })
	mustPanic(t, "not in this recording", func() { c.AddArgs(foreign.Arg(), calls.Int(1)) })
	mustPanic(t, "not in this recording", func() { c.MulArgs(foreign.Arg(), calls.Int(1), calls.Int(1)) })
	mustPanic(t, "not in this recording", func() { c.CharArgs(foreign.Arg()) })
	mustPanic(t, "not in this recording", func() {
		c.MixArgs(foreign.Arg(), calls.Int(2), calls.Int(3), calls.Int(4), calls.Float(5), calls.Float(6), calls.Float(7), calls.Float(8))
	})
	mustPanic(t, "not of an earlier call", func() { c.List.StopIf(calls.Negative(foreign)) })
	mustPanic(t, "not of an earlier call", func() { c.List.SkipIf(calls.Negative(foreign), 1) })
	mustPanic(t, "it is a double", func() { c.AddArgs(x.Arg(), calls.Int(1)) })
	mustPanic(t, "it is a double", func() { c.AddArgs(calls.Float(1), calls.Int(1)) })
	mustPanic(t, "Float for doubles", func() { c.FloatArgs(calls.Int(1)) })
	mustPanic(t, "is a double", func() { c.List.StopIf(calls.Negative(x)) })
	mustPanic(t, "is a double", func() { x.Load(0) })
	mustPanic(t, "skip of 0 calls", func() { c.List.SkipIf(calls.Negative(r), 0) })
	mustPanic(t, "no Option", func() { calls.New(7) })
	mustPanic(t, "negative", func() { c.List.Alloc(-1) })
	mustPanic(t, "of no call", func() { calls.Result{}.Int() })

	c.List.SkipIf(calls.Equal(r, 1000), 2)
	c.Note(m, 1)
	mustPanic(t, "1 of the calls to skip", func() { c.List.Run(context.Background()) })
	c.Note(m, 1)
	if _, n := ctest.State(m); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	mustRun(t, c.List)
	if _, n := ctest.State(m); n != 3 {
		t.Errorf("%d calls were made, want 3", n)
	}
	mustPanic(t, "no double", func() { r.Float() })
	mustPanic(t, "use Float", func() { x.Int() })
	c.List.Reset()
	mustPanic(t, "reset", func() { r.Int() })
	mustPanic(t, "not in this recording", func() { c.AddArgs(r.Arg(), calls.Int(1)) })
	mustRun(t, c.List) // nothing

	l := calls.Get()
	pooled := ctest.Calls{List: l}
	p := pooled.Add(1, 2)
	mustRun(t, l)
	l.Put()
	mustPanic(t, "given back", func() { p.Int() })
	mustPanic(t, "given back by Put", func() { pooled.Add(1, 2) })
	mustPanic(t, "given back by Put", func() { l.Run(context.Background()) })
	mustPanic(t, "given back by Put", func() { l.Reset() })
	mustPanic(t, "given back by Put", func() { l.Put() })
	mustPanic(t, "given back by Put", func() { l.String("") })
	calls.Get() // it may be the same
}

// TestNoMemory asks for more memory than there is. No call is made, until the list is reset.
func TestNoMemory(t *testing.T) {
	c, m := newCalls(), newMachine(t)
	c.Note(m, 1)
	if p := c.List.Alloc(1 << 56); p != nil {
		t.Fatal("there is so much memory")
	}
	for range 2 {
		if err := c.List.Run(context.Background()); !errors.Is(err, cheap.ErrNoMemory) {
			t.Errorf("Run returned %v", err)
		}
	}
	if _, n := ctest.State(m); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	c.List.Reset()
	loop := c.List.Repeat(math.MaxInt)
	loop.While(calls.Equal(c.Add(1, 1), 0))
	column := loop.Ints(c.Add(1, 2))
	loop.End()
	if err := c.List.Run(context.Background()); !errors.Is(err, cheap.ErrNoMemory) {
		t.Errorf("Run returned %v", err)
	}
	mustPanic(t, "did not run", func() { column.Values() })
	c.List.Reset()
	c.Note(m, 1)
	mustRun(t, c.List)
}

// TestZeroList uses a list that no constructor made.
func TestZeroList(t *testing.T) {
	c := ctest.Calls{List: new(calls.List)}
	for _, f := range []func(){
		func() { c.Add(1, 2) },
		func() { c.AddArgs(calls.Int(1), calls.Int(2)) },
		func() { c.List.String("abc") },
		func() { c.List.Pin(nil) },
		func() { c.List.Repeat(1) },
		func() { c.List.StopIf(calls.Condition{}) },
		func() { c.List.SkipIf(calls.Condition{}, 1) },
		func() { c.List.Errno() },
		func() { c.List.Run(context.Background()) },
		func() { c.List.Reset() },
		func() { c.List.Rewind() },
		func() { c.List.Put() },
	} {
		mustPanic(t, "call New or Get", f)
	}
}
