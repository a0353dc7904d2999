package own

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

func TestNewMemoryRefuses(t *testing.T) {
	for option, o := range map[string]MemoryOptions{
		"Options.Batch":  {Batch: -1},
		"Options.Batch ": {Batch: mostBatch + 1},
		"Options.Pinned": {Pinned: -1},
	} {
		mustMisuse(t, "own.NewMemory", func() { NewMemory(nil, o) }, strings.TrimSpace(option))
	}
}

func TestMem(t *testing.T) {
	type point struct {
		X, Y int64
		Name [5]byte
	}
	m := NewMemory(newHeap(t), MemoryOptions{})
	x := newMem[point](t, m)
	if x.Closed() || *x.Get() != (point{}) {
		t.Errorf("a new Mem is %+v, closed: %v", *x.Get(), x.Closed())
	}
	x.Use(func(p *point) { p.X, p.Y = 1, 2 })
	y := *x // a copy is the same block
	y.Use(func(p *point) {
		if *p != (point{X: 1, Y: 2}) || p != x.Get() || x.owner.pointer() != unsafe.Pointer(p) {
			t.Errorf("the copy has %+v", *p)
		}
	})
	y.Close()
	if !x.Closed() || x.Get() != nil || x.owner.pointer() != nil {
		t.Error("open after Close of a copy")
	}
	mustMisuse(t, "own.Memory.Use", func() { x.Use(func(*point) {}) }, "closed")
	mustMisuse(t, "own.Use", func() { new(Mem[int]).Use(func(*int) {}) }, "owns nothing")
	if new(Mem[int]).Get() != nil {
		t.Error("the zero Mem has something")
	}
	runtime.KeepAlive(x)
}

//cheapvet:ignore gopointer each of these types is refused
func TestMemRefusesGoPointers(t *testing.T) {
	type inner struct{ Names []string }
	type outer struct {
		N int
		I inner
	}
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	for range 2 {
		mustMisuse(t, "own.NewMem", func() { NewMem[outer](m) }, "own.outer.I.Names is a slice")
		mustMisuse(t, "own.NewMem", func() { NewMem[*int](m) }, "pointer")
		mustMisuse(t, "own.NewMem", func() { NewMem[string](m) }, "string")
	}
	if n := h.Stats().Mallocs; n != 0 {
		t.Errorf("%d blocks for refused types", n)
	}
}

// TestBytesOfAllSizes makes blocks that fill chunks, exceed them, and are exact,
// writes to all of each, and finds that in the end.
func TestBytesOfAllSizes(t *testing.T) {
	h := newHeap(t)
	for _, o := range []MemoryOptions{{}, {Batch: 1}, {Batch: 7}, {Pinned: 1}, {Pinned: 100}, {Pinned: 5000}, {Trace: true}, {Unshared: true},
		{OnCollect: func(Collected) {}}} {
		t.Run(fmt.Sprintf("batch=%d/pinned=%d/trace=%v/told=%v", o.Batch, o.Pinned, o.Trace, o.OnCollect != nil), func(t *testing.T) {
			m := NewMemory(h, o)
			sizes := []int{0, 1, 15, 16, 17, 31, 100, 1000, 4096, 16383, 16384, 16385, 20_000, 40_000, 65_535, 65_536, 65_537, 1 << 20}
			var all []*Bytes
			seen := map[uintptr]bool{}
			total := 0
			for round := range times(60) {
				for i := range sizes {
					n := sizes[i]
					if round%2 == 0 {
						n = sizes[rand.IntN(len(sizes)-5)]
					} else if n > 1000 && round > 3 {
						continue
					}
					b := newBytes(t, m, n)
					a := b.owner.address()
					if a%16 != 0 || seen[a] {
						t.Fatalf("%d bytes are at %#x, seen: %v", n, a, seen[a])
					}
					seen[a] = true
					if b.Len() != n || len(b.Get()) != n || cap(b.Get()) != n {
						t.Fatalf("%d bytes have length %d, %d", n, b.Len(), len(b.Get()))
					}
					b.Use(func(s []byte) {
						if bytes.Count(s, []byte{0}) != n {
							t.Fatalf("%d bytes are not zero", n)
						}
						for j := range s {
							s[j] = byte(len(all))
						}
					})
					all = append(all, b)
					total += n
				}
			}
			if st := m.Stats(); st.Live != int64(len(all)) || st.Bytes != int64(total) {
				t.Errorf("%+v, want %d with %d bytes", st, len(all), total)
			}
			rand.Shuffle(len(all), func(i, j int) {
				if i%256 == j%256 { // or the mark would not fit
					all[i], all[j] = all[j], all[i]
				}
			})
			for i, b := range all {
				if s := b.Get(); bytes.Count(s, []byte{byte(i)}) != len(s) {
					t.Fatalf("%d bytes have changed", len(s))
				}
				b.Close()
				if b.Get() != nil || b.Len() != 0 {
					t.Fatal("closed bytes are there")
				}
			}
			if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
				t.Errorf("%+v after everything was closed", st)
			}
			testcall.Want(t, m.CloseWait(waiting(0)))
			if n := h.Stats().Blocks; n != 0 {
				t.Errorf("%d blocks of the heap are left", n)
			}
		})
	}
}

func TestMemoryMistakes(t *testing.T) {
	m := NewMemory(newHeap(t), MemoryOptions{Name: "Cache"})
	mustMisuse(t, "Cache.NewBytes", func() { m.NewBytes(-1) }, "negative")
	mustMisuse(t, "Cache.NewBytes", func() { m.NewBytes(math.MinInt) }, "negative")
	for _, n := range []int{math.MaxInt, math.MaxInt - 15, math.MaxInt - 1<<20} {
		if _, err := m.NewBytes(n); !errors.Is(err, cheap.ErrNoMemory) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	b := newBytes(t, m, 10)
	mustMisuse(t, "Cache.Resize", func() { b.owner.Resize(20) }, "size")
	if b.Len() != 10 {
		t.Errorf("Len is %d", b.Len())
	}
	if st := m.Stats(); st.Live != 1 {
		t.Errorf("%+v", st)
	}
}

// TestMemoryErrors meets the limit of the heap.
func TestMemoryErrors(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{Limit: 2 << 20})
	testcall.Must(t, err)
	heapUntilEnd(t, h)
	m := NewMemory(h, MemoryOptions{})
	for _, n := range []int{100, 10_000, 100_000} {
		var all []*Bytes
		for {
			b, err := m.NewBytes(n)
			if err != nil {
				if !errors.Is(err, cheap.ErrLimit) || !strings.Contains(err.Error(), "own.Memory.NewBytes") {
					t.Errorf("%d bytes: %v", n, err)
				}
				break
			}
			all = append(all, b)
		}
		if len(all)*n < 1<<20 {
			t.Errorf("the limit of 2 MiB is met by %d blocks of %d bytes", len(all), n)
		}
		for _, b := range all {
			b.Close()
		}
		mustBeEmpty(t, h)
	}
}

// TestMemoryAllocs: what a block costs in Go is its share of the batch.
func TestMemoryAllocs(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	m := NewMemory(newHeap(t), MemoryOptions{})
	var before, after runtime.MemStats
	const n = 20_000
	f := func() {
		for range n {
			if _, err := NewMem[[100]byte](m); err != nil {
				t.Error(err)
			}
		}
	}
	f()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got := float64(after.Mallocs-before.Mallocs) / n; got > 0.1 && !race.Build {
		t.Errorf("%v Go allocations a block", got)
	}
	if got := float64(after.TotalAlloc-before.TotalAlloc) / n; got > 41 && !race.Build {
		t.Errorf("%v Go bytes a block", got)
	}
}
