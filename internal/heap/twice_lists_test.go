package heap

import (
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// A pair is a heap with two Locals, and a span of it that is in use from end to end.
type pair struct {
	t      *testing.T
	h      *Heap
	a, b   *Local
	blocks []uintptr // all blocks of the span, in the order of their addresses
	class  *class
	span   *span.Span
}

const pairSize = 512

func newPair(t *testing.T) *pair {
	t.Helper()
	testheap.SetDecay(t, -1) // the caches of Locals that are idle would be taken
	h, err := New(Options{})
	testcall.Must(t, err)
	c := sizeclass.Of(pairSize)
	w := &pair{t: t, h: h, a: h.NewLocal(), b: h.NewLocal(), class: &h.classes[c]}
	for range sizeclass.Classes[c].Blocks {
		w.blocks = append(w.blocks, uintptr(w.a.Malloc(pairSize)))
	}
	w.a.empty()
	slices.Sort(w.blocks)
	w.span = span.Find(w.blocks[0])
	if first, last := w.blocks[0], w.blocks[len(w.blocks)-1]; first != w.span.Base || last-first != uintptr(len(w.blocks)-1)*pairSize {
		t.Fatalf("blocks from %#x to %#x", first, last)
	}
	// Lists have room.
	for _, l := range []*Local{w.a, w.b} {
		l.Free(l.Malloc(pairSize))
		l.empty()
		l.k.class(c).setCapacity(int64(sizeclass.Classes[c].Magazine))
	}
	return w
}

// free frees blocks in l.
func (w *pair) free(l *Local, blocks ...uintptr) {
	for _, p := range blocks {
		l.Free(osmem.Pointer(p))
	}
}

// sortAll sorts the blocks of a, and the batches that the class has got from it.
func (w *pair) sortAll() {
	w.a.empty()
	w.class.sortMagazines(w.h, sizeclass.Of(pairSize))
}

// push puts a block on the list of l, as the second of two calls of Free does.
func (w *pair) push(l *Local, p uintptr) {
	if !l.k.class(sizeclass.Of(pairSize)).push(p) {
		w.t.Fatalf("no room")
	}
}

// mustNotice runs f, which has to panic about the block at p with that word.
func (w *pair) mustNotice(p uintptr, word string, f func()) {
	w.t.Helper()
	e, ok := testcall.Catch(f).(*MisuseError)
	if !ok || e.Addr != p || !strings.Contains(e.Reason, word) {
		w.t.Errorf("panic value %v, want a MisuseError about %#x that says %q", e, p, word)
	}
}

// mustHave looks how many blocks the span has back.
func (w *pair) mustHave(n int) {
	w.t.Helper()
	if w.span.LoadTag() != w.class.tag || w.span.NumFree != uint32(n) {
		w.t.Errorf("tag %#x, %d blocks are back; want %#x, %d", w.span.LoadTag(), w.span.NumFree, w.class.tag, n)
	}
}

// TestTwoLists goes through the ways that two lists with one block can take.
func TestTwoLists(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	const twice, written = "freed twice at the same time", "written to"
	for name, f := range map[string]func(w *pair, p, q, r uintptr){
		"both sorted": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, p)
			w.push(w.b, p)
			w.a.empty()
			w.mustHave(1)
			w.mustNotice(p, twice, w.b.empty)
			w.mustHave(1)
		},
		"sorted, then allocated": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, p)
			w.push(w.b, p)
			w.a.empty()
			w.mustNotice(p, written, func() { w.b.Malloc(pairSize) })
			w.mustHave(1)
		},
		"sorted, then allocated by the heap": func(w *pair, p, _, _ uintptr) {
			if percpu.Portable {
				return // the next call may find another cache
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			w.h.Free(w.h.Malloc(pairSize)) // so the P has a cache
			w.h.reclaim()
			w.free(w.a, p)
			k := cacheAt(w.h.caches.Pin())
			k.class(sizeclass.Of(pairSize)).setCapacity(4)
			k.class(sizeclass.Of(pairSize)).push(p)
			w.h.unpin(nil, k)
			w.a.empty()
			w.mustNotice(p, written, func() { w.h.Malloc(pairSize) })
		},
		"sorted, then allocated with an error": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, p)
			w.push(w.b, p)
			w.a.empty()
			w.mustNotice(p, written, func() { w.b.TryMalloc(pairSize) })
			w.mustHave(1)
		},
		"allocated, then sorted": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, p)
			w.push(w.b, p)
			if got := uintptr(w.a.Malloc(pairSize)); got != p {
				w.t.Errorf("Malloc = %#x", got)
			}
			w.mustNotice(p, written, w.b.empty)
			w.mustHave(0)
		},
		"allocated twice": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, p)
			w.push(w.b, p)
			w.a.Malloc(pairSize)
			w.mustNotice(p, written, func() { w.b.Malloc(pairSize) })
		},
		"counted twice": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, p)
			w.sortAll()
			w.span.NumFree++
			w.mustNotice(p, twice, func() { w.b.Malloc(pairSize) })
			w.mustHave(1)
		},
		"a longer list": func(w *pair, p, q, r uintptr) {
			w.free(w.b, q, r)
			w.free(w.a, p)
			w.push(w.b, p) // its link leads to r
			w.mustNotice(p, twice, w.a.empty)
			w.mustHave(1)
			w.mustNotice(p, twice, w.b.empty)
			w.mustHave(1)
		},
		"a shorter list": func(w *pair, p, q, r uintptr) {
			w.free(w.a, q, r, p)
			w.push(w.b, p) // it has no link any more
			w.mustNotice(p, twice, w.a.empty)
			w.mustHave(1)
		},
		"sorted meanwhile": func(w *pair, p, q, _ uintptr) {
			w.free(w.a, p, q)
			w.a.empty()
			w.push(w.b, p)
			w.b.empty() // it counts twice now
			w.mustHave(3)
			w.mustNotice(p, written, func() {
				for range 3 {
					w.h.Malloc(pairSize)
				}
			})
		},
		"sorted meanwhile, then allocated": func(w *pair, p, q, _ uintptr) {
			w.free(w.a, q, p) // p is the first of the list, and of the span's
			w.a.empty()
			w.push(w.b, p)
			w.mustNotice(p, written, func() { w.h.Malloc(pairSize) })
			w.mustHave(0)
		},
		"all but one, of which one twice": func(w *pair, p, q, _ uintptr) {
			for _, each := range w.blocks {
				if each != q {
					w.free(w.a, each)
				}
			}
			w.sortAll()
			w.mustHave(len(w.blocks) - 1)
			w.push(w.b, p)
			w.mustNotice(p, twice, w.b.empty)
			w.mustHave(0) // they are lost
			w.free(w.b, q)
			w.b.empty()
			w.mustHave(1)
		},
		"all, of which one twice": func(w *pair, p, q, _ uintptr) {
			for _, each := range w.blocks {
				if each != q {
					w.free(w.a, each)
				}
			}
			w.sortAll()
			w.push(w.b, p)
			w.free(w.b, q) // both are sorted together, and the count goes beyond all
			w.mustNotice(q, twice, w.b.empty)
			w.mustHave(0) // they are lost
		},
		"all, of which one is written to": func(w *pair, p, q, _ uintptr) {
			for _, each := range w.blocks {
				if each != q {
					w.free(w.a, each)
				}
			}
			w.sortAll()
			block.At(p).Link ^= 1 << 20
			w.free(w.b, q)
			w.mustNotice(p, written, w.b.empty)
			w.mustHave(0)
		},
		"given back meanwhile": func(w *pair, p, _, _ uintptr) {
			w.free(w.a, w.blocks...)
			w.sortAll()
			if w.span.LoadTag() != 0 {
				w.t.Errorf("the span has the tag %#x", w.span.LoadTag())
			}
			block.At(p).SetCached(p, 0, 0, w.class.factor)
			cc := w.b.k.class(sizeclass.Of(pairSize))
			cc.head = p
			cc.setLength(1)
			w.mustNotice(p, twice, w.b.empty)
			if w.span.NumFree != 0 || w.span.LoadTag() != 0 {
				w.t.Errorf("the span has the tag %#x, and %d blocks", w.span.LoadTag(), w.span.NumFree)
			}
		},
		"a length below zero": func(w *pair, p, q, _ uintptr) {
			w.free(w.b, p)
			w.b.k.class(sizeclass.Of(pairSize)).setLength(-1)
			w.free(w.b, q)
			w.mustNotice(q, twice, w.b.empty)
		},
		"not cached": func(w *pair, p, q, _ uintptr) {
			if !w.class.putOne(w.h, w.span, p) || w.class.putOne(w.h, w.span, p) {
				w.t.Error("a block was taken back twice, or never")
			}
			w.mustHave(1)
			w.free(w.a, q)
			if w.class.putOne(w.h, w.span, q) || w.class.putOne(w.h, w.span, q+16) {
				w.t.Error("a block was taken back that is in a list, or the inside of one")
			}
			w.mustHave(1)
			w.free(w.a, slices.DeleteFunc(slices.Clone(w.blocks), func(each uintptr) bool { return each == p || each == q })...)
			w.sortAll()
			block.At(p).Canary = 0
			if w.class.putOne(w.h, w.span, p) {
				w.t.Error("a block was taken back whose span is given back")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPair(t)
			f(w, w.blocks[5], w.blocks[9], w.blocks[2])
			w.h.damaged.Store(nil)
			w.a.Destroy()
			w.b.Destroy()
			w.h.DestroyAll()
		})
	}
}

// TestOvertakenByFree calls what is left of a Free when another goroutine has freed
// the block since the first look at it, and another heap has the memory.
func TestOvertakenByFree(t *testing.T) {
	for _, size := range []int{16, 1024, 32768, 1 << 20, span.OwnMapping} {
		h, other := NewHeap(t, Options{}), NewHeap(t, Options{})
		p := h.Malloc(size)
		s := h.mustOwn("Heap.Free", uintptr(p))
		h.Free(p)
		look := func(when string) {
			t.Helper()
			before := [2]Stats{h.Stats(), other.Stats()}
			if h.freePlain(nil, uintptr(p)) || h.freeLarge(s, uintptr(p)) ||
				size <= sizeclass.MaxSize && h.classes[sizeclass.Of(size)].putOne(h, s, uintptr(p)) {
				t.Errorf("%d bytes, %s: freed again", size, when)
			}
			after := [2]Stats{h.Stats(), other.Stats()}
			before[0].Held, before[0].Caches = after[0].Held, after[0].Caches // it may have made a cache
			if after != before {
				t.Errorf("%d bytes, %s: %+v, before %+v", size, when, after, before)
			}
		}
		look("free")
		h.Trim()
		look("given back")
		var blocks []testheap.Handed
		for i := range 4 {
			blocks = append(blocks, testheap.Wrap(other, size, uint64(i)))
		}
		look("of another heap")
		for _, b := range blocks {
			b.Unwrap(t, other)
		}
	}
}

// TestHammerFreedTwice has two goroutines free the same blocks at the same time.
// Of a large block, one of the calls panics. The other heap notices nothing.
func TestHammerFreedTwice(t *testing.T) {
	if race.Told {
		return // the detector slows one of the goroutines down so far that they do not meet
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	const n = 100
	var blocks [n]unsafe.Pointer
	var h *Heap
	var at, accused [2]atomic.Int64
	free := func(me int) {
		for i, p := range blocks {
			at[me].Store(int64(i) + 1)
			for spins := 0; at[1-me].Load() < int64(i)+1; spins++ {
				if spins > 1000 { // the other one may wait for a processor
					time.Sleep(time.Microsecond)
				}
			}
			if testcall.Catch(func() { h.Free(p) }) != nil {
				accused[me].Add(1)
			}
		}
	}
	turns, done := make(chan bool), make(chan bool)
	defer close(turns)
	go func() {
		for range turns {
			free(1)
			done <- true
		}
	}()
	missed := int64(0)
	rounds := int64(testheap.HammerRounds(30))
	if *testheap.Long {
		rounds *= 10
	}
	for round := int64(1); round <= rounds; round++ {
		size := []int{64, 16, 1024, 20_000, 40_000, 1 << 17}[round%6]
		w := newTwice(t, size, uint64(round))
		h = w.h
		for i := range blocks {
			blocks[i] = h.Malloc(size)
		}
		for i := range at {
			at[i].Store(0)
			accused[i].Store(0)
		}
		turns <- true
		free(0)
		<-done
		noticed := accused[0].Load() + accused[1].Load()
		missed += max(0, n-noticed)
		if size > sizeclass.MaxSize && noticed != n {
			t.Fatalf("%d frees of %d blocks of %d bytes panicked", noticed, n, size)
		}
		w.malloc(w.locals[0], 40)
		w.accused(w.h.Trim)
		w.others()
		w.end()
	}
	t.Logf("%d of %d blocks were freed twice without a panic of Free", missed, n*rounds)
}
