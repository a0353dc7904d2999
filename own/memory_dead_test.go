package own

import (
	"runtime"
	"sync"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestDeadMemoryIsCountedOnce has batches of a Memory die while some of their blocks are
// closed, or have children, or while the Memory is destroyed. Nothing is left, and nothing
// is counted twice.
func TestDeadMemoryIsCountedOnce(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	w := newWorld(t, 100_000)
	children := w.pool(Options{Name: "children"})
	for i := range times(80) {
		m := NewMemory(h, MemoryOptions{})
		var wg sync.WaitGroup
		wg.Go(func() { // the last owner of a batch is closed, and is garbage while it is
			for range 20 {
				b, err := m.NewBytes(50)
				if err != nil {
					return // destroyed
				}
				runtime.Gosched()
				b.Close()
			}
		})
		testcall.Aside(func() {
			for k := range 100 {
				b, err := m.NewBytes(100)
				if err != nil {
					t.Error(err)
					return
				}
				switch {
				case i%3 == 1 && k == 50:
					b.Close()
				case i%3 == 2 && k == 50:
					child := &thing{cell: w.create(16)}
					testcall.Want(t, child.OwnWith(children, child.cell.pointer(), With{Size: 16, Parent: b.Owner()}))
				}
			}
		})
		wg.Go(runtime.GC)
		if i%2 == 0 {
			wg.Wait()
			collectAtMost(t, few, "the blocks", func() bool { return m.Stats().Live == 0 })
			if st := m.Stats(); st.Bytes != 0 || st.Collected < 98 || st.Collected > 120 {
				t.Fatalf("round %d: %+v", i, st)
			}
		}
		m.CloseWait(patient(t)) // its error counts owners that were never closed
		wg.Wait()
		collectAtMost(t, few, "all", func() bool { return m.Stats().Live == 0 && h.Stats().Blocks == 0 })
		if st := m.Stats(); st.Bytes != 0 || st.Collected > 120 {
			t.Fatalf("round %d: %+v", i, st)
		}
	}
	collectAtMost(t, few, "the children", func() bool { return w.alive() == 0 })
	mustDestroy(t, children)
	testcall.Want(t, h.Destroy())
}

// TestSmallMemoryIsZeroed makes blocks of all sizes around the largest that is zeroed
// while the goroutine is pinned, in space that was written to.
func TestSmallMemoryIsZeroed(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	m := NewMemory(h, MemoryOptions{})
	for size := 1; size <= 300; size++ {
		for round := range 20 {
			b, err := m.NewBytes(size)
			testcall.Must(t, err)
			b.Use(func(data []byte) {
				if len(data) != size {
					t.Fatalf("%d bytes, want %d", len(data), size)
				}
				for i := range data {
					if data[i] != 0 {
						t.Fatalf("size %d: byte %d is %#x", size, i, data[i])
					}
					data[i] = 0xaa
				}
			})
			if round%2 == 0 {
				b.Close() // makes room for the next one
			}
		}
	}
	if err := m.CloseWait(patient(t)); err == nil {
		t.Error("nothing was left open")
	}
	testcall.Want(t, h.Destroy())
}
