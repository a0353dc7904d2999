//go:build splice

package specialstest

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/lab/internal/splice/built"
)

// Each allocation is profiled, and has a special for that.
func init() { runtime.MemProfileRate = 1 }

// An object has a pointer, so that it is alone in its slot.
type object struct {
	self *object
	id   int
}

// A cell is the smallest such object, of which there are the most in a span.
type cell struct {
	//lint:ignore U1000 it is there for its size, and to be a pointer
	next *cell
}

var _ [unsafe.Sizeof(uintptr(0))]byte = [unsafe.Sizeof(cell{})]byte{}

const objects = 2500 // some spans full

// collectUntil collects until f returns true. It fails shortly before the test program is ended.
func collectUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline, limited := t.Deadline()
	for ; ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if f() {
			return
		}
		if limited && time.Until(deadline) < 5*time.Second {
			t.Fatalf("still not: %s", what)
		}
	}
}

// counts counts what ran for each of several objects.
type counts []atomic.Int32

// are reports whether all are as wanted.
func (c counts) are(want func(i int) int32) bool {
	for i := range c {
		if c[i].Load() != want(i) {
			return false
		}
	}
	return true
}

func once(int) int32 { return 1 }

// orders are orders in which objects of a span are visited.
var orders = map[string]func(n int) []int{
	"ascending": ascending,
	"descending": func(n int) []int {
		order := ascending(n)
		slices.Reverse(order)
		return order
	},
	"random": rand.Perm,
	"back and forth": func(n int) []int {
		var order []int
		for i := range (n + 1) / 2 {
			order = append(order, i)
			if j := n - 1 - i; j != i {
				order = append(order, j)
			}
		}
		return order
	},
}

func ascending(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// inOrders runs a test with each order, in a goroutine of its own, so that no stack
// keeps an object.
func inOrders(t *testing.T, test func(t *testing.T, order []int)) {
	for name, order := range orders {
		t.Run(name, func(t *testing.T) { test(t, order(objects)) })
	}
}

func apart(f func()) {
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// The environment says that the runtime is changed.
func TestRuntime(t *testing.T) {
	if want := os.Getenv("SPLICE_TEST_CHANGED") != ""; built.Changed() != want {
		t.Errorf("the runtime is changed: %t, want %t", built.Changed(), want)
	}
}

// A stopped cleanup never runs, any other once, and not before its object is
// dropped. Of several that one object has, each is stopped by itself.
func TestCleanups(t *testing.T) {
	inOrders(t, func(t *testing.T, order []int) {
		first, second := make(counts, objects), make(counts, objects)
		kept := make([]*cell, objects)
		apart(func() {
			stops := make([]runtime.Cleanup, objects)
			for i := range kept {
				kept[i] = new(cell)
			}
			for _, i := range order {
				stops[i] = runtime.AddCleanup(kept[i], func(i int) { first[i].Add(1) }, i)
				runtime.AddCleanup(kept[i], func(i int) { second[i].Add(1) }, i)
			}
			for _, i := range order {
				if i%3 == 0 {
					stops[i].Stop()
				}
			}
			runtime.GC()
			if !first.are(func(int) int32 { return 0 }) {
				t.Error("a cleanup ran for an object that is there")
			}
			for i := range kept {
				if i%2 == 0 {
					kept[i] = nil
				}
			}
		})
		collectUntil(t, "cleanups ran for half of the objects", func() bool {
			return second.are(func(i int) int32 { return int32(1 - i%2) })
		})
		runtime.KeepAlive(kept)
		kept = nil
		collectUntil(t, "all cleanups ran", func() bool { return second.are(once) })
		collectUntil(t, "all that were not stopped ran", func() bool {
			return first.are(func(i int) int32 {
				if i%3 == 0 {
					return 0
				}
				return 1
			})
		})
	})
}

// A finalizer runs once; one that was removed never does, and one that is set
// again by a finalizer runs again.
func TestFinalizers(t *testing.T) {
	inOrders(t, func(t *testing.T, order []int) {
		runs := make(counts, objects)
		var finalize func(o *object)
		finalize = func(o *object) {
			if o.self != o {
				t.Error("a finalizer got an object that is not whole")
			}
			if runs[o.id].Add(1) == 1 && o.id%5 == 1 {
				runtime.SetFinalizer(o, finalize)
			}
		}
		apart(func() {
			all := make([]*object, objects)
			for i := range all {
				all[i] = &object{id: i}
				all[i].self = all[i]
			}
			for _, i := range order {
				runtime.SetFinalizer(all[i], finalize)
			}
			for _, i := range order {
				if i%5 == 0 {
					runtime.SetFinalizer(all[i], nil)
				}
			}
		})
		collectUntil(t, "the finalizers ran", func() bool {
			return runs.are(func(i int) int32 { return []int32{0, 2, 1, 1, 1}[i%5] })
		})
	})
}

// If an object points to another, its finalizer runs first.
func TestFinalizersInOrder(t *testing.T) {
	type link struct {
		next *link
		id   int
	}
	const links = 20
	var mu sync.Mutex
	var ran []int
	apart(func() {
		var head *link
		for i := range links {
			head = &link{next: head, id: i}
			runtime.SetFinalizer(head, func(l *link) {
				mu.Lock()
				defer mu.Unlock()
				ran = append(ran, l.id)
			})
		}
	})
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(ran) == links
	}
	collectUntil(t, "the finalizers of a list ran", done)
	want := ascending(links)
	slices.Reverse(want)
	if !slices.Equal(ran, want) {
		t.Errorf("finalizers of a list ran in the order %v", ran)
	}
}

// A weak pointer is the same each time that it is made, gives the object as long
// as it is there, and nil when it is gone, before its finalizer runs.
func TestWeakPointers(t *testing.T) {
	inOrders(t, func(t *testing.T, order []int) {
		weaks := make([]weak.Pointer[object], objects)
		words := make([]weak.Pointer[int], objects) // to another offset
		runs := make(counts, objects)
		kept := make([]*object, objects)
		apart(func() {
			for i := range kept {
				kept[i] = &object{id: i}
			}
			for _, i := range order {
				if i%2 == 0 {
					runtime.SetFinalizer(kept[i], func(o *object) {
						if weaks[o.id].Value() != nil || words[o.id].Value() != nil {
							t.Error("a weak pointer outlives its object")
						}
						runs[o.id].Add(1)
					})
				}
				weaks[i] = weak.Make(kept[i])
				runtime.AddCleanup(kept[i], func(i int) { runs[i].Add(1) }, i)
				words[i] = weak.Make(&kept[i].id)
			}
			for _, i := range order {
				if weaks[i] != weak.Make(kept[i]) || words[i] != weak.Make(&kept[i].id) {
					t.Error("a weak pointer is not the same again")
				}
				if weaks[i].Value() != kept[i] || words[i].Value() != &kept[i].id {
					t.Error("a weak pointer is to another object")
				}
			}
		})
		runtime.GC()
		for i := range kept {
			if weaks[i].Value() != kept[i] {
				t.Fatal("a weak pointer lost its object")
			}
		}
		kept = nil
		collectUntil(t, "weak pointers are nil", func() bool {
			for i := range weaks {
				if weaks[i].Value() != nil || words[i].Value() != nil {
					return false
				}
			}
			return true
		})
		collectUntil(t, "finalizers and cleanups ran", func() bool {
			return runs.are(func(i int) int32 { return 2 - int32(i%2) })
		})
	})
}

// An object that is pinned several times is there until it is unpinned as often.
func TestPins(t *testing.T) {
	inOrders(t, func(t *testing.T, order []int) {
		order = order[:objects/5]
		runs := make(counts, objects)
		var pins [3]runtime.Pinner
		apart(func() {
			all := make([]*object, objects)
			for i := range all {
				all[i] = &object{id: i}
			}
			for _, i := range order {
				runtime.AddCleanup(all[i], func(i int) { runs[i].Add(1) }, i)
				for p := range pins {
					pins[p].Pin(all[i])
				}
			}
		})
		for p := range pins {
			runtime.GC()
			if !runs.are(func(int) int32 { return 0 }) {
				t.Fatalf("pinned objects went after they were unpinned %d times of %d", p, len(pins))
			}
			pins[p].Unpin()
		}
		pinned := make([]int32, objects)
		for _, i := range order {
			pinned[i] = 1
		}
		collectUntil(t, "what was pinned is gone", func() bool {
			return runs.are(func(i int) int32 { return pinned[i] })
		})
	})
}

// A profiled object has a size that nothing else has which is allocated beside it.
type profiled struct {
	//lint:ignore U1000 it is there to be a pointer
	p *profiled
	_ [192]byte
}

const profiledClass = 208 // bytes that the allocator has for one

var profiledSink *profiled

//go:noinline
func allocateProfiled() {
	for range objects {
		profiledSink = new(profiled)
		runtime.AddCleanup(profiledSink, func(int) {}, 0)
	}
	profiledSink = nil
}

// Of what was allocated, the profile of the heap knows that all is free.
func TestProfile(t *testing.T) {
	apart(allocateProfiled)
	var allocated, free int64
	collectUntil(t, "the profile has all allocations, and all are free", func() bool {
		allocated, free = profileOf("specialstest.allocateProfiled")
		return allocated >= objects && free == allocated
	})
}

// profileOf returns how many profiled objects a function has allocated, and how
// many of these are free.
func profileOf(function string) (allocated, free int64) {
	n, _ := runtime.MemProfile(nil, true)
	records := make([]runtime.MemProfileRecord, n+100) // there may be more by now
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		return 0, 0
	}
	for _, r := range records[:n] {
		if r.AllocBytes == profiledClass*r.AllocObjects && hasFrame(r.Stack(), function) {
			allocated += r.AllocObjects
			free += r.FreeObjects
		}
	}
	return allocated, free
}

func hasFrame(stack []uintptr, function string) bool {
	for frames := runtime.CallersFrames(stack); ; {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// A WaitGroup belongs to the bubble that it is first used in.
func TestBubbles(t *testing.T) {
	groups := make([]*sync.WaitGroup, objects)
	for i := range groups {
		groups[i] = new(sync.WaitGroup)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, i := range rand.Perm(objects) {
			groups[i].Go(func() {})
			groups[i].Wait()
		}
	})
	synctest.Test(t, func(t *testing.T) {
		for _, g := range groups {
			g.Go(func() {})
			g.Wait()
		}
	})
}

// Goroutines do all of it at once, to objects that they share, with collections
// in between.
func TestHammer(t *testing.T) {
	const (
		workers = 4
		shared  = 2000
		steps   = 8000
	)
	var registered, ran atomic.Int64
	all := make([]atomic.Pointer[object], shared)
	for i := range all {
		all[i].Store(&object{id: i})
	}
	work := func() {
		for step := range steps {
			i := rand.IntN(shared)
			if rand.IntN(4) == 0 { // a neighbour
				i = step % shared
			}
			o := all[i].Load()
			switch rand.IntN(6) {
			case 0:
				all[i].Store(&object{id: i})
			case 1:
				registered.Add(1)
				runtime.AddCleanup(o, func(int) { ran.Add(1) }, i)
			case 2:
				runtime.AddCleanup(o, func(int) { t.Error("a stopped cleanup ran") }, i).Stop()
			case 3:
				if p := weak.Make(o); p.Value() != o || weak.Make(o) != p {
					t.Error("a weak pointer is not the same again")
				}
				if word := weak.Make(&o.id); word.Value() != &o.id {
					t.Error("a weak pointer is to another word")
				}
			case 4:
				var a, b runtime.Pinner
				a.Pin(o)
				b.Pin(o)
				a.Unpin()
				b.Unpin()
			case 5:
				fresh := &object{id: i}
				registered.Add(1)
				runtime.SetFinalizer(fresh, func(*object) { ran.Add(1) })
				all[i].Store(fresh)
			}
			if step%2000 == 0 {
				runtime.GC()
			}
			runtime.KeepAlive(o)
		}
	}
	apart(func() {
		var wg sync.WaitGroup
		for range workers {
			wg.Go(work)
		}
		wg.Wait()
		for i := range all {
			all[i].Store(nil)
		}
	})
	collectUntil(t, "everything that was registered ran", func() bool { return ran.Load() == registered.Load() })
}
