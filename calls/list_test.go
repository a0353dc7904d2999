//go:build cgo

package calls_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

func newCalls() ctest.Calls { return ctest.Calls{List: calls.New()} }

// mustRun runs a list that must come to its end.
func mustRun(t testing.TB, l *calls.List) {
	t.Helper()
	testcall.Must(t, l.Run(context.Background()))
}

// mustPanic calls f, which must panic with a MisuseError that contains part.
func mustPanic(t *testing.T, part string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		v := recover()
		e, ok := v.(*cheap.MisuseError)
		if !ok {
			t.Fatalf("panic of %v, want a MisuseError with %q", v, part)
		}
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q does not contain %q", e, part)
		}
	}()
	f()
}

func newMachine(t testing.TB) ctest.Machine {
	m := ctest.NewMachine()
	t.Cleanup(func() { ctest.FreeMachine(m) })
	return m
}

// TestShapes calls functions with parameters and results of all types.
func TestShapes(t *testing.T) {
	c := newCalls()
	for _, x := range []struct {
		name string
		r    calls.Result
		want int64
	}{
		{"int", c.Add(-3, 1), -2},
		{"int overflow", c.Add(math.MinInt32, -1), math.MaxInt32},
		{"char", c.Char(0), -1},
		{"char wraps", c.Char(-128), 127},
		{"byte wraps", c.Byte(0), 255},
		{"short", c.Short(0), -1},
		{"unsigned short", c.Ushort(0), 65535},
		{"unsigned", c.Uint(0), math.MaxUint32},
		{"bool", c.Not(false), 1},
		{"bool of true", c.Not(true), 0},
		{"enum", c.Darker(0), -1},
	} {
		defer func() {
			if got := x.r.Int(); got != x.want {
				t.Errorf("%s: %d, want %d", x.name, got, x.want)
			}
		}()
	}
	mix, single := c.Mix(1, 2, 3, 4, 5, 6, 7, 8), c.Float(1.5)
	mixed := c.MixArgs(calls.Int(-1), calls.Int(2), calls.Int(3), calls.Int(4), mix.Arg(), calls.Float(6), calls.Float(7), calls.Float(8))
	mustRun(t, c.List)
	if got, want := mix.Float(), ctest.Mix(1, 2, 3, 4, 5, 6, 7, 8); got != want {
		t.Errorf("mix is %v, want %v", got, want)
	}
	if got, want := mixed.Float(), ctest.Mix(-1, 2, 3, 4, mix.Float(), 6, 7, 8); got != want {
		t.Errorf("mix with a reference is %v, want %v", got, want)
	}
	if got := single.Float(); got != 0.5 {
		t.Errorf("float is %v, want 0.5", got)
	}
}

// TestReferences makes a machine by a parameter that C writes to, uses it, and reads its
// fields, all in one run.
func TestReferences(t *testing.T) {
	c := newCalls()
	slot := c.List.Alloc(8)
	status := c.New(slot)
	c.List.StopIf(calls.NotEqual(status, 0))
	self := c.SelfArgs(calls.LoadAt(slot))
	a := c.MulArgs(self.Arg(), calls.Int(5), calls.Int(7))
	b := c.MulArgs(self.Plus(0), a.Arg(), a.Arg())
	c.NoteArgs(self.Arg(), calls.Int(9))
	calls8 := c.AddArgs(self.Load32(8), calls.Int(0)) // the field calls
	state := c.ByteArgs(self.Load(0))                 // the field state
	again := c.AddArgs(calls.Load32At(slot), calls.Int(0))
	mustRun(t, c.List)

	machine2 := newMachine(t)
	ctest.Self(machine2)
	x := ctest.Mul(machine2, 5, 7)
	y := ctest.Mul(machine2, x, x)
	ctest.Note(machine2, 9)
	if a.Int() != x || b.Int() != y {
		t.Errorf("results are %d and %d, want %d and %d", a.Int(), b.Int(), x, y)
	}
	if got := calls8.Int(); got != 4 {
		t.Errorf("the machine had %d calls, want 4", got)
	}
	if got, want := again.Int(), int64(*(*int32)(slot)); got != want {
		t.Errorf("the low half of the slot is %d, want %d", got, want)
	}
	got, _ := ctest.State((ctest.Machine)(self.Pointer()))
	want, _ := ctest.State(machine2)
	if got != want || state.Int() != int64(byte(want-1)) {
		t.Errorf("the state is %#x, and %d less 1, want %#x", got, state.Int(), want)
	}
	made := ctest.Machine(*(*unsafe.Pointer)(slot))
	c.List.Reset()
	c.Free(made)
	mustRun(t, c.List)
}

// TestConditions stops lists in all ways, and skips calls.
func TestConditions(t *testing.T) {
	m := newMachine(t)
	for _, x := range []struct {
		name  string
		cond  func(calls.Result) calls.Condition
		holds func(v int64) bool
	}{
		{"less than the least", func(r calls.Result) calls.Condition { return calls.Less(r, math.MinInt64) }, func(int64) bool { return false }},
		{"at least the least", func(r calls.Result) calls.Condition { return calls.AtLeast(r, math.MinInt64) }, func(int64) bool { return true }},
		{"at least the largest", func(r calls.Result) calls.Condition { return calls.AtLeast(r, math.MaxInt64) }, func(int64) bool { return false }},
		{"less than the largest", func(r calls.Result) calls.Condition { return calls.Less(r, math.MaxInt64) }, func(int64) bool { return true }},
		{"equal", func(r calls.Result) calls.Condition { return calls.Equal(r, 2) }, func(v int64) bool { return v == 2 }},
		{"not equal", func(r calls.Result) calls.Condition { return calls.NotEqual(r, 2) }, func(v int64) bool { return v != 2 }},
		{"less", func(r calls.Result) calls.Condition { return calls.Less(r, -1) }, func(v int64) bool { return v < -1 }},
		{"at least", func(r calls.Result) calls.Condition { return calls.AtLeast(r, 2) }, func(v int64) bool { return v >= 2 }},
		{"negative", calls.Negative, func(v int64) bool { return v < 0 }},
		{"nil", calls.Nil, func(v int64) bool { return v == 0 }},
	} {
		for v := int32(-3); v <= 3; v++ {
			c := newCalls()
			_, before := ctest.State(m)
			c.Note(m, 1)
			r := c.Add(v, 0)
			c.List.StopIf(x.cond(r))
			c.Note(m, 2)
			err := c.List.Run(context.Background())
			_, after := ctest.State(m)
			var stop *calls.StopError
			if stopped := errors.As(err, &stop); stopped != x.holds(int64(v)) || stopped && (stop.Call != r || stop.Value != int64(v)) {
				t.Errorf("%s, %d: Run returned %v", x.name, v, err)
			}
			if want := int64(2); after-before != want && !x.holds(int64(v)) || x.holds(int64(v)) && after-before != 1 {
				t.Errorf("%s, %d: %d calls", x.name, v, after-before)
			}

			// The condition skips two calls, with what belongs to the second.
			c.List.Reset()
			r = c.Add(v, 0)
			c.List.SkipIf(x.cond(r), 2)
			c.Note(m, 1)
			two := c.AddArgs(r.Arg(), calls.Int(100))
			c.List.StopIf(calls.Equal(two, 100+int64(v)))
			c.Note(m, 3)
			err = c.List.Run(context.Background())
			_, last := ctest.State(m)
			if holds := x.holds(int64(v)); (err == nil) != holds || last-after != 1 {
				t.Errorf("%s, %d: Run with a skip returned %v, after %d calls", x.name, v, err, last-after)
			}
		}
	}
}

// TestManyConditions has more conditions in a row than there is stack for, where C is compiled
// without optimization or with a sanitizer.
func TestManyConditions(t *testing.T) {
	c := newCalls()
	r := c.Add(1, 2)
	for range 1_000_000 {
		c.List.StopIf(calls.Negative(r))
	}
	last := c.Add(3, 4)
	mustRun(t, c.List)
	if last.Int() != 7 {
		t.Errorf("the last call returned %d", last.Int())
	}
}

// TestErrno reads the errno of each call.
func TestErrno(t *testing.T) {
	c := newCalls()
	c.List.ClearErrno()
	c.Fail(int32(syscall.ENOENT))
	a := c.List.Errno()
	c.Fail(0)
	b := c.List.Errno() // as the last failure left it
	c.List.ClearErrno()
	c.Fail(0)
	d := c.List.Errno()
	c.List.StopIf(calls.NotEqual(d, 0))
	mustRun(t, c.List)
	if syscall.Errno(a.Int()) != syscall.ENOENT || syscall.Errno(b.Int()) != syscall.ENOENT || d.Int() != 0 {
		t.Errorf("errno is %d, %d and %d", a.Int(), b.Int(), d.Int())
	}
}

// TestMemory passes strings and bytes, copied and pinned.
func TestMemory(t *testing.T) {
	c := newCalls()
	for round := range 3 {
		short, long := "héllo", strings.Repeat("x", 10*calls.CopyMax)
		n, m := c.Length(c.List.String(short)), c.Length(c.List.String(long))
		var sums []calls.Result
		var want []uint64
		for _, size := range []int{0, 1, calls.CopyMax, calls.CopyMax + 1, 1 << 20} {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(i * (round + 1))
			}
			sum := uint64(0)
			for _, x := range b {
				sum = sum*31 + uint64(x)
			}
			want = append(want, sum, sum)
			sums = append(sums, c.Sum(c.List.Bytes(b), uint64(size)), c.Sum(c.List.Text(string(b)), uint64(size)))
		}
		written := make([]byte, 100)
		c.Fill(c.List.Pin(unsafe.Pointer(&written[0])), 100, 7)
		zero := c.List.Alloc(100)
		nothing := c.Sum(zero, 100)
		mustRun(t, c.List)
		if n.Uint() != uint64(len(short)) || m.Uint() != uint64(len(long)) || nothing.Int() != 0 {
			t.Errorf("lengths are %d and %d, the sum of zeros %d", n.Uint(), m.Uint(), nothing.Int())
		}
		for i := range sums {
			if sums[i].Uint() != want[i] {
				t.Errorf("sum %d is %d, want %d", i, sums[i].Uint(), want[i])
			}
		}
		if written[0] != 7 || written[99] != 7 {
			t.Error("C did not write to pinned memory")
		}
		c.List.Reset()
	}
}

// TestRunAgain runs a recording several times, and reads results in between.
func TestRunAgain(t *testing.T) {
	c, m := newCalls(), newMachine(t)
	other := newMachine(t)
	r := c.Mul(m, 3, 4)
	for range 5 {
		mustRun(t, c.List)
		if got, want := r.Int(), ctest.Mul(other, 3, 4); got != want {
			t.Fatalf("the result is %d, want %d", got, want)
		}
	}
	c.Note(m, 8) // more can be recorded
	ctest.Mul(other, 3, 4)
	ctest.Note(other, 8)
	mustRun(t, c.List)
	got, _ := ctest.State(m)
	if want, _ := ctest.State(other); got != want {
		t.Errorf("the state is %#x, want %#x", got, want)
	}
}

// TestLong has a list whose memory grows, also where references look for room.
func TestLong(t *testing.T) {
	c := newCalls()
	if c.List.Len() != 0 {
		t.Errorf("a new list has %d words", c.List.Len())
	}
	r := c.Add(0, 1)
	for i := range 20_000 {
		if i%3 == 0 {
			r = c.AddArgs(r.Arg(), calls.Int(1))
		} else {
			r = c.AddArgs(calls.Int(1), r.Arg())
		}
		c.List.StopIf(calls.NotEqual(r, int64(i+2)))
	}
	mustRun(t, c.List)
	if r.Int() != 20_001 {
		t.Errorf("the last result is %d", r.Int())
	}
	if c.List.Len() == 0 {
		t.Error("the list has no words")
	}
}

// TestNoAllocation records and runs a list that is used again.
func TestNoAllocation(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	c, m := newCalls(), newMachine(t)
	text := []byte("some bytes")
	ctx := context.Background()
	round := func() {
		c.List.Reset()
		r := c.Add(1, 2)
		for range 100 {
			c.Mul(m, 3, 4)
			c.List.StopIf(calls.Negative(c.AddArgs(r.Arg(), calls.Int(1))))
			c.Sum(c.List.Bytes(text), uint64(len(text)))
			c.Length(c.List.String("text"))
		}
		c.List.SkipIf(calls.Equal(r, 0), 1)
		c.Mix(1, 2, 3, 4, 5, 6, 7, 8)
		testcall.Want(t, c.List.Run(ctx))
		pooled := calls.Get()
		ctest.Calls{List: pooled}.Add(1, 2)
		testcall.Want(t, pooled.Run(ctx))
		pooled.Put()
	}
	round()
	if n := testing.AllocsPerRun(100, round); n > 0.5 && !checkedBuild {
		t.Errorf("%v Go allocations", n)
	}
}
