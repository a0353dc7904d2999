//go:build cgo

package calls_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// A model makes the calls of a random list one by one, with plain cgo calls. It records
// closures while the list records calls.
type model struct {
	steps []step
	ran   []int64 // the last results
	reals []float64
}

// A step is a call, a condition or a skip of the model.
type step struct {
	call func(m *model) (int64, float64) // nil for a condition
	stop func(m *model) bool
	skip func(m *model) bool
	n    int // calls to skip
}

// run makes the calls until a condition stops them, and returns the number of the call at
// which one did, or -1.
func (m *model) run() int {
	for i := 0; i < len(m.steps); i++ {
		s := m.steps[i]
		switch {
		case s.call != nil:
			m.ran[i], m.reals[i] = s.call(m)
		case s.stop != nil:
			if s.stop(m) {
				return i
			}
		case s.skip(m):
			left := s.n
			for i+1 < len(m.steps) {
				if m.steps[i+1].call != nil {
					if left == 0 {
						break
					}
					left--
				}
				i++
			}
		}
	}
	return -1
}

// FuzzModel records the same calls in a list and in a model, and compares all results, the
// state of a machine that mixes all arguments of all calls, and where the run stopped.
func FuzzModel(f *testing.F) {
	f.Add([]byte("a list of calls, some of them with references"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21})
	f.Add([]byte{7, 7, 7, 0, 0, 0, 6, 1, 2, 0, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 200, 100, 250, 13, 14, 90, 91})
	for seed := range byte(40) {
		data := make([]byte, 40+8*int(seed))
		x := uint32(seed) + 1
		for i := range data {
			x = x*1664525 + 1013904223
			data[i] = byte(x >> 24)
		}
		f.Add(data)
	}
	l := calls.New()
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, ctest.Calls{List: l}, data) })
}

func compare(t *testing.T, c ctest.Calls, data []byte) {
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	ours, theirs := ctest.NewMachine(), ctest.NewMachine()
	defer ctest.FreeMachine(ours)
	defer ctest.FreeMachine(theirs)
	c.List.Reset()
	self := c.Self(ours)
	m := &model{steps: []step{{call: func(*model) (int64, float64) { ctest.Self(theirs); return 0, 0 }}}}
	results := map[int]calls.Result{} // by step
	var ints, reals []int             // steps
	pick := func(list []int) int { return list[int(next())%len(list)] }
	pending := 0 // calls that a skip still waits for
	for len(data) > 0 && len(m.steps) < 300 {
		var s step
		at := len(m.steps)
		isReal, isCall := false, true
		switch kind := next() % 11; {
		case kind == 0 || len(ints) == 0:
			x, y := int64(int8(next())), int64(next())<<40
			results[at] = c.Mul(ours, x, y)
			s.call = func(*model) (int64, float64) { return ctest.Mul(theirs, x, y), 0 }
		case kind == 1:
			i, x := pick(ints), int64(int8(next()))
			results[at] = c.MulArgs(calls.Pointer(ctest.Pointer(ours)), results[i].Arg(), calls.Int(x))
			s.call = func(m *model) (int64, float64) { return ctest.Mul(theirs, m.ran[i], x), 0 }
		case kind == 2:
			i, j := pick(ints), pick(ints)
			d := int(int8(next()))
			results[at] = c.MulArgs(calls.Pointer(ctest.Pointer(ours)), results[i].Plus(d), results[j].Arg())
			s.call = func(m *model) (int64, float64) { return ctest.Mul(theirs, m.ran[i]+int64(d), m.ran[j]), 0 }
		case kind == 3:
			x, y := float64(int8(next()))/16, int32(int8(next()))
			results[at] = c.Scale(ours, x, y)
			s.call = func(*model) (int64, float64) { return 0, ctest.Scale(theirs, x, y) }
			isReal = true
		case kind == 4 && len(reals) > 0:
			i, j := pick(reals), pick(ints)
			results[at] = c.ScaleArgs(calls.Pointer(ctest.Pointer(ours)), results[i].Arg(), results[j].Arg())
			s.call = func(m *model) (int64, float64) { return 0, ctest.Scale(theirs, m.reals[i], int32(m.ran[j])) }
			isReal = true
		case kind == 5:
			i, v := pick(ints), int64(int8(next()))
			switch v { // the ends of the range
			case -1:
				v = math.MinInt64
			case -2:
				v = math.MaxInt64
			}
			which := next() % 4
			cond, holds := condition(results[i], which, v)
			if next()%4 == 0 {
				c.List.StopIf(cond)
				s.stop = func(m *model) bool { return holds(m.ran[i]) }
			} else {
				s.n = int(next()%3) + 1
				pending = max(pending, s.n) // skips can lie within each other
				c.List.SkipIf(cond, s.n)
				s.skip = func(m *model) bool { return holds(m.ran[i]) }
			}
			isCall = false
		case kind == 6:
			i := pick(ints)
			results[at] = c.AddArgs(results[i].Arg(), calls.Int(1))
			s.call = func(m *model) (int64, float64) { return int64(ctest.Add(int32(m.ran[i]), 1)), 0 }
		case kind == 7:
			i := pick(ints)
			args := [8]calls.Arg{calls.Int(1), results[i].Arg(), calls.Int(3), results[i].Plus(1), calls.Float(1), calls.Float(2), calls.Float(3), calls.Float(4)}
			results[at] = c.MixArgs(args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7])
			s.call = func(m *model) (int64, float64) {
				return 0, ctest.Mix(1, int32(m.ran[i]), 3, int32(m.ran[i]+1), 1, 2, 3, 4)
			}
			isReal = true
		case kind == 8: // how many calls the machine had
			from := self.Load32(8)
			if next()%2 == 0 {
				from = calls.Load32At(unsafe.Add(ctest.Pointer(ours), 8))
			}
			results[at] = c.AddArgs(from, calls.Int(1))
			s.call = func(*model) (int64, float64) {
				_, n := ctest.State(theirs)
				return n + 1, 0
			}
		case kind == 9:
			e := int32(next()) % 3
			c.List.ClearErrno()
			c.Fail(e)
			results[at] = c.List.Errno()
			s.call = func(*model) (int64, float64) { return int64(e), 0 }
		default:
			x := uint32(next()) << 24
			c.Note(ours, x)
			s.call = func(*model) (int64, float64) { ctest.Note(theirs, x); return 0, 0 }
		}
		m.steps = append(m.steps, s)
		if _, has := results[at]; has && isReal {
			reals = append(reals, at)
		} else if has {
			ints = append(ints, at)
		}
		if isCall && pending > 0 {
			pending--
		}
	}
	for ; pending > 0; pending-- {
		c.Note(ours, 1)
		m.steps = append(m.steps, step{call: func(*model) (int64, float64) { ctest.Note(theirs, 1); return 0, 0 }})
	}
	m.ran, m.reals = make([]int64, len(m.steps)), make([]float64, len(m.steps))
	for range 2 { // a recording can run again
		stopped := m.run()
		err := c.List.Run(context.Background())
		var stop *calls.StopError
		if errors.As(err, &stop) != (stopped >= 0) {
			t.Fatalf("Run returned %v, and the model stopped at %d", err, stopped)
		}
		for i, r := range results {
			if m.steps[i].call == nil {
				continue
			}
			if slices.Contains(reals, i) {
				if r.Float() != m.reals[i] {
					t.Fatalf("call %d returned %v, want %v", i, r.Float(), m.reals[i])
				}
			} else if r.Int() != m.ran[i] {
				t.Fatalf("call %d returned %d, want %d", i, r.Int(), m.ran[i])
			}
		}
		got, n := ctest.State(ours)
		want, wantN := ctest.State(theirs)
		if got != want || n != wantN {
			t.Fatalf("the state is %#x after %d calls, want %#x after %d", got, n, want, wantN)
		}
	}
}

// condition returns a condition, and what it says of a value.
func condition(r calls.Result, which byte, v int64) (calls.Condition, func(int64) bool) {
	switch which {
	case 0:
		return calls.Equal(r, v), func(x int64) bool { return x == v }
	case 1:
		return calls.NotEqual(r, v), func(x int64) bool { return x != v }
	case 2:
		return calls.Less(r, v), func(x int64) bool { return x < v }
	}
	return calls.AtLeast(r, v), func(x int64) bool { return x >= v }
}
