//go:build linux && !cheap_gomem

package heap

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// TestSampleMemory has many places in a program allocate and free blocks, at the default rate.
// The tables of samples, and the pages of their spans that hold no block in use, together take at
// most 512 KiB and one in 100 bytes in use. Each row has a process of its own, because neither
// maps nor tables shrink.
func TestSampleMemory(t *testing.T) {
	if osmem.PageSize > 4<<10 {
		return // a sampled block has a page for itself, of whatever size
	}
	for name, row := range map[string]sampledLoad{
		"small blocks of one place":   {live: 64 << 20, places: 1, from: 64, to: 256, turnover: 1},
		"all classes of 1,000 places": {live: 64 << 20, places: 1000, from: 16, to: 32 << 10, turnover: 24},
		"large blocks, too":           {live: 256 << 20, places: 1000, from: 16, to: 256 << 10, turnover: 2},
		"256 MiB of all classes":      {live: 256 << 20, places: 1000, from: 16, to: 32 << 10, turnover: 4},
		"one size of 1,000 places":    {live: 64 << 20, places: 1000, from: 1000, to: 1001, turnover: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch {
			case race.Build || testenv.Emulated():
				row.live, row.turnover = min(row.live, 64<<20), min(row.turnover, 2)
			case !*testheap.Long:
				row.live, row.turnover = min(row.live, 96<<20), min(row.turnover, 2)
			}
			out, ok := testchild.Test(t, row.measure)
			if !ok {
				t.Error(out)
			}
			t.Log(out)
		})
	}
}

// A sampledLoad is what a program does: it keeps live bytes of blocks of from to to bytes, small
// ones mostly, allocated in so many places, and replaces all of them turnover times.
type sampledLoad struct {
	live, places, from, to, turnover int
}

func (l sampledLoad) measure(t *testing.T) {
	testheap.SetDecay(t, -1) // nothing is given back beside what samples give back
	testheap.WithRate(t, sample.DefaultRate)
	h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
	defer h.DestroyAll()
	blocks := make([]unsafe.Pointer, 0, l.live/l.from)
	before := goHeap()
	random := rand.New(rand.NewPCG(1, 2))
	live := 0
	turn := func(bytes int) {
		for total := 0; total < bytes; {
			r := random.Float64()
			size := l.from + int(float64(l.to-l.from)*r*r*r)
			var p unsafe.Pointer
			atPlace(random.IntN(l.places), 10, func() { p = h.Malloc(size) })
			clear(unsafe.Slice((*byte)(p), size)) // p is a block of that size
			blocks = append(blocks, p)
			total += size
			for live += h.UsableSize(p); live > l.live; {
				i, last := random.IntN(len(blocks)), len(blocks)-1
				live -= h.UsableSize(blocks[i])
				h.Free(blocks[i])
				blocks[i] = blocks[last]
				blocks = blocks[:last]
			}
		}
	}
	turn(l.turnover * l.live)
	for range 5 {
		// The pages of what comes and goes within idlePause are not released. A sample that
		// ends later may find too many, and releases them.
		h.samples().released.Store(sample.Now() - int64(idlePause))
		turn(2 << 20)
	}
	grown, tables, slack, most := goHeap()-before, sample.Bytes(), idleOfSampled(t, h), h.Stats().Bytes/100+512<<10
	runtime.KeepAlive(blocks)
	t.Logf("%d samples, the Go heap has grown by %d KiB, and package sample says %d; slack %d KiB; allowed %d KiB", sample.Live(), grown>>10, tables>>10, slack>>10, most>>10)
	if sample.Live() < l.live>>20 {
		t.Errorf("%d samples of %d MiB", sample.Live(), l.live>>20)
	}
	if max(grown, tables)+slack > most {
		t.Errorf("samples take %d KiB, at most %d are allowed", (max(grown, tables)+slack)>>10, most>>10)
	}
	if d := tables - grown; bits.UintSize == 64 && max(d, -d) > grown/3+32<<10 {
		t.Errorf("the Go heap has grown by %d KiB, and package sample says %d", grown>>10, tables>>10)
	}
}

// TestBurstOfFrees frees most of the sampled blocks in less time than passes between two looks
// at their pages. A timer or Trim releases them, whatever lies between guard pages.
func TestBurstOfFrees(t *testing.T) {
	if osmem.PageSize > 4<<10 || testenv.Emulated() {
		return
	}
	for _, trim := range []bool{false, true} {
		testheap.SetDecay(t, -1)
		testheap.WithRate(t, 64<<10)
		old := sample.SetGuardRate(1)
		h := NewHeap(t, Options{Name: testheap.UniqueName(t)})
		guarded := make([]unsafe.Pointer, 20)
		for i := range guarded {
			guarded[i] = h.Malloc(16 << 10)
		}
		sample.SetGuardRate(old)
		blocks := make([]unsafe.Pointer, 4096)
		for i := range blocks {
			blocks[i] = h.Malloc(16 << 10)
			clear(unsafe.Slice((*byte)(blocks[i]), 16<<10)) // a block of that size
		}
		h.samples().released.Store(sample.Now() + int64(time.Hour)) // no look before the test says so
		for i, p := range blocks {
			if i%4 != 0 {
				h.Free(p)
			}
		}
		// The first page of a free block stays, where another block of its span is in use.
		most := int64(512<<10 + len(blocks)/4*3*4<<10/4)
		if before := idleOfSampled(t, h); before < most*3/2 {
			t.Errorf("%d KiB idle, and no pages to release", before>>10)
		}
		if trim {
			h.Trim()
		} else {
			h.samples().released.Store(0)
			testwait.Until(t, "the pages go back", func() bool { return idleOfSampled(t, h) <= most })
		}
		if n := idleOfSampled(t, h); n > most {
			t.Errorf("trim %v: %d KiB idle, at most %d are allowed", trim, n>>10, most>>10)
		}
		all, c := h.samples(), int(sizeclass.Of(16<<10))
		if warm, peak := all.warm.Load(), all.peaks[c].Load(); trim && (warm != 0 || peak != all.inSpans(c)) {
			t.Errorf("after Trim %d spans are counted as warm, and %d blocks of %d", warm, peak, all.inSpans(c))
		}
		h.DestroyAll()
	}
}

// goHeap returns the bytes of the Go heap that are in use.
func goHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// idleOfSampled returns how many bytes are resident of the heap's spans of sampled blocks, less
// those of blocks in use.
func idleOfSampled(t *testing.T, h *Heap) (n int64) {
	t.Helper()
	span.Walk(func(s *span.Span, tag uintptr) {
		c := tag & span.KindMask &^ span.KindSampled
		if tag>>span.KindBits == h.id && tag&span.KindSampled != 0 && c < sizeclass.Count {
			n += int64(testheap.Resident(t, s.Base, sizeclass.Classes[c].SpanBytes()))
		}
	})
	if all := h.sampled.Load(); all != nil {
		for c := range all.classes {
			n -= all.inSpans(c) * int64(sizeclass.Classes[c].Size)
		}
	}
	return n
}

//go:noinline
func placeLeft(n, bits int, f func()) { atPlace(n, bits, f) }

//go:noinline
func placeRight(n, bits int, f func()) { atPlace(n, bits, f) }

// atPlace calls f by the n-th of 1 << bits stacks.
func atPlace(n, bits int, f func()) {
	switch {
	case bits == 0:
		f()
	case n&1 == 0:
		placeLeft(n>>1, bits-1, f)
	default:
		placeRight(n>>1, bits-1, f)
	}
}
