package heap

import (
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// found returns what readHeaps counts of h, or nil.
func found(h *Heap) *census.Heap {
	var all census.Heaps
	readHeaps(&all)
	for i := range all.List {
		if all.List[i].ID == uint64(h.id) {
			return &all.List[i]
		}
	}
	return nil
}

// TestCensusEqualsStats compares the counts that are read without locks with Stats, with
// caches of Ps and of a Local, with and without
// blocks that are sampled, and of a heap with a CheckLevel.
func TestCensusEqualsStats(t *testing.T) {
	for _, rate := range []int64{0, 2000} {
		t.Run(strconv.FormatInt(rate, 10), func(t *testing.T) {
			defer sample.SetRate(sample.SetRate(rate))
			compareCensus(t, Options{Name: "census"})
		})
	}
	t.Run("checked", func(t *testing.T) { compareCensus(t, Options{Name: "census", Check: CheckBlocks}) })
}

func compareCensus(t *testing.T, o Options) {
	h := NewHeap(t, o)
	l := h.NewLocal()
	var blocks []unsafe.Pointer
	for i := range 3000 {
		blocks = append(blocks, h.Malloc(i), l.Malloc(i%500))
	}
	blocks = append(blocks, h.Malloc(100<<10))
	for i := 0; i < len(blocks); i += 3 {
		h.Free(blocks[i])
	}
	compare := func() {
		t.Helper()
		c, s := found(h), h.Stats()
		if c == nil || c.Busy {
			t.Fatalf("readHeaps found %+v", c)
		}
		cached := int64(0)
		for i, k := range c.Classes {
			cached += k.Cached * int64(sizeclass.Classes[i].Size)
		}
		if c.Blocks != s.Blocks || c.Bytes != s.Bytes || c.Mallocs != s.Mallocs || c.Frees != s.Frees || cached != s.Cached || c.Caches != int64(s.Caches) || c.Held != s.Held {
			t.Errorf("%d blocks, %d bytes, %d mallocs, %d frees, %d bytes cached, %d caches, %d held; Stats says %+v", c.Blocks, c.Bytes, c.Mallocs, c.Frees, cached, c.Caches, c.Held, s)
		}
	}
	compare()
	l.Destroy()
	compare()
	h.Trim()
	compare()
	for i, p := range blocks {
		if i%3 != 0 {
			h.Free(p)
		}
	}
	compare()
	var before, after census.Heaps
	readHeaps(&before)
	large := found(h).LargeMallocs
	testcall.Must(t, h.Destroy())
	if c := found(h); c != nil {
		t.Errorf("readHeaps found %+v, which is destroyed", c)
	}
	if readHeaps(&after); after.Destroyed != before.Destroyed+1 || after.GoneLarge != before.GoneLarge+large || large == 0 {
		t.Errorf("%d heaps are destroyed that had %d large blocks, want 1 with %d", after.Destroyed-before.Destroyed, after.GoneLarge-before.GoneLarge, large)
	}
}

// TestCensusDoesNotWait reads while locks of the heap are held.
func TestCensusDoesNotWait(t *testing.T) {
	testheap.WithRate(t, 0) // it looks at lists of blocks that are not sampled
	h := NewHeap(t, Options{})
	h.Free(h.Malloc(100))
	read := func(locks ...*sync.Mutex) (c *census.Heap) {
		t.Helper()
		for _, mu := range locks {
			mu.Lock()
			defer mu.Unlock() // also if readHeaps waits: then the test ends, and destroys h
		}
		testwait.Return(t, "readHeaps", func() { c = found(h) })
		return c
	}
	if c := read(&h.seize); c == nil || !c.Busy || c.Held == 0 {
		t.Errorf("while seize is held: %+v", c)
	}
	if unsafe.Sizeof(uintptr(0)) == 8 { // else it takes the lock of a class
		locks := []*sync.Mutex{&h.large.mu}
		for i := range h.classes {
			locks = append(locks, &h.classes[i].mu)
		}
		if c := read(locks...); c == nil || c.Busy || c.Mallocs != 1 {
			t.Errorf("while the locks of the classes are held: %+v", c)
		}
	}
}
