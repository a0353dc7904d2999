//go:build cgo && unix

package ctest

import (
	"runtime"
	"runtime/cgo"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/own"
)

// few is within how many collections a cycle is freed.
const few = 3

// must returns an object.
func must(t testing.TB) *Object {
	t.Helper()
	o, err := New()
	testcall.Must(t, err)
	return o
}

// emits fails if a call of C does not return want.
func emits(t testing.TB, what string, o interface{ Emit(int) (int, error) }, want int) {
	t.Helper()
	if got, err := o.Emit(1); got != want || err != nil {
		t.Errorf("%s: C got %d, %v, want %d", what, got, err, want)
	}
}

// collect collects, and waits for all that follows from it. With the race detector nothing tells
// when that is: see package gcwatch.
func collect(t testing.TB) {
	t.Helper()
	runtime.GC() // returns after the sweep
	n := gcwatch.Cycles()
	testwait.Until(t, "the walk is over", func() bool {
		gcwatch.Walk(n)
		return race.Build || gcwatch.Walked(n)
	})
	testcall.Must(t, own.Flush(t.Context()))
}

// collectUntil collects until f returns true.
func collectUntil(t testing.TB, what string, f func() bool) {
	t.Helper()
	testwait.Until(t, what, func() bool {
		runtime.GC()
		return f()
	})
}

// none waits until all objects are freed, which the tests before have forgotten.
func none(t testing.TB) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%d objects are alive; %+v; %+v, %+v", Alive(), own.ReadReleases(), Calls.Stats(), Threaded.Stats())
		}
	}()
	collectUntil(t, "all objects are freed", func() bool { return Alive() == 0 })
}

// TestCyclesAreFreed forgets objects whose functions refer to them, alone and to each other.
func TestCyclesAreFreed(t *testing.T) {
	const n = 1000
	for _, row := range []struct {
		name    string
		connect func(t *testing.T, objects []*Object)
	}{
		{"itself", func(t *testing.T, objects []*Object) {
			for _, o := range objects {
				o.Connect(func(int) int { return int(o.Address()) })
			}
		}},
		{"method value", func(t *testing.T, objects []*Object) {
			for _, o := range objects {
				o.Connect(o.again)
			}
		}},
		{"pairs", func(t *testing.T, objects []*Object) {
			for i, o := range objects {
				other := objects[i^1]
				o.Connect(func(int) int { return int(o.Address() + other.Address()) })
			}
		}},
		{"a ring of all", func(t *testing.T, objects []*Object) {
			for i, o := range objects {
				next := objects[(i+1)%len(objects)]
				o.Connect(func(int) int { return int(next.Address()) })
			}
		}},
		{"replaced", func(t *testing.T, objects []*Object) {
			for _, o := range objects {
				for range 3 {
					o.Connect(func(int) int { return int(o.Address()) })
				}
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			none(t)
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only the collections below
			testcall.Aside(func() {
				objects := make([]*Object, n)
				for i := range objects {
					objects[i] = must(t)
				}
				row.connect(t, objects)
				runtime.GC()
				if Alive() != n {
					t.Errorf("%d of %d are alive while Go has them", Alive(), n)
				}
				runtime.KeepAlive(objects)
			})
			for range few {
				collect(t)
			}
			if race.Build {
				none(t)
			}
			if Alive() != 0 {
				t.Errorf("%d of %d are alive after %d collections", Alive(), n, few)
			}
		})
	}
}

// again is a method that is given to C as a value.
func (o *Object) again(n int) int { return n }

// TestCyclesOfHandlesAreNot shows what a cgo.Handle does with the same objects.
func TestCyclesOfHandlesAreNot(t *testing.T) {
	none(t)
	const n = 1000
	var handles []cgo.Handle
	testcall.Aside(func() {
		for range n {
			o := must(t)
			handles = append(handles, o.ConnectHandle(func(int) int { return int(o.Address()) })) //cheapvet:ignore callbackcycle that is what is shown
		}
	})
	for range few {
		collect(t)
	}
	if Alive() != n {
		t.Errorf("%d of %d are alive", Alive(), n)
	}
	for _, h := range handles {
		h.Delete()
	}
	none(t)
}

// TestEndsWithTheResource has C call the function before, during and after the release.
func TestEndsWithTheResource(t *testing.T) {
	none(t)
	before := Calls.Stats().Ended
	o := must(t)
	var got []int
	o.Connect(func(n int) int { got = append(got, n); return 2 * n })
	emits(t, "open", o, 2)
	at := o.Address()
	o.Close() // ctest_free calls the function
	if !Freed(at) || Loop(at, 5) != Silent {
		t.Error("the object is not freed, or its function answers")
	}
	if len(got) != 1 || got[0] != 1 {
		t.Errorf("the function was called with %v", got)
	}
	if n := Calls.Stats().Ended - before; n != 2 {
		t.Errorf("%d calls were counted", n)
	}
	if o.Callback().Data() == nil {
		t.Error("the number ends before Clear")
	}
	o.Callback().Clear()
	if Loop(at, 5) != Silent || o.Callback().Data() != nil {
		t.Error("a callback answers after Clear")
	}
	runtime.KeepAlive(o)
}

// TestForgottenFallsSilent has C keep the object of a forgotten Go value, as a copied Handle does.
func TestForgottenFallsSilent(t *testing.T) {
	none(t)
	var ref Ref
	var at uintptr
	testcall.Aside(func() {
		o := must(t)
		o.Connect(func(int) int { return int(o.Address()) * 0 })
		ref, at = o.Ref(), o.Address()
		emits(t, "before", o, 0)
	})
	collectUntil(t, "the function is collected", func() bool { return Loop(at, 1) == Silent })
	emits(t, "a Handle is left", &ref, Silent)
	if Freed(at) {
		t.Error("the Handle does not keep the object")
	}
	ref = Ref{}
	none(t)
}

// TestHold has C keep an object that Go forgets, until C drops it or somebody closes it.
func TestHold(t *testing.T) {
	none(t)
	for _, end := range []string{"weaken", "close"} {
		t.Run(end, func(t *testing.T) {
			var at uintptr
			var ref Ref
			testcall.Aside(func() {
				o := must(t)
				o.Connect(func(n int) int { return int(o.Address()-at) + n })
				at = o.Address()
				for range 2 { // the second changes nothing
					if !Calls.Hold(o.Callback().Data()) {
						t.Error("Hold refuses")
					}
				}
				if end == "close" {
					ref = o.Ref()
				}
			})
			for range few {
				collect(t)
			}
			if Freed(at) || Loop(at, 7) != 7 {
				t.Fatal("a held function does not answer")
			}
			if s := Calls.Stats(); s.Held != 1 || s.Live != 1 {
				t.Errorf("%+v", s)
			}
			if end == "weaken" {
				Calls.Weaken(DataAt(at))
			} else {
				ref.h.Close()
				if Loop(at, 7) != Silent {
					t.Error("a held function answers after Close")
				}
				ref = Ref{}
			}
			none(t)
			collectUntil(t, "nothing is held", func() bool { s := Calls.Stats(); return s.Held == 0 && s.Live == 0 })
			if Calls.Hold(DataAt(at)) {
				t.Error("Hold of an ended callback")
			}
		})
	}
}

// TestCloseInTheCall closes the object in its own function, which C calls without a Use.
func TestCloseInTheCall(t *testing.T) {
	none(t)
	o := must(t)
	at := o.Address()
	o.Connect(func(n int) int {
		o.Close()
		if Freed(at) {
			t.Error("freed in the call")
		}
		if Loop(at, 1) != Silent {
			t.Error("the function of a closed object answers")
		}
		return n
	})
	if got := Loop(at, 3); got != 3 || !Freed(at) {
		t.Errorf("C got %d, freed: %v", got, Freed(at))
	}
}

// TestForgottenInTheCall lets go of the object while its function runs on a thread of C. The
// object is not freed before the function returns.
func TestForgottenInTheCall(t *testing.T) {
	none(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var at uintptr
	kept := make([]*Object, 1)
	testcall.Aside(func() {
		o := must(t)
		at = o.Address()
		o.Connect(func(n int) int {
			close(entered)
			<-leave
			if Freed(at) {
				t.Error("freed in the call")
			}
			return n
		})
		kept[0] = o
	})
	var done sync.WaitGroup
	done.Go(func() {
		if got := Loop(at, 3); got != 3 {
			t.Errorf("C got %d", got)
		}
	})
	<-entered
	kept[0] = nil
	for range few {
		collect(t)
	}
	if Freed(at) {
		t.Error("freed while its function runs")
	}
	close(leave)
	done.Wait()
	none(t)
}

// TestBeforeTheOwner sets the function before C makes the object.
func TestBeforeTheOwner(t *testing.T) {
	none(t)
	o, err := NewWith(func(n int) int { return n + 1 })
	testcall.Must(t, err)
	emits(t, "bound", o, 2)
	at := o.Address()
	o.Close()
	if Loop(at, 1) != Silent {
		t.Error("the function answers after Close")
	}
}
