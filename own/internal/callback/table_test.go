package callback

import (
	"bytes"
	"math/bits"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// TestSlotsServeAgain forgets callbacks, and then makes as many again and again.
func TestSlotsServeAgain(t *testing.T) {
	const n = 5000
	k := &Kind{Name: "test"}
	var before uint32
	for round := range 20 {
		places := make([]Place, n)
		for i := range places {
			places[i].Set(k, batch.Ref{}, &places[i])
		}
		if round%2 == 0 {
			for i := range places {
				places[i].Clear()
			}
		}
		runtime.KeepAlive(places)
		runtime.GC()
		if round == 0 {
			before = table.n.Load()
		}
	}
	// At each time n are in use, and n may be dead that no collection has found.
	if all := table.n.Load(); all > before+2*n+2*fewFree {
		t.Errorf("%d slots for %d callbacks, after %d", all, n, before)
	}
	runtime.GC()
	if live, held := k.Count(); live != 0 || held != 0 {
		t.Errorf("%d live, %d held", live, held)
	}
}

// TestReadyCellsAreFew clears many callbacks at once. Their cells do not all stay.
func TestReadyCellsAreFew(t *testing.T) {
	k := &Kind{Name: "test"}
	places := make([]Place, 4*fewReady)
	for i := range places {
		places[i].Set(k, batch.Ref{}, 1)
	}
	for i := range places {
		places[i].Clear()
	}
	if n := table.ready.n; n > 3*fewReady+fewFree {
		t.Errorf("%d cells are kept", n)
	}
}

// TestGenerations uses one slot until its generations are used up.
func TestGenerations(t *testing.T) {
	k := &Kind{Name: "test"}
	others := make([]Place, 3*fewReady) // so many that the slot serves next
	for i := range others {
		others[i].Set(k, batch.Ref{}, 1)
	}
	defer runtime.KeepAlive(others)
	var p Place
	first := p.Set(k, batch.Ref{}, 1)
	i, _ := indexOf(first)
	p.Clear()
	table.mu.Lock()
	table.at(i).gen = maxGen - 1
	table.mu.Unlock()
	if repeats {
		return // the slot waits behind others
	}
	last := p.Set(k, batch.Ref{}, 2)
	if j, ok := indexOf(last); !ok || j != i {
		t.Fatalf("slot %d, want %d", j, i)
	}
	if k.Find(first) != nil || k.Find(last) == nil {
		t.Error("the last generation is not the only one")
	}
	p.Clear()
	next := p.Set(k, batch.Ref{}, 3)
	if j, _ := indexOf(next); j == i {
		t.Error("a slot without generations is used")
	}
	if k.Find(last) != nil {
		t.Error("the last number is there after Clear")
	}
	p.Clear()
}

func TestNumbers(t *testing.T) {
	for _, i := range []uint32{0, 1, firstChunk, 1000, maxSlots - 1} {
		for _, gen := range []uint32{0, 1, maxGen - 1} {
			n := numberOf(i, gen)
			if j, ok := indexOf(n); !ok || j != i {
				t.Errorf("number %#x of %d, %d is of %d, %v", n, i, gen, j, ok)
			}
			if n == ^uintptr(0) || n < 1<<16 {
				t.Errorf("number %#x of %d, %d", n, i, gen)
			}
		}
	}
	for _, n := range []uintptr{0, 1, 4096, ^uintptr(0) >> 1} {
		if _, ok := indexOf(n); ok {
			t.Errorf("%#x is a number", n)
		}
	}
}

// TestChunks compares at with the slots of the chunks in order.
func TestChunks(t *testing.T) {
	var s slots
	i := uint32(0)
	for j := range 8 {
		s.chunks[j] = make([]slot, firstChunk<<j)
		for k := range s.chunks[j] {
			if s.at(i) != &s.chunks[j][k] {
				t.Fatalf("slot %d is not %d of chunk %d", i, k, j)
			}
			i++
		}
	}
}

// TestTooManySlots has a table with a slot for each number, in a chunk that has more.
func TestTooManySlots(t *testing.T) {
	var s slots
	const i = maxSlots - 1
	j := bits.Len32(i/firstChunk+1) - 1
	if wide {
		return // there are more numbers than chunks have slots
	}
	s.chunks[j] = make([]slot, 1) // nothing looks at its slots
	s.n.Store(i)
	if got := s.grow(); got != i {
		t.Fatalf("slot %d, want %d", got, uint32(i))
	}
	defer func() {
		if r := recover(); r != errTooMany {
			t.Errorf("%v in place of a panic", r)
		}
	}()
	t.Errorf("slot %d of %d", s.grow(), uint32(maxSlots))
}

// TestOnePointer fails if weak pointers of this version of Go are not as expected: Call then
// takes a lock.
func TestOnePointer(t *testing.T) {
	if !onePointer {
		t.Error("a weak pointer is not one pointer")
	}
	defer func() { onePointer = true }()
	for _, onePointer = range []bool{true, false} {
		var r reference
		c := new(Cell)
		if r.load().Value() != nil {
			t.Error("the zero reference has a cell")
		}
		r.store(weak.Make(c))
		if r.load() != weak.Make(c) || r.load().Value() != c {
			t.Error("load does not return what store was given")
		}
	}
}

// TestSetAtOnce has two goroutines set a place that has no number. Both get one, and one is given back.
func TestSetAtOnce(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or a number that is not given back is found unreachable
	k := &Kind{Name: "test"}
	var p Place
	var both sync.WaitGroup
	table.mu.Lock()
	for range 2 {
		both.Go(func() { p.Set(k, batch.Ref{}, 1) })
	}
	testwait.Until(t, "both have found no number", func() bool {
		all := make([]byte, 1<<20)
		return bytes.Count(all[:runtime.Stack(all, true)], []byte("callback.(*slots).take(")) == 2
	})
	table.mu.Unlock()
	both.Wait()
	if live, _ := k.Count(); live != 1 {
		t.Errorf("%d numbers are in use", live)
	}
	p.Clear()
}

// TestPlaceModel changes places by one goroutine each, and compares with what they must have.
func TestPlaceModel(t *testing.T) {
	k := &Kind{Name: "test"}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			x := uint32(g)*2654435761 + 1
			places, values := make([]Place, 50), make([]int, 50)
			for step := range 20_000 {
				x = x*1664525 + 1013904223
				i := int(x>>16) % len(places)
				switch x >> 8 % 8 {
				case 0:
					places[i].Clear()
					values[i] = 0
				case 1:
					if values[i] != 0 && !k.Find(places[i].Number()).Hold() {
						t.Errorf("no Hold of a place with %d", values[i])
					}
				case 2:
					if values[i] != 0 {
						k.Find(places[i].Number()).Weaken()
					}
				default:
					values[i] = step + 1
					places[i].Set(k, batch.Ref{}, step+1)
				}
				n := places[i].Number()
				if (n != 0) != (values[i] != 0) {
					t.Errorf("number %#x of a place with %d", n, values[i])
				}
				if n != 0 {
					target := k.Begin(n)
					if target == nil || target.Value != values[i] {
						t.Errorf("%v in place of %d", target, values[i])
					} else {
						target.End()
					}
				}
			}
			for i := range places {
				places[i].Clear()
			}
		})
	}
	all.Wait()
	if live, held := k.Count(); live != 0 || held != 0 {
		t.Errorf("%d live, %d held", live, held)
	}
}

// TestHoldEndsWithOwner closes the owners of callbacks that are held. A Hold ends after the next
// collection, or as soon as the place gets another owner; and a later one ends likewise.
func TestHoldEndsWithOwner(t *testing.T) {
	k := &Kind{Name: "test"}
	var call batch.Spec
	call.Release = func(any, []uintptr) error { return nil }
	ended := func(what string, end func(p *Place) bool) {
		b := batch.New(&call, nil, nil, 1, batch.OneSentinel)
		owner := b.NewSentinels(nil, nil)[0]
		b.Put(0, 1, 0, 0)
		var p Place
		p.Set(k, batch.RefTo(owner, 0), 1)
		if !k.Find(p.Number()).Hold() {
			t.Errorf("%s: no Hold", what)
		}
		owner.Close(0)
		testwait.Until(t, what, func() bool {
			over := end(&p)
			_, held := k.Count()
			return over && held == 0
		})
		p.Clear()
	}
	for range 2 {
		ended("collected", func(*Place) bool { runtime.GC(); return true })
	}
	ended("another owner", func(p *Place) bool { return p.Bind(batch.Ref{}) })
}
