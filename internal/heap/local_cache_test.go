package heap

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// only yields one heap.
func only(h *Heap) func(func(*Heap) bool) { return func(yield func(*Heap) bool) { yield(h) } }

// useLocal takes blocks of many classes from l, and frees them.
func useLocal(l *Local) {
	var blocks []unsafe.Pointer
	for i := range 20 {
		blocks = append(blocks, l.Malloc(16+i*100))
	}
	testheap.FreeAll(l, blocks)
}

// TestLocalRests looks at Locals twice, as two ticks of the decay do. One that has not moved
// between has no memory of the heap then; another keeps its cache. The first one works on.
func TestLocalRests(t *testing.T) {
	testheap.SetDecay(t, -1) // the test makes the ticks
	testheap.WithRate(t, 0)
	h := NewHeap(t, Options{})
	watched := span.Watched()
	rests, moves, never := h.NewLocal(), h.NewLocal(), h.NewLocal()
	tick := func() { seizeLocals(only(h), (*localCache).rests) }
	for round := range 3 {
		useLocal(rests)
		useLocal(moves)
		live := rests.Malloc(300)
		shadow.Fill(live, 300, 5)
		if s := h.Stats(); s.Cached == 0 || span.Watched()-watched < 2 {
			t.Fatalf("round %d: %+v, %d caches are watched", round, s, span.Watched()-watched)
		}
		tick()
		if !rests.c.has() || round == 0 && !never.c.has() {
			t.Fatalf("round %d: a Local lost its cache at the first tick", round)
		}
		useLocal(moves)
		tick() // the second one finds those at rest
		if rests.c.has() || never.c.has() {
			t.Fatalf("round %d: a Local that rests has a cache", round)
		}
		if !moves.c.has() {
			t.Fatalf("round %d: a Local that moves lost its cache", round)
		}
		mallocs := h.Stats().Mallocs
		if err := shadow.Check(live, 300, 5); err != nil {
			t.Fatalf("a block in use: %v", err)
		}
		rests.Free(live)
		if s := h.Stats(); s.Blocks != 0 || s.Mallocs != mallocs || !rests.c.has() {
			t.Fatalf("round %d: %+v, %d mallocs before; Free brings the cache back", round, s, mallocs)
		}
	}
	h.Trim()
	if s := h.Stats(); s.Cached != 0 || s.Caches != 0 || s.Held != 0 || span.Watched() != watched {
		t.Errorf("after Trim: %+v, %d caches are watched", s, span.Watched()-watched)
	}
	for _, l := range []*Local{rests, moves, never} {
		l.Destroy()
	}
	MustHoldNothing(t, h)
}

// TestTrimTakesLocals has Trim empty the Locals of all heaps that no goroutine is in.
func TestTrimTakesLocals(t *testing.T) {
	testheap.SetDecay(t, -1)
	for range 2 {
		h := NewHeap(t, Options{})
		l := h.NewLocal()
		useLocal(l)
		defer func() {
			if s := h.Stats(); s.Cached != 0 || l.c.has() {
				t.Errorf("after Trim: %+v", s)
			}
			l.Destroy()
		}()
	}
	Trim()
}

// TestLocalDecay leaves the work to the decay: a Local that rests loses its blocks, and then no
// timer is armed for it.
func TestLocalDecay(t *testing.T) {
	testheap.SetDecay(t, 1<<20) // a millisecond
	h, l := NewHeapAndLocal(t, Options{})
	for range 3 {
		useLocal(l)
		testwait.Until(t, "the Local has no cache", func() bool { return h.Stats().Caches == 0 })
	}
}

// TestLocalDecayOff turns the decay off with a Local that rests, which loses its cache.
func TestLocalDecayOff(t *testing.T) {
	testheap.SetDecay(t, -1)
	_, l := NewHeapAndLocal(t, Options{})
	useLocal(l)
	testheap.SetDecay(t, 0)
	if l.c.has() {
		t.Error("the Local has a cache")
	}
}

// TestLocalSeizedTwice has a tick of the decay choose a Local that another call of seizeLocals has
// chosen. Behind that call the Local has no cache, wherever the tick is, and the tick then leaves
// the Local alone.
func TestLocalSeizedTwice(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	h, l := NewHeapAndLocal(t, Options{})
	useLocal(l)
	var tick []seizure
	seizeLocals(func(yield func(*Heap) bool) {
		yield(h)
		tick = h.divertLocals(nil, seizures.Add(1), anyLocal)
	}, anyLocal)
	if len(tick) != 1 || l.c.has() {
		t.Errorf("the tick chose %v; the Local has a cache: %v", tick, l.c.has())
	}
	useLocal(l)
	for _, s := range tick {
		s.c.dropOf(s.round)
	}
	if !l.c.has() {
		t.Error("the tick has taken the cache that the Local has got since")
	}
}

// TestLocalRestsInDestroy destroys heaps with an open Local. Where it has a cache, its goroutine may
// be about to read a block of it, so the units of these are not used again. Where it has none, they
// are.
func TestLocalRestsInDestroy(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	for _, rests := range []bool{true, false} {
		before, _ := span.InUse()
		h, err := New(Options{})
		testcall.Must(t, err)
		l := h.NewLocal()
		useLocal(l)
		if rests {
			h.Trim()
			h.Free(h.Malloc(100))
		}
		testcall.Must(t, h.Destroy())
		if after, _ := span.InUse(); (after == before) != rests {
			t.Errorf("rests: %v; %d units are in use, before %d", rests, after, before)
		}
		for _, use := range []func(){func() { l.Malloc(100) }, func() { l.Calloc(1, 100) }, func() { l.Realloc(nil, 100) }} {
			if _, ok := testcall.Catch(use).(*MisuseError); !ok {
				t.Errorf("rests: %v; the Local works", rests)
			}
		}
		l.Destroy()
	}
}

// TestLocalComesBack has the goroutine of a Local come between the steps in which its cache is
// taken.
func TestLocalComesBack(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	for name, comes := range map[string]func(h *Heap, l *Local) (keeps bool){
		"not": func(*Heap, *Local) bool { return false },
		"Malloc": func(h *Heap, l *Local) bool {
			h.Free(l.Malloc(100))
			return true
		},
		"Free": func(h *Heap, l *Local) bool {
			l.Free(h.Malloc(100))
			return true
		},
		"Calloc and Realloc": func(h *Heap, l *Local) bool {
			h.Free(l.Realloc(l.Calloc(10, 10), 500))
			return true
		},
		"Destroy": func(h *Heap, l *Local) bool {
			l.Destroy()
			return false
		},
		"another seizure": func(h *Heap, l *Local) bool {
			seizeLocals(only(h), anyLocal)
			return false
		},
		"another first step": func(h *Heap, l *Local) bool {
			h.divertLocals(nil, seizures.Add(1), anyLocal)
			return false
		},
		"another first step and Malloc": func(h *Heap, l *Local) bool {
			h.divertLocals(nil, seizures.Add(1), anyLocal)
			h.Free(l.Malloc(100))
			return true
		},
		"Malloc and another first step": func(h *Heap, l *Local) bool {
			h.Free(l.Malloc(100))
			h.divertLocals(nil, seizures.Add(1), anyLocal)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHeap(t, Options{})
			l := h.NewLocal()
			useLocal(l)
			picked := h.divertLocals(nil, seizures.Add(1), anyLocal)
			if len(picked) != 1 || picked[0].l != l || l.k != &noCache {
				t.Fatalf("chose %v", picked)
			}
			keeps := comes(h, l)
			picked[0].c.dropOf(picked[0].round)
			if l.c.has() != keeps {
				t.Errorf("has a cache: %v, want %v", !keeps, keeps)
			}
			if !l.closed {
				useLocal(l)
			}
			if s := h.Stats(); s.Blocks != 0 {
				t.Errorf("%+v", s)
			}
			l.Destroy()
			MustHoldNothing(t, h)
		})
	}
}

// TestLocalInside takes the caches of Locals while the goroutine of one is in it.
func TestLocalInside(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	h := NewHeap(t, Options{})
	l, other := h.NewLocal(), h.NewLocal()
	useLocal(l)
	useLocal(other)
	l.in = true
	k := l.k
	seizeLocals(only(h), anyLocal)
	if !l.c.has() || !cacheAt(l.c.slot).hasBlocks() || other.c.has() {
		t.Error("the wrong Local has lost its cache")
	}
	l.in = false
	mallocs := h.Stats().Mallocs
	l.Free(l.Malloc(100))
	if l.k != k || h.Stats().Mallocs != mallocs+1 {
		t.Error("it has not come back to its cache")
	}
	// A panic in the slow path does not leave it inside.
	testcall.Catch(func() { l.Free(unsafe.Pointer(&global)) })
	testcall.Catch(func() { l.Malloc(-1) })
	testcall.Catch(func() { l.Realloc(unsafe.Pointer(&global), 5) })
	// Nor does a method that only empties the cache.
	p := h.Malloc(100)
	useLocal(l)
	l.c.flush.Store(true)
	l.UsableSize(p)
	h.Free(p)
	h.Trim()
	if l.c.has() {
		t.Error("the Local is still inside")
	}
	l.Destroy()
	other.Destroy()
	MustHoldNothing(t, h)
}

// TestLocalNoCacheAgain lets a Local that has rested come back where the limit leaves no room for
// a cache. It works through the heap, and has a cache some time after there is room.
func TestLocalNoCacheAgain(t *testing.T) {
	testheap.SetDecay(t, -1)
	testheap.WithRate(t, 0)
	h, l := NewHeapAndLocal(t, Options{Limit: 1 << 20})
	useLocal(l)
	h.Trim()
	var blocks []unsafe.Pointer
	for size := 256 << 10; size > 4096; size /= 2 {
		for {
			p := h.Malloc(size)
			if p == nil {
				break
			}
			blocks = append(blocks, p)
		}
	}
	refuse := h.account.Limit() - h.account.Held()
	if refuse >= cacheBytes && !h.account.TryCharge(refuse) {
		t.Fatal("no room to take")
	}
	l.Free(blocks[0])
	if l.c.has() {
		t.Fatal("a cache beyond the limit")
	}
	if refuse >= cacheBytes {
		h.account.Uncharge(refuse)
	}
	testheap.FreeAll(h, blocks[1:])
	for range 2 * mostMisses {
		l.Free(l.Malloc(100))
	}
	if !l.c.has() {
		t.Error("no cache where there is room")
	}
}
