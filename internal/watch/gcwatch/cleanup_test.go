package gcwatch

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestAdd drops objects and keeps others.
func TestAdd(t *testing.T) {
	for _, m := range modes {
		m.run(t, func(t *testing.T) {
			collectorOff(t)
			const n = 1000
			var calls [n]atomic.Int32
			var dead atomic.Int32
			kept := make([]*object, n)
			testcall.Aside(func() {
				for i := range n {
					kept[i] = &object{next: &object{}}
					AddCleanup(kept[i], func(c *atomic.Int32) { c.Add(1); dead.Add(1) }, &calls[i])
				}
			})
			for range 2 * m.most {
				collect(t)
			}
			if d := dead.Load(); d != 0 {
				t.Fatalf("%d functions were called for objects that live", d)
			}
			for i := 0; i < n; i += 2 {
				kept[i] = nil
			}
			collections(t, "half are dead", m.most+1, func() bool { return dead.Load() == n/2 })
			for i := range n {
				if got := calls[i].Load(); int(got) != 1-i%2 {
					t.Fatalf("%d: called %d times", i, got)
				}
			}
			runtime.KeepAlive(kept)
			clear(kept)
			collections(t, "all are dead", m.most+1, func() bool { return dead.Load() == n })
			for range 2 * m.most {
				collect(t)
			}
			if d := dead.Load(); d != n || count() != 0 {
				t.Errorf("%d calls for %d objects, %d functions wait", d, n, count())
			}
		})
	}
}

// TestInside gives AddCleanup a pointer into an object, whose other parts are kept.
func TestInside(t *testing.T) {
	collectorOff(t)
	type whole struct {
		a, b [100]byte
		next *whole
	}
	var dead atomic.Int32
	f := func(d *atomic.Int32) { d.Add(1) }
	var first, second, last *whole
	testcall.Aside(func() {
		w := &whole{}
		first = w
		AddCleanup(&w.b, f, &dead)
		w = &whole{}
		second = w
		AddCleanup(&w.a, f, &dead)
		AddCleanup(&w.next, f, &dead)
		w = &whole{}
		last = w
		AddCleanup(w, f, &dead)
	})
	inside := &last.b
	last = nil
	for range 4 {
		collect(t)
	}
	if n := dead.Load(); n != 0 {
		t.Errorf("%d calls for objects that live", n)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	runtime.KeepAlive(inside)
	first, second, inside = nil, nil, nil
	collections(t, "all are dead", 3, func() bool { return dead.Load() == 4 })
}

// TestKeeps looks whether arg is reachable until the call and not afterwards, and
// whether the object is not.
func TestKeeps(t *testing.T) {
	collectorOff(t)
	var got atomic.Int64
	var arg weak.Pointer[object]
	var dead weak.Pointer[object]
	var kept *object
	testcall.Aside(func() {
		kept = new(object)
		a := &object{next: &object{}}
		arg = weak.Make(a)
		dead = weak.Make(kept)
		AddCleanup(kept, func(a *object) {
			if a.next != nil {
				got.Add(1)
			}
		}, a)
	})
	for range 3 {
		runtime.GC()
	}
	if arg.Value() == nil || dead.Value() == nil {
		t.Fatal("collected although it is needed")
	}
	runtime.KeepAlive(kept)
	kept = nil
	collections(t, "it is called", 3, func() bool { return got.Load() == 1 })
	collections(t, "it is forgotten", 3, func() bool { return arg.Value() == nil && dead.Value() == nil })
}

// TestStop stops functions: before the object is dead, twice, after the slot was
// used again, and when they were called.
func TestStop(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int32
	f := func(c *atomic.Int32) { c.Add(1) }
	var first Cleanup
	first.Stop() // of nothing
	var handles []Cleanup
	testcall.Aside(func() {
		for range 1000 {
			handles = append(handles, AddCleanup(new(object), f, &calls))
		}
		for _, h := range handles[1:] {
			h.Stop()
			h.Stop()
		}
		runtime.LockOSThread() // so the goroutine mostly stays on its P
		for range 1000 {
			AddCleanup(new(object), f, &calls)
		}
		for _, h := range handles[1:] {
			h.Stop() // of slots that have other functions now
		}
	})
	collections(t, "they are called", 3, func() bool { return calls.Load() == 1001 })
	for _, h := range handles {
		h.Stop()
	}
	collect(t)
	if n := calls.Load(); n != 1001 || count() != 0 {
		t.Errorf("%d calls, %d functions wait", n, count())
	}
}

// TestWrong gives AddCleanup what it cannot take.
func TestWrong(t *testing.T) {
	for name, f := range map[string]func(){
		"nil":  func() { AddCleanup((*object)(nil), func(*int) {}, new(int)) },
		"arg":  func() { o := new(object); AddCleanup(o, func(*object) {}, o) },
		"arg2": func() { o := new(object); AddCleanup(o, func(**object) {}, &o.next) },
	} {
		if v, ok := testcall.Catch(f).(string); !ok || !strings.HasPrefix(v, "gcwatch: ptr is ") {
			t.Errorf("%s: %v", name, v)
		}
	}
	if n := count(); n != 0 {
		t.Errorf("%d functions wait", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	var x int
	b.Run("by=cleanup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			AddCleanup(new(object), func(*int) {}, &x)
		}
	})
	b.Run("by=runtime", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			runtime.AddCleanup(new(object), func(*int) {}, &x)
		}
	})
}
