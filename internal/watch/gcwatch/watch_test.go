package gcwatch

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// longWalks has every walk be one whose functions take long, for the time of a test.
func longWalks(t *testing.T) {
	was := mostInline.Swap(-1)
	t.Cleanup(func() { mostInline.Store(was) })
}

// TestLongWalk has a walk whose functions take long. It does not keep the goroutine of the
// runtime, on which other cleanups wait.
func TestLongWalk(t *testing.T) {
	collectorOff(t)
	longWalks(t)
	const n = 4 * slots
	var there, elsewhere atomic.Int64
	testcall.Aside(func() {
		for range n {
			AddCleanup(new(object), func(*int) {
				if bytes.Contains(debug.Stack(), []byte("runtime.runCleanups")) {
					there.Add(1)
				} else {
					elsewhere.Add(1)
				}
			}, new(int))
		}
	})
	collections(t, "all are called", 3, func() bool { return there.Load()+elsewhere.Load() == n })
	if k := there.Load(); k > slots { // the functions of a block
		t.Errorf("%d of %d functions were called on a goroutine of the runtime", k, n)
	}
}

// A watched object is one of TestWatch, and what its function was told.
type watched struct {
	object       *object // nil if it is dropped
	number       uint16
	lives, dies  atomic.Int32
	wrong, again atomic.Bool
}

func (w *watched) told(n uint16, o *object) (again bool) {
	switch {
	case n != w.number || o != nil && o != w.object:
		w.wrong.Store(true)
	case o == nil:
		w.dies.Add(1)
	default:
		w.lives.Add(1)
	}
	return w.again.Load()
}

// TestWatch keeps some objects and drops the others. Their functions are told of the ones
// when these have outlived two collections, and of the others.
func TestWatch(t *testing.T) {
	collectorOff(t)
	const n, each = 400 * slots, 100 // one in each is kept
	all := make([]watched, n)
	testcall.Aside(func() {
		for i := range all {
			w := &all[i]
			w.object, w.number = new(object), uint16(i)
			w.again.Store(i%(2*each) == 0)
			Watch(w.object, (*watched).told, w, w.number)
		}
	})
	wrong := func(lives, again, dies func(kept bool) int32) (text string) {
		for i := range all {
			w, kept := &all[i], i%each == 0
			want := lives(kept)
			if w.again.Load() {
				want = again(kept)
			}
			if l, d := w.lives.Load(), w.dies.Load(); l != want || d != dies(kept) || w.wrong.Load() {
				return fmt.Sprintf("object %d: told %d times that it lives, and %d times that it is dead; wrong: %v", i, l, d, w.wrong.Load())
			}
		}
		return ""
	}
	expect := func(what string, lives, again, dies func(kept bool) int32) {
		t.Helper()
		for range 2 {
			if wrong(lives, again, dies) == "" {
				return
			}
			collect(t)
		}
		if s := wrong(lives, again, dies); s != "" {
			t.Fatal(what, s)
		}
	}
	never := func(bool) int32 { return 0 }
	once := func(bool) int32 { return 1 }
	collect(t)
	if s := wrong(never, never, never); s != "" {
		t.Fatal("after one collection: ", s)
	}
	collect(t)
	expect("after two: ", once, once, never)
	for i := range all {
		if i%each != 0 {
			all[i].object = nil
		}
	}
	others := func(kept bool) int32 {
		if kept {
			return 0
		}
		return 1
	}
	collect(t)
	collect(t)
	expect("after the others are dropped: ", once, once, others)
	for range asksAgain - 1 {
		collect(t)
	}
	twice := func(kept bool) int32 {
		if kept {
			return 2
		}
		return 1
	}
	expect("long after: ", once, twice, others)
	blocks := 0
	for i := range registry {
		s := &registry[i]
		s.mu.Lock()
		for b := s.blocks; b != nil; b = b.next {
			blocks++
		}
		s.mu.Unlock()
	}
	if blocks > 2*len(registry) {
		t.Errorf("%d blocks have %d functions", blocks, count())
	}
	for i := range all {
		all[i].object = nil
	}
	collect(t)
	collect(t)
	expect("after all are dropped: ", once, twice, once)
	if k := count(); k != 0 {
		t.Errorf("%d functions wait", k)
	}
}

// An observer counts the sweeps and the walks that have ended.
type observer struct{ sweeps, walks atomic.Int64 }

func (o *observer) Swept()  { o.sweeps.Add(1) }
func (o *observer) Walked() { o.walks.Add(1) }

// TestFollow counts the ends of sweeps and walks. When the functions of dead objects were
// called, the end of a walk follows.
func TestFollow(t *testing.T) {
	collectorOff(t)
	defer follower.Store(follower.Load())
	var o observer
	Follow(&o)
	for range 3 {
		var called, before atomic.Int64
		testcall.Aside(func() {
			AddCleanup(new(object), func(*int) {
				if !Walking() {
					t.Error("a function is called, and no walk is under way")
				}
				before.Store(o.walks.Load())
				called.Add(1)
			}, new(int))
		})
		collections(t, "it is called", 3, func() bool { return called.Load() == 1 })
		testwait.Until(t, "the walk ends", func() bool { return o.walks.Load() != before.Load() })
	}
	if o.sweeps.Load() == 0 {
		t.Error("no end of a sweep was reported")
	}
}
