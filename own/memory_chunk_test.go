package own

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestChunkComesBack closes the blocks of batches one by one. The chunk goes back
// with the last.
func TestChunkComesBack(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	var all []*Bytes
	for range 5000 {
		all = append(all, newBytes(t, m, 100))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, b := range all {
		b.Close()
		b.Close()
	}
	// Only open batches need a collection.
	if n, shards := h.Stats().Blocks, int64(runtime.GOMAXPROCS(0)+1); n > shards {
		t.Errorf("%d chunks are there, with %d shards", n, shards)
	}
	mustBeEmpty(t, h)
	runtime.KeepAlive(all)
}

// TestForgottenMemoryComesBack forgets all sorts of blocks, of which some were
// closed.
func TestForgottenMemoryComesBack(t *testing.T) {
	for _, o := range []MemoryOptions{{}, {Batch: 1}, {Trace: true}, {OnCollect: func(Collected) {}}} {
		h := newHeap(t)
		m := NewMemory(h, o)
		testcall.Aside(func() {
			for i := range times(20_000) {
				x := newMem[[100]byte](t, m)
				b := newBytes(t, m, i%2000)
				if i%5000 == 0 {
					newBytes(t, m, 100_000)
				}
				switch i % 3 {
				case 0:
					x.Close()
				case 1:
					b.Close()
				}
			}
		})
		collectAtMost(t, few, "forgotten blocks", func() bool { return h.Stats().Blocks == 0 })
		wait(t, "the account has none", func() bool { return m.Stats().Live == 0 })
		if st := m.Stats(); st.Bytes != 0 || st.Collected == 0 {
			t.Errorf("%+v", st)
		}
		testcall.Want(t, m.CloseWait(waiting(0)))
	}
}

// TestMemoryPins keeps one block alive in a row of many, and finds no more than
// what the bound allows.
func TestMemoryPins(t *testing.T) {
	for _, pinned := range []int{0, 1000, 4096} {
		for _, size := range []int{16, 100, 900, 10_000, 100_000} {
			h := newHeap(t)
			m := NewMemory(h, MemoryOptions{Pinned: pinned})
			var kept []*Bytes
			total := times(30 << 20)
			testcall.Aside(func() {
				for i := range total / max(size, 200) {
					b := newBytes(t, m, size)
					if i%300 == 0 {
						kept = append(kept, b)
					}
				}
			})
			bound := int64(len(kept)) * int64(max(pinned, size+16, map[bool]int{true: defaultPinned}[pinned == 0]))
			bound += bound / 4 // blocks of the heap are larger than requested by up to that much
			collectAtMost(t, few, fmt.Sprintf("blocks of %d with Pinned %d beyond %d bytes", size, pinned, bound), func() bool {
				return h.Stats().Bytes <= bound && h.Stats().Blocks <= int64(len(kept))
			})
			for _, b := range kept {
				if b.Len() != size {
					t.Fatal("a kept block is gone")
				}
			}
			runtime.KeepAlive(kept)
		}
	}
}

// TestFewBlocksHoldLittle: a chunk is as large as its Memory is busy.
func TestFewBlocksHoldLittle(t *testing.T) {
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	var all []*Bytes
	for range 3 {
		all = append(all, newBytes(t, m, 100))
	}
	if st := h.Stats(); st.Bytes > 3*(2<<10) { // the goroutine may have been on three Ps
		t.Errorf("three blocks of 100 bytes hold %d", st.Bytes)
	}
	runtime.KeepAlive(all)
}

// TestUncarve makes and closes blocks one after the other, all at the same
// address.
func TestUncarve(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	quietly(t, func() {
		inLargeBatch(t, m)
		first := newBytes(t, m, 0)
		where := first.owner.address()
		for range 20 {
			b := newBytes(t, m, 50)
			c := newBytes(t, m, 500)
			if b.owner.address() != where+16 || c.owner.address() != where+16+64 {
				t.Errorf("blocks are at %#x and %#x, behind one at %#x", b.owner.address(), c.owner.address(), where)
			}
			c.Close()
			b.Close()
			b.Close()
		}
		// A block that is closed out of order makes no room.
		b, c := newBytes(t, m, 50), newBytes(t, m, 50)
		b.Close()
		d := newBytes(t, m, 50)
		if d.owner.address() == where+16 {
			t.Error("the first of two was used again before the second was closed")
		}
		// In Use, nothing makes room.
		d.Use(func([]byte) {
			d.Close()
			if e := newBytes(t, m, 50); e.owner.address() <= where+16+128 {
				t.Error("a block in Use was used again")
			} else {
				e.Close()
			}
		})
		c.Close()
		first.Close()
	})
}

// TestChunkBeginsAnew: where all blocks of an open batch are closed, whatever the
// order, the next one that finds no place begins at the front.
func TestChunkBeginsAnew(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{})
	quietly(t, func() {
		chunk := inLargeBatch(t, m)
		where := uintptr(0)
		for range 20 {
			a := newBytes(t, m, chunk/2)
			if where == 0 {
				where = a.owner.address()
			} else if a.owner.address() != where {
				t.Errorf("a block is at %#x, the first was at %#x", a.owner.address(), where)
			}
			b, c := newBytes(t, m, chunk/5), newBytes(t, m, chunk/5)
			a.Close()
			b.Close()
			c.Close()
		}
	})
}
