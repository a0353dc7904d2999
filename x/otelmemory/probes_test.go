//go:build linux && cgo && (amd64 || arm64)

package otelmemory

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/sample"
)

// A call is what package sample tells.
type call struct {
	free          bool
	address, size uintptr
	weighted      float64 // bytes
}

// A recorder notes the calls, and passes them on.
type recorder struct {
	next  sample.Tracer
	mu    sync.Mutex
	calls []call
}

// record has a recorder note all calls until the test ends.
func record(t *testing.T) *recorder {
	t.Helper()
	if err := Enable(); err != nil {
		t.Fatal(err)
	}
	r := &recorder{next: sample.SetTracer(nil)}
	sample.SetTracer(r)
	t.Cleanup(Disable)
	return r
}

// Alloc notes a call, and passes it on.
func (r *recorder) Alloc(p, size uintptr, weight float64) {
	r.note(call{address: p, size: size, weighted: weight * float64(size)})
	r.next.Alloc(p, size, weight)
}

// Free notes a call, and passes it on.
func (r *recorder) Free(p uintptr) {
	r.note(call{free: true, address: p})
	r.next.Free(p)
}

func (r *recorder) note(c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// read returns the numbers of calls, the bytes that the blocks of alloc stand for, and the blocks
// for which there was no free yet. An address has a free after each alloc, and no other.
func (r *recorder) read(t *testing.T) (allocs, frees int, weighted float64, open map[uintptr]uintptr) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	open = map[uintptr]uintptr{}
	for _, c := range r.calls {
		_, is := open[c.address]
		if is != c.free {
			t.Fatalf("%+v, and the block is open: %v", c, is)
		}
		if c.free {
			frees++
			delete(open, c.address)
			continue
		}
		allocs++
		weighted += c.weighted
		open[c.address] = c.size
	}
	return allocs, frees, weighted, open
}

// setSemaphores does what the kernel does when a tracer is attached: it counts it.
func setSemaphores(alloc, free uint32) {
	atomic.StoreUint32(allocSemaphore, alloc)
	atomic.StoreUint32(freeSemaphore, free)
}

func newHeap(t *testing.T) *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestCallsAgreeWithSamples samples each block, small ones and large ones, with probes that are
// traced and with probes that are not. Each block is told once, and its end once.
func TestCallsAgreeWithSamples(t *testing.T) {
	defer inspect.SetRate(inspect.SetRate(1))
	defer setSemaphores(0, 0)
	for _, traced := range []uint32{0, 1, 2} {
		setSemaphores(traced, traced)
		if alloc, free := Attached(); alloc != (traced > 0) || free != (traced > 0) {
			t.Errorf("%d tracers: attached %v, %v", traced, alloc, free)
		}
		r, h := record(t), newHeap(t)
		live := map[uintptr]uintptr{}
		total := 0.0
		take := func(p unsafe.Pointer) unsafe.Pointer {
			live[uintptr(p)] = uintptr(h.UsableSize(p))
			total += float64(h.UsableSize(p))
			return p
		}
		for i := range 1000 {
			p := take(h.Malloc(1 + i*61))
			switch {
			case i%50 == 0: // another size, which is a free and an alloc
				delete(live, uintptr(p))
				take(h.Realloc(p, 1<<20+i))
			case i%2 == 0:
				delete(live, uintptr(p))
				h.Free(p)
			}
		}
		if allocs, frees, weighted, open := r.read(t); allocs != 1020 || frees != 500 || weighted != total || !maps.Equal(open, live) {
			t.Errorf("%d calls of alloc and %d of free, for %v bytes, want 1020, 500 and %v; of %d blocks %d are open", allocs, frees, weighted, total, len(live), len(open))
		}
		if err := h.DestroyAll(); err != nil {
			t.Fatal(err)
		}
		if _, frees, _, open := r.read(t); frees != 1020 || len(open) != 0 {
			t.Errorf("after the heap %d calls of free, and %d blocks are open", frees, len(open))
		}
	}
}

// TestWeights has blocks of three sizes sampled at random. The sum of what they stand for is
// what was allocated.
func TestWeights(t *testing.T) {
	defer inspect.SetRate(inspect.SetRate(16 << 10))
	r, h := record(t), newHeap(t)
	defer h.DestroyAll()
	allocated := 0.0
	for i := range 300_000 {
		p := h.Malloc([]int{48, 1000, 40_000}[i%3])
		allocated += float64(h.UsableSize(p))
		h.Free(p)
	}
	allocs, frees, told, _ := r.read(t)
	// About 4e9 bytes in 100,000 large blocks, of which nine in ten are sampled: the deviation is
	// below 0.2 %.
	if math.Abs(told/allocated-1) > 0.01 {
		t.Errorf("the samples stand for %.0f bytes, %.0f were allocated", told, allocated)
	}
	if frees != allocs {
		t.Errorf("%d calls of alloc and %d of free", allocs, frees)
	}
}

// TestDisable looks whether samples go on, and tell nothing.
func TestDisable(t *testing.T) {
	defer inspect.SetRate(inspect.SetRate(1))
	r, h := record(t), newHeap(t)
	defer h.DestroyAll()
	h.Free(h.Malloc(100))
	Disable()
	h.Free(h.Malloc(100))
	if allocs, frees, _, _ := r.read(t); allocs != 1 || frees != 1 {
		t.Errorf("%d calls of alloc and %d of free, want 1 and 1", allocs, frees)
	}
}
