package own

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

// calls are callbacks for a test, whose default returns -1.
func newCalls(t testing.TB) *Callbacks[func(int) int] {
	return NewCallbacks(t.Name(), func(int) int { return -1 })
}

// call calls a callback as an exported function does.
func call(k *Callbacks[func(int) int], data unsafe.Pointer, n int) (result int) {
	k.Call(data, func(f func(int) int) { result = f(n) })
	return result
}

func plus(by int) func(int) int { return func(n int) int { return n + by } }

// mustAnswer fails if a call with 1 does not return want.
func mustAnswer(t testing.TB, what string, k *Callbacks[func(int) int], data unsafe.Pointer, want int) {
	t.Helper()
	if got := call(k, data, 1); got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func TestCallbackNumbers(t *testing.T) {
	k := newCalls(t)
	var c Callback[func(int) int]
	if c.Data() != nil {
		t.Error("the zero value has a number")
	}
	c.Clear()
	seen := map[unsafe.Pointer]bool{}
	for i := range 5000 {
		data := c.Set(k, Owner{}, plus(i))
		if data == nil || data != c.Data() || seen[data] {
			t.Fatalf("number %d is %p again", i, data)
		}
		seen[data] = true
		mustAnswer(t, "set", k, data, 1+i)
		if again := c.Set(k, Owner{}, plus(-i)); again != data {
			t.Fatalf("the second Set has another number, %p after %p", again, data)
		}
		mustAnswer(t, "set again", k, data, 1-i)
		c.Clear()
		mustAnswer(t, "cleared", k, data, -1)
	}
	present := c.Set(k, Owner{}, plus(7)) // where one of those was
	for data := range seen {
		mustAnswer(t, "long cleared", k, data, -1)
		if k.Hold(data) {
			t.Error("Hold of a number that has ended")
		}
		k.Weaken(data)
	}
	mustAnswer(t, "among those", k, present, 8)
	c.Clear()
	if s := k.Stats(); s.Live != 0 || s.Held != 0 || s.Ended != 2*5000 {
		t.Errorf("%+v", s)
	}
}

// TestCallbackNumbersAreNoAddresses has the collector meet numbers wherever it looks for
// pointers, and stacks that are moved.
func TestCallbackNumbersAreNoAddresses(t *testing.T) {
	k := newCalls(t)
	var c [300]Callback[func(int) int]
	kept := make([]unsafe.Pointer, len(c))
	for round := range 20 {
		for i := range c {
			kept[i] = c[i].Set(k, Owner{}, plus(i))
		}
		testcall.Aside(func() {
			on := [4]unsafe.Pointer{kept[round], kept[round+1], kept[round+2], kept[round+3]}
			testcall.Deep(20, runtime.GC)
			for i, data := range on {
				mustAnswer(t, "on a stack", k, data, 1+round+i)
			}
		})
		for i := range c {
			if i%(round+2) == 0 {
				c[i].Clear()
			}
		}
	}
	runtime.KeepAlive(kept)
	for i := range c {
		c[i].Clear()
	}
}

func TestCallbackMisuse(t *testing.T) {
	k, other := newCalls(t), NewCallbacks("other", func(int) int { return -2 })
	var c Callback[func(int) int]
	var none object
	mustMisuse(t, "own.Callback.Bind", func() { c.Bind(none.Owner()) }, "owns nothing")
	mustMisuse(t, t.Name()+".Set", func() { c.Set(k, none.Owner(), plus(1)) }, "owns nothing", "Bind")
	w := newWorld(t, 1)
	m := w.own(t, w.pool(Options{}), 1)
	mustMisuse(t, "own.Callback.Bind", func() { c.Bind(m.Owner()) }, "not set")
	data := c.Set(k, m.Owner(), plus(1))
	mustMisuse(t, "other.Set", func() { c.Set(other, Owner{}, plus(1)) }, "Clear")
	mustMisuse(t, "other.Call", func() { call(other, data, 1) }, t.Name())
	mustMisuse(t, "other.Call", func() { other.Hold(data) }, t.Name())
	var x byte
	for _, wrong := range []unsafe.Pointer{nil, unsafe.Pointer(&x), unsafe.Pointer(&data), unsafe.Add(data, 1<<19)} {
		mustMisuse(t, t.Name()+".Call", func() { call(k, wrong, 1) }, "no number")
	}
	mustAnswer(t, "after all", k, data, 2)
	m.Close()
	mustAnswer(t, "closed", k, data, -1)
}

// TestCallbackEnds ends the owner in each way.
func TestCallbackEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(m *thing, p *Pool)
	}{
		{"close", func(m *thing, _ *Pool) { m.Close() }},
		{"destroy", func(_ *thing, p *Pool) { p.CloseWait(t.Context()) }},
		{"disown", func(m *thing, _ *Pool) { m.Disown() }},
	} {
		for _, o := range []Options{{}, {Unshared: true}, {Batch: 1}, {Run: new(Queue).Run()}} {
			w := newWorld(t, 1)
			p := w.pool(o)
			m := w.own(t, p, 1)
			k := newCalls(t)
			var c Callback[func(int) int]
			data := c.Set(k, Owner{}, plus(1))
			c.Bind(m.Owner())
			mustAnswer(t, row.name, k, data, 2)
			w.before = func([]*cell) { mustAnswer(t, row.name+", in the release", k, data, -1) }
			row.end(m, p)
			mustAnswer(t, row.name+", ended", k, data, -1)
			if k.Hold(data) {
				t.Errorf("%s: Hold after the end", row.name)
			}
			drainPool(p, 0)
			if row.name == "disown" {
				w.destroy(m.cell)
			}
			c.Clear()
		}
	}
}

// TestCallbackPanics leaves a call in other ways than by returning.
func TestCallbackPanics(t *testing.T) {
	w := newWorld(t, 2)
	p := w.pool(Options{})
	k := newCalls(t)
	for _, leave := range []func(int) int{
		func(int) int { panic("out") },
		func(int) int { runtime.Goexit(); return 0 },
	} {
		m := w.own(t, p, 1)
		var c Callback[func(int) int]
		data := c.Set(k, m.Owner(), func(n int) int { m.Close(); mustBeAlive(t, m.cell, "in the call"); return leave(n) })
		testcall.Aside(func() { testcall.Catch(func() { call(k, data, 1) }) })
		mustBeReleased(t, m.cell, "after the call")
	}
}

// TestCallbackValues has values that are no functions.
func TestCallbackValues(t *testing.T) {
	writers := NewCallbacks[io.Writer]("writers", io.Discard)
	var c Callback[io.Writer]
	var b strings.Builder
	data := c.Set(writers, Owner{}, &b)
	writers.Call(data, func(w io.Writer) { fmt.Fprint(w, "text") })
	if b.String() != "text" {
		t.Errorf("%q", &b)
	}
	c.Set(writers, Owner{}, nil)
	writers.Call(data, func(w io.Writer) {
		if w != nil {
			t.Errorf("%v in place of nil", w)
		}
	})
	c.Clear()

	type pair struct{ a, b int }
	pairs := NewCallbacks("pairs", pair{})
	var d Callback[pair]
	pairs.Call(d.Set(pairs, Owner{}, pair{1, 2}), func(p pair) {
		if p != (pair{1, 2}) {
			t.Error(p)
		}
	})
	d.Clear()
}

// TestCallbackCopies copies a Callback that is set, which go vet reports.
func TestCallbackCopies(t *testing.T) {
	k := newCalls(t)
	var data unsafe.Pointer
	var copied []Callback[func(int) int]
	testcall.Aside(func() {
		first := make([]Callback[func(int) int], 1)
		data = first[0].Set(k, Owner{}, plus(1))
		copied = append(first, make([]Callback[func(int) int], 100)...) // append copies as well
	})
	stale := append(copied[:1:1], Callback[func(int) int]{})
	runtime.GC()
	runtime.GC()
	mustAnswer(t, "of the copy", k, data, 2)
	if copied[0].Set(k, Owner{}, plus(2)) != data {
		t.Error("the copy has another number")
	}
	mustAnswer(t, "of the copy, set again", k, data, 3)
	copied[0].Clear()
	mustAnswer(t, "cleared by the copy", k, data, -1)

	// A copy that is left has nothing of the callback that takes the place of that one.
	next := copied[1].Set(k, Owner{}, plus(3))
	if stale[0].Data() != nil {
		t.Error("a copy of a Callback that has ended has a number")
	}
	stale[0].Clear()
	mustAnswer(t, "after a copy of another was cleared", k, next, 4)
	copied[1].Clear()
}

func TestCallbackAllocates(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	w := newWorld(t, 1)
	m := w.own(t, w.pool(Options{}), 1)
	k := newCalls(t)
	c := new(Callback[func(int) int])
	data := c.Set(k, m.Owner(), plus(1))
	sum := 0
	if n := testing.AllocsPerRun(1000, func() { sum += call(k, data, 1) }); n != 0 {
		t.Errorf("%v objects for a call", n)
	}
	m.Close()
	if n := testing.AllocsPerRun(1000, func() { sum += call(k, data, 1) }); n != 0 {
		t.Errorf("%v objects for a call that ended", n)
	}
	f := plus(1)
	if n := testing.AllocsPerRun(1000, func() { c.Clear(); c.Set(k, Owner{}, f) }); n > 1 {
		t.Errorf("%v objects for Clear and Set", n)
	}
	c.Clear()
}

// TestCallbackReleaseSeesNone forgets what has a Callback: it has ended when the release
// begins.
func TestCallbackReleaseSeesNone(t *testing.T) {
	const n = 200
	w := newWorld(t, n)
	p := w.pool(Options{})
	k := newCalls(t)
	type binding struct {
		*thing
		c Callback[func(int) int]
	}
	numbers := map[*cell]unsafe.Pointer{}
	w.before = func(cells []*cell) {
		for _, c := range cells {
			mustAnswer(t, "in the release", k, numbers[c], -1)
		}
	}
	testcall.Aside(func() {
		for range n {
			b := &binding{thing: w.own(t, p, 1)}
			numbers[b.cell] = b.c.Set(k, b.Owner(), func(int) int { return int(b.cell.size) })
		}
	})
	collectAtMost(t, few, "all", func() bool { return w.alive() == 0 })
	if s := k.Stats(); s.Live != 0 || s.Ended != n {
		t.Errorf("%+v", s)
	}
}
