package gcwatch

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// blocks returns the number of blocks, and checks the lists of each shard.
func blocks(t *testing.T) (n int) {
	t.Helper()
	for i := range registry {
		s := &registry[i]
		s.mu.Lock()
		used := 0
		room := map[*block]bool{}
		for b, prev := s.room, (*block)(nil); b != nil; b, prev = b.nextRoom, b {
			room[b] = true
			if b.prevRoom != prev {
				t.Error("the list of blocks with room is torn")
			}
		}
		for b, prev := s.blocks, (*block)(nil); b != nil; b, prev = b.next, b {
			n++
			k := bits.OnesCount64(b.used)
			used += k
			if b.shard != s || b.prev != prev || room[b] != (k < slots) {
				t.Errorf("a block with %d of %d slots in use is on wrong lists", k, slots)
			}
			delete(room, b)
			for i := range slots {
				if in := b.used>>i&1 != 0; in != (b.f[i] != nil) || in != (b.arg[i] != nil) || in != (b.weak[i] != weak.Pointer[byte]{}) {
					t.Errorf("slot %d: in use %v, %v", i, in, b.arg[i])
				}
			}
		}
		if used != s.n || len(room) > 0 {
			t.Errorf("%d slots are in use, the count is %d; %d blocks are on one list only", used, s.n, len(room))
		}
		s.mu.Unlock()
	}
	return n
}

// TestEmpty adds many functions, and looks whether the blocks go with them.
func TestEmpty(t *testing.T) {
	collectorOff(t)
	const n = 50_000
	var calls atomic.Int32
	kept := make([]*object, n)
	handles := make([]Cleanup, n)
	testcall.Aside(func() {
		for i := range kept {
			kept[i] = new(object)
			handles[i] = AddCleanup(kept[i], func(c *atomic.Int32) { c.Add(1) }, &calls)
		}
	})
	if got := blocks(t); got < n/slots || got > n/slots+len(registry) {
		t.Errorf("%d blocks for %d functions", got, n)
	}
	for i := range kept {
		if i%2 == 0 {
			handles[i].Stop()
		}
	}
	runtime.KeepAlive(kept)
	clear(kept)
	clear(handles)
	collections(t, "the other half is called", 3, func() bool { return calls.Load() == n/2 })
	collections(t, "the blocks are gone", 3, func() bool { return blocks(t) <= len(registry) })
	collections(t, "the rounds end", 3, func() bool { return !rounds.armed.Load() })
	const word = unsafe.Sizeof(uintptr(0))
	if size := unsafe.Sizeof(block{}); size > 3*8+slots*(3*word+4+2+1)+5*word {
		t.Errorf("a block has %d bytes", size)
	}
}

// BenchmarkWalk walks over functions whose objects live, after a collection.
func BenchmarkWalk(b *testing.B) {
	const n = 250_000
	var x int
	reported.Store(false) // no other walk
	defer reported.Store(true)
	kept := make([]*object, n)
	for i := range kept {
		kept[i] = new(object)
		AddCleanup(kept[i], func(*int) {}, &x)
	}
	var walking, collecting time.Duration
	for b.Loop() {
		t0 := time.Now()
		runtime.GC()
		t1 := time.Now()
		for i := range registry {
			registry[i].walk(1<<62, func() bool { return false })
		}
		walking += time.Since(t1)
		collecting += t1.Sub(t0)
	}
	b.ReportMetric(float64(walking.Nanoseconds())/float64(b.N)/n, "ns/function")
	b.ReportMetric(float64(walking)/float64(collecting), "of-collection")
	runtime.KeepAlive(kept)
}
