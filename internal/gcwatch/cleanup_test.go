package gcwatch

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/internal/testchild"
	"github.com/cheapgo/cheap/internal/testwait"
)

// An object has something of the size of a batch's token.
type object struct {
	next *object
	_    [56]byte
}

// collectorOff leaves all collections to the test.
func collectorOff(t *testing.T) {
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
}

// collect runs a collection, and waits until the walks are over that follow it.
func collect(t *testing.T) {
	t.Helper()
	testwait.Collect(t)
	testwait.Until(t, "the walk is over", func() bool { return !Walking() })
}

// collections runs collections, up to most of them, until f returns true, and
// returns how many were needed.
func collections(t *testing.T, what string, most int, f func() bool) (n int) {
	t.Helper()
	for ; !f(); n++ {
		if n == most {
			t.Fatalf("after %d collections it is not so that %s; %d functions wait", n, what, count())
		}
		collect(t)
	}
	return n
}

func drop[A any](f func(*A), arg *A) { testcall.Aside(func() { AddCleanup(new(object), f, arg) }) }

// A mode takes some of the ways of the package away.
type mode struct {
	name     string
	peeking  bool
	reported bool // the sentinels have cleanups
	most     int  // number of collections until the function is called
}

// modes is a list of all modes. In the usual one a function is called after the
// first collection.
var modes = []mode{
	{"usual", true, true, 1},
	{"no cleanups", true, false, 2},
	{"no handles", false, true, 3},
	{"neither", false, false, 3},
}

func (m mode) run(t *testing.T, f func(t *testing.T)) {
	t.Run(m.name, func(t *testing.T) {
		defer func(b bool) { peeking.Store(b) }(peeking.Load())
		defer func(b bool) { reported.Store(b) }(reported.Load())
		m.set()
		f(t)
	})
}

// set sets the mode of the process.
func (m mode) set() {
	peeking.Store(m.peeking)
	reported.Store(m.reported)
}

// TestKnown fails if weak pointers of this version of Go are not as expected. The
// package works then, and is slower.
func TestKnown(t *testing.T) {
	if !known() || !peeking.Load() {
		t.Error("weak pointers do not look as expected")
	}
}

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

// TestCollectionsUntilCalled drops an object in an idle program, again and again.
// The mean of the number of collections is that of the mode.
func TestCollectionsUntilCalled(t *testing.T) {
	for _, m := range modes {
		m.run(t, func(t *testing.T) {
			collectorOff(t)
			const tries = 10
			sum := 0
			for range tries {
				var called atomic.Bool
				drop(func(b *atomic.Bool) { b.Store(true) }, &called)
				sum += collections(t, "it is called", m.most+1, called.Load)
			}
			if mean := float64(sum) / tries; mean > float64(m.most)+0.2 {
				t.Errorf("%.2f collections on average", mean)
			} else {
				t.Logf("%.2f collections on average", mean)
			}
		})
	}
}

// TestBesideCleanups drops objects in a program that has many cleanups of its own, most
// of which run before the end of the sweep. The first collection finds many objects all
// the same, the second one all.
func TestBesideCleanups(t *testing.T) {
	collectorOff(t)
	const tries, n = 10, 2000
	var first int64
	for range tries {
		var ours, theirs atomic.Int64
		testcall.Aside(func() {
			for range n {
				AddCleanup(new(object), func(a *atomic.Int64) { a.Add(1) }, &ours)
				runtime.AddCleanup(new(object), func(int) { theirs.Add(1) }, 0)
			}
		})
		collect(t)
		if k := theirs.Load(); k != n {
			t.Errorf("%d of %d cleanups of the program have run", k, n)
		}
		first += ours.Load()
		collections(t, "all are called", 1, func() bool { return ours.Load() == n })
	}
	if first < tries*n/8 { // mostly it is all of them
		t.Errorf("the first collection has found %d of %d", first, tries*n)
	}
}

// TestEarly drops objects, and takes away the report of the end of the sweep. New
// functions find them, without another collection.
func TestEarly(t *testing.T) {
	if percpu.Portable || race.Build {
		return // a walk of one shard may not find them, or does not begin
	}
	t.Parallel()
	output, passed := testchild.Test(t, func(t *testing.T) {
		collectorOff(t)
		reported.Store(false)
		var calls atomic.Int32
		const n = 100
		testcall.Aside(func() {
			for range n {
				AddCleanup(new(object), func(c *atomic.Int32) { c.Add(1) }, &calls)
			}
		})
		collect(t)
		if c := calls.Load(); c != 0 {
			t.Errorf("%d calls, although nothing is reported", c)
		}
		kept := new(object)
		testwait.Until(t, "all are called", func() bool {
			AddCleanup(kept, func(*int) {}, new(int)).Stop()
			return calls.Load() == n
		})
		runtime.KeepAlive(kept)
	}, "GOMAXPROCS=1") // so there is one shard
	if !passed {
		t.Error(output)
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
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "gcwatch: ptr is ") {
					t.Errorf("%s: %v", name, v)
				}
			}()
			f()
		}()
	}
	if n := count(); n != 0 {
		t.Errorf("%d functions wait", n)
	}
}

// TestAddInFunction calls AddCleanup and Stop in a function.
func TestAddInFunction(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int32
	var f func(c *atomic.Int32)
	f = func(c *atomic.Int32) {
		if c.Add(1) < 5 {
			AddCleanup(new(object), func(*int) { t.Error("a stopped function is called") }, new(int)).Stop()
			AddCleanup(new(object), f, c)
		}
	}
	drop(f, &calls)
	collections(t, "all are called", 11, func() bool { return calls.Load() == 5 })
}

// TestGoexit ends the goroutine in a function. Others are called after that.
func TestGoexit(t *testing.T) {
	collectorOff(t)
	var calls atomic.Int32
	collect(t) // or a walk that is under way says that none is
	walks.mu.Lock()
	walks.running = true // a walk on a goroutine of the runtime must not end that
	walks.mu.Unlock()
	drop(func(*atomic.Int32) { runtime.Goexit() }, &calls)
	testwait.Collect(t)
	walks.mu.Lock()
	walks.since = 1 << 62 // nor stop without the function, see ordered
	walks.mu.Unlock()
	go walkOver(registry[:], forever)
	collections(t, "the function has ended the walk", 3, func() bool { return count() == 0 })
	drop(func(c *atomic.Int32) { c.Add(1) }, &calls)
	collections(t, "the next one is called", 3, func() bool { return calls.Load() == 1 })
}

// TestPanic ends the program with a panic of a function.
func TestPanic(t *testing.T) {
	t.Parallel()
	output, status := testchild.Run(t, func() {
		drop(func(*int) { panic("of the function") }, new(int))
		for {
			runtime.GC()
		}
	})
	if status != 2 || !strings.Contains(output, "panic: of the function") {
		t.Errorf("status %d, output\n%s", status, output)
	}
}

// TestBubble calls AddCleanup in a bubble. The function is called outside, while the
// bubble is there and afterwards, also by a walk with a goroutine of its own.
func TestBubble(t *testing.T) {
	collectorOff(t)
	var calls, wrong atomic.Int64
	f := func(c *atomic.Int64) {
		if InBubble() {
			wrong.Add(1)
		}
		c.Add(1)
	}
	const n = 1000
	defer inline.Store(inline.Load())
	inline.Store(n / 2)
	synctest.Test(t, func(t *testing.T) {
		drop(f, &calls)
		for calls.Load() == 0 {
			runtime.GC()
			waitABit()
		}
		for range n {
			AddCleanup(new(object), f, &calls)
		}
	})
	collections(t, "all are called", 3, func() bool { return calls.Load() == n+1 })
	if wrong.Load() != 0 {
		t.Errorf("%d of %d were called in a bubble", wrong.Load(), n+1)
	}
}

// waitABit lets others run. In a bubble no clock goes on.
func waitABit() {
	for range 1000 {
		runtime.Gosched()
	}
}

// TestPoll leaves no way to learn of a collection but Poll, which AddCleanup calls.
func TestPoll(t *testing.T) {
	t.Parallel()
	output, passed := testchild.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		block := make(chan int)
		var blocked atomic.Int32
		testcall.Aside(func() {
			runtime.AddCleanup(new(object), func(int) { blocked.Add(1); <-block }, 0)
			runtime.SetFinalizer(new(object), func(*object) { blocked.Add(1); <-block })
		})
		runtime.GC()
		testwait.Until(t, "the queues are blocked", func() bool { return blocked.Load() == 2 })
		testcall.Aside(func() {
			for range 100 {
				AddCleanup(new(object), func(c *atomic.Int32) { c.Add(1) }, &calls)
			}
		})
		for range 3 {
			runtime.GC()
		}
		if n := calls.Load(); n != 0 {
			t.Fatalf("%d functions were called, although all the runtime's queues are blocked", n)
		}
		var keep []*object
		testwait.Until(t, "all are called", func() bool {
			runtime.GC() // with the race detector several walks stop; see ordered
			for range slots {
				keep = append(keep, new(object))
				AddCleanup(keep[len(keep)-1], func(*int) {}, new(int))
			}
			return calls.Load() == 100
		})
		runtime.KeepAlive(keep)
	}, "GOMAXPROCS=2", "GOGC=off")
	if !passed {
		t.Error(output)
	}
}

// blocks returns the number of blocks, and checks the lists of each shard.
func blocks(t *testing.T) (n int) {
	t.Helper()
	for i := range registry {
		s := &registry[i]
		s.mu.Lock()
		used := 0
		room := map[*block]bool{}
		for b, prev := s.room, (*block)(nil); b != nil; b, prev = b.nextRoom, b {
			room[b] = true
			if b.prevRoom != prev {
				t.Error("the list of blocks with room is torn")
			}
		}
		for b, prev := s.blocks, (*block)(nil); b != nil; b, prev = b.next, b {
			n++
			k := bits.OnesCount64(b.used)
			used += k
			if b.shard != s || b.prev != prev || room[b] != (k < slots) {
				t.Errorf("a block with %d of %d slots in use is on wrong lists", k, slots)
			}
			delete(room, b)
			for i := range slots {
				if in := b.used>>i&1 != 0; in != (b.f[i] != nil) || in != (b.arg[i] != nil) || in != (b.weak[i] != weak.Pointer[byte]{}) {
					t.Errorf("slot %d: in use %v, %v", i, in, b.arg[i])
				}
			}
		}
		if used != s.n || len(room) > 0 {
			t.Errorf("%d slots are in use, the count is %d; %d blocks are on one list only", used, s.n, len(room))
		}
		s.mu.Unlock()
	}
	return n
}

// TestEmpty adds many functions, and looks whether the blocks go with them.
func TestEmpty(t *testing.T) {
	collectorOff(t)
	const n = 50_000
	var calls atomic.Int32
	kept := make([]*object, n)
	handles := make([]Cleanup, n)
	testcall.Aside(func() {
		for i := range kept {
			kept[i] = new(object)
			handles[i] = AddCleanup(kept[i], func(c *atomic.Int32) { c.Add(1) }, &calls)
		}
	})
	if got := blocks(t); got < n/slots || got > n/slots+len(registry) {
		t.Errorf("%d blocks for %d functions", got, n)
	}
	for i := range kept {
		if i%2 == 0 {
			handles[i].Stop()
		}
	}
	runtime.KeepAlive(kept)
	clear(kept)
	clear(handles)
	collections(t, "the other half is called", 3, func() bool { return calls.Load() == n/2 })
	collections(t, "the blocks are gone", 3, func() bool { return blocks(t) <= len(registry) })
	collections(t, "the rounds end", 3, func() bool { return !rounds.armed.Load() })
	const word = unsafe.Sizeof(uintptr(0))
	if size := unsafe.Sizeof(block{}); size > 3*8+slots*(3*word+4+2+1)+5*word {
		t.Errorf("a block has %d bytes", size)
	}
}

// TestHammer adds, drops, keeps and stops from several goroutines, while collections
// run and GOMAXPROCS changes. Each function is called at most once, never for an
// object that is kept nor after Stop, and all others are called in the end.
func TestHammer(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			output, passed := testchild.Test(t, func(t *testing.T) {
				m.set()
				hammer(t)
			})
			if !passed {
				t.Error(output)
			}
		})
	}
}

// A fate is what becomes of a function.
type fate struct {
	state atomic.Uint32
	calls *atomic.Int64
}

const (
	waits   = iota
	kept    // must not be called
	stopped // likewise, unless it was called before
	called
)

func hammer(t *testing.T) {
	debug.SetGCPercent(20)
	runtime.GOMAXPROCS(4)
	const goroutines, each = 6, 3_000
	var calls, want, adds atomic.Int64
	f := func(f *fate) {
		if old := f.state.Swap(called); old != waits {
			t.Errorf("called in state %d", old)
		}
		f.calls.Add(1)
	}
	var disturb, users sync.WaitGroup
	disturb.Go(func() {
		rnd := rand.New(rand.NewPCG(1, 2))
		for n := adds.Load(); n < goroutines*each; n = adds.Load() {
			runtime.GC()
			if rnd.IntN(4) == 0 {
				runtime.GOMAXPROCS(1 + rnd.IntN(8))
			}
			for next := min(n+rnd.Int64N(200), goroutines*each); adds.Load() < next; {
				runtime.Gosched()
			}
		}
	})
	for g := range goroutines {
		users.Go(func() {
			type mine struct {
				o *object
				h Cleanup
				f *fate
			}
			rnd := rand.New(rand.NewPCG(uint64(g), 3))
			var keep [64]mine
			for i := range each {
				x := mine{o: new(object), f: &fate{calls: &calls}}
				keeps := rnd.IntN(2) == 0
				if keeps {
					x.f.state.Store(kept)
				}
				x.h = AddCleanup(x.o, f, x.f)
				adds.Add(1)
				if !keeps {
					want.Add(1)
					continue
				}
				slot := &keep[i%len(keep)]
				if old := *slot; old.o != nil {
					if rnd.IntN(2) == 0 {
						old.f.state.Store(stopped)
						old.h.Stop()
						runtime.KeepAlive(old.o)
						if s := old.f.state.Load(); s != stopped {
							t.Errorf("state %d after Stop", s)
						}
					} else {
						old.f.state.Store(waits)
						runtime.KeepAlive(old.o)
						want.Add(1)
					}
				}
				*slot = x
			}
			for _, old := range keep {
				old.f.state.Store(waits)
				runtime.KeepAlive(old.o)
				want.Add(1)
			}
		})
	}
	users.Wait()
	disturb.Wait()
	// With fewer Ps than before the runtime may have lost cleanups, so collect would wait for them.
	testwait.Until(t, "all are called", func() bool { runtime.GC(); return calls.Load() >= want.Load() })
	testwait.Until(t, "the blocks are gone", func() bool { runtime.GC(); return blocks(t) <= len(registry) && !Walking() })
	if got := calls.Load(); got != want.Load() || count() != 0 {
		t.Errorf("%d calls, want %d; %d functions wait", got, want.Load(), count())
	}
}

// TestBackToBack runs one collection after the other, as with GOGC=1. What was
// dropped is found nevertheless.
func TestBackToBack(t *testing.T) {
	for _, m := range modes {
		m.run(t, func(t *testing.T) {
			done := make(chan struct{})
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
							runtime.GC()
						}
					}
				})
			}
			var calls atomic.Int64
			const n = 2000
			testcall.Aside(func() {
				for range n {
					AddCleanup(new(object), func(c *atomic.Int64) { c.Add(1) }, &calls)
				}
			})
			testwait.Until(t, "all are called", func() bool { return calls.Load() == n })
			close(done)
			wg.Wait()
		})
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

// BenchmarkWalk walks over functions whose objects live, after a collection.
func BenchmarkWalk(b *testing.B) {
	const n = 250_000
	var x int
	reported.Store(false) // no other walk
	defer reported.Store(true)
	kept := make([]*object, n)
	for i := range kept {
		kept[i] = new(object)
		AddCleanup(kept[i], func(*int) {}, &x)
	}
	var walking, collecting time.Duration
	for b.Loop() {
		t0 := time.Now()
		runtime.GC()
		t1 := time.Now()
		for i := range registry {
			registry[i].walk(1<<62, func() bool { return false })
		}
		walking += time.Since(t1)
		collecting += t1.Sub(t0)
	}
	b.ReportMetric(float64(walking.Nanoseconds())/float64(b.N)/n, "ns/function")
	b.ReportMetric(float64(walking)/float64(collecting), "of-collection")
	runtime.KeepAlive(kept)
}
