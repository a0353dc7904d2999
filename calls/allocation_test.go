//go:build cgo

package calls_test

import (
	"context"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

// TestNoAllocationOfParts records and runs each part of a list that is used again.
func TestNoAllocationOfParts(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	c, m := newCalls(), newMachine(t)
	large := make([]byte, 2*calls.CopyMax)
	cursor := ctest.NewCursor(1 << 40)
	t.Cleanup(func() { ctest.FreeCursor(cursor) })
	read := func(size int) {
		loop := c.List.Repeat(10)
		loop.While(calls.Equal(c.Next(cursor), 100))
		ints := loop.Ints(c.Integer(cursor))
		text := c.Text(cursor)
		texts := loop.Bytes(text, c.Bytes(cursor), size)
		loop.End()
		mustRun(t, c.List)
		if len(ints.Values()) == 0 || len(texts.At(0)) > 4000 {
			t.Error("no rows")
		}
	}
	for name, part := range map[string]func(){
		"rows":                  func() { read(1000) },
		"a text that is larger": func() { read(1) },
		"a pin":                 func() { c.Sum(c.List.Pin(unsafe.Pointer(&large[0])), 10) },
		"five pins": func() {
			for range 5 {
				c.Sum(c.List.Bytes(large), 10)
			}
		},
		"a skip": func() { c.List.SkipIf(calls.Equal(c.Add(1, 2), 3), 1); c.Add(1, 2) },
		"loads":  func() { s := c.Self(m); c.AddArgs(s.Load32(8), s.Load(8)) },
		"errno":  func() { c.List.ClearErrno(); c.Fail(1); c.List.Errno() },
		"a long list of arguments": func() {
			r := c.Add(1, 2)
			d := calls.Float(1)
			c.MixArgs(r.Arg(), r.Arg(), r.Plus(5), r.Plus(1<<30), d, d, d, d)
		},
	} {
		whole := func() {
			c.List.Reset()
			part()
			testcall.Want(t, c.List.Run(context.Background()))
		}
		whole()
		if n := testing.AllocsPerRun(100, whole); n > 0.5 && !checkedBuild {
			t.Errorf("%s: %v Go allocations", name, n)
		}
	}
}
