package inspect

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

func TestReadHeap(t *testing.T) {
	h := newHeap(t, "read-heap")
	var blocks []unsafe.Pointer
	for range 1000 {
		blocks = append(blocks, h.Malloc(100)) // of 112 bytes
	}
	large := h.Malloc(1 << 20)
	mapped := h.Malloc(span.OwnMapping)
	for _, p := range blocks[:400] {
		h.Free(p)
	}
	v, stats := readAll(), h.Stats()
	v.want(t, "cheap_heap_blocks", "read-heap", 602)
	v.want(t, "cheap_heap_allocated_bytes", "read-heap", float64(stats.Bytes))
	v.want(t, "cheap_heap_mallocs_total", "read-heap", 1002)
	v.want(t, "cheap_heap_frees_total", "read-heap", 400)
	v.want(t, "cheap_heap_held_bytes", "read-heap", float64(stats.Held))
	v.want(t, "cheap_heap_fragmentation_bytes", "read-heap", float64(stats.Held-stats.Bytes))
	v.want(t, "cheap_heap_cached_bytes", "read-heap", float64(stats.Cached))
	v.want(t, "cheap_heap_caches", "read-heap", float64(stats.Caches))
	v.want(t, "cheap_heap_large_blocks", "read-heap", 2)
	v.want(t, "cheap_heap_large_bytes", "read-heap", 1<<20+span.OwnMapping)
	v.want(t, "cheap_heap_malloc_bytes_total", "read-heap", 1000*112)
	if spans := v.of(t, "cheap_heap_spans", "read-heap"); spans < 4 || spans > 5 { // 112,000 bytes, and two
		t.Errorf("%v spans", spans)
	}
	if n := v.of(t, "cheap_class_blocks", "112"); n < 600 {
		t.Errorf("%v blocks of 112 bytes", n)
	}
	if n := v.of(t, "cheap_class_waste_bytes", "112"); n < 400*112 || n > 500*112 { // and what was carved ahead
		t.Errorf("%v bytes are wasted by 400 free blocks of 112 bytes", n)
	}
	h.Free(large)
	h.Free(mapped)
	v = readAll()
	v.want(t, "cheap_heap_large_bytes", "read-heap", 0)
	v.want(t, "cheap_heap_frees_total", "read-heap", 402)
	for _, p := range blocks[400:] {
		h.Free(p)
	}
}

// TestReadTotals checks what the totals have to do with each other.
func TestReadTotals(t *testing.T) {
	h := newHeap(t, "read-totals")
	before := readAll()
	var pieces []unsafe.Pointer
	for range 20 {
		pieces = append(pieces, h.Malloc(512<<10))
	}
	m := h.Malloc(2*span.OwnMapping + 1)
	v := readAll()
	get := func(v values, name string) float64 { return v.of(t, "cheap_"+name+"_bytes", "") }
	for _, name := range []string{"allocated", "active", "mapped"} {
		grown := get(v, name) - get(before, name)
		if least := float64(10<<20 + 2*span.OwnMapping + 1); grown < least || grown > least+1<<20 {
			t.Errorf("%s grew by %v, want about %v", name, grown, least)
		}
	}
	if get(v, "allocated") > get(v, "active") || get(v, "active")+get(v, "metadata") > get(v, "mapped") || get(v, "active") > get(v, "resident") {
		t.Errorf("allocated %v, active %v, resident %v, mapped %v", get(v, "allocated"), get(v, "active"), get(v, "resident"), get(v, "mapped"))
	}
	if get(v, "metadata") <= 0 || get(v, "retained") <= 0 {
		t.Errorf("metadata %v, retained %v", get(v, "metadata"), get(v, "retained"))
	}
	for _, p := range pieces {
		h.Free(p)
	}
	h.Free(m)
	if idle := get(readAll(), "idle"); idle < 9<<20 { // the heap keeps a part
		t.Errorf("%v bytes are idle after Free of 10 MiB", idle)
	}
	cheap.Trim()
	after := readAll()
	if idle := get(after, "idle"); idle >= 10<<20 {
		t.Errorf("%v bytes are idle after Trim", idle)
	}
	if given := after.of(t, "cheap_decommitted_bytes_total", "") - v.of(t, "cheap_decommitted_bytes_total", ""); given < 10<<20 {
		t.Errorf("%v bytes were given back", given)
	}
}

func TestReadPool(t *testing.T) {
	released := 0
	var queue own.Queue
	pool := own.NewPool(own.Options{Name: "read-pool", Run: queue.Run(), Release: func(_ any, r []uintptr) error {
		released += len(r)
		return nil
	}, Numbers: true})
	type thing struct{ n own.Number[int] }
	var kept []*thing
	for i := range 1000 {
		x := new(thing)
		testcall.Must(t, x.n.Own(pool, i, 10))
		kept = append(kept, x)
	}
	for _, x := range kept[:100] {
		x.n.Close()
	}
	v := readAll()
	v.want(t, "cheap_pool_created_total", "read-pool", 1000)
	v.want(t, "cheap_pool_queued", "read-pool", 100)
	v.want(t, "cheap_pool_live", "read-pool", 1000) // queued ones included
	testwait.Until(t, "the clock has gone on since the oldest was queued", func() bool {
		return readAll().of(t, "cheap_pool_oldest_queued_seconds", "read-pool") > 0
	})
	if v.of(t, "cheap_pool_open_batches", "read-pool") < 1 {
		t.Error("no batch is open")
	}
	queue.Drain(0)
	v = readAll()
	v.want(t, "cheap_pool_live", "read-pool", 900)
	v.want(t, "cheap_pool_live_bytes", "read-pool", 9000)
	v.want(t, "cheap_pool_released_total", "read-pool", 100)
	v.want(t, "cheap_pool_collected_total", "read-pool", 0)
	runtime.KeepAlive(kept)
	kept = nil
	eventually(t, "the collector finds 900 owners", func() bool { queue.Drain(0); return pool.Stats().Collected == 900 })
	v = readAll()
	v.want(t, "cheap_pool_created_total", "read-pool", 1000)
	v.want(t, "cheap_pool_released_total", "read-pool", 1000)
	v.want(t, "cheap_pool_collected_total", "read-pool", 900)
	if released != 1000 {
		t.Errorf("%d were released", released)
	}
}

func TestReadAccount(t *testing.T) {
	a := pace.NewAccount(pace.AccountOptions{Name: "read-account", Limit: 1 << 20})
	defer a.Close()
	testcall.Must(t, a.Add(1000))
	v := readAll()
	v.want(t, "cheap_account_held_bytes", "read-account", 1000)
	v.want(t, "cheap_account_limit_bytes", "read-account", 1<<20)
	v.want(t, "cheap_account_live", "read-account", 1)
	a.Remove(1000)
}

func TestReadCache(t *testing.T) {
	defer pace.OnPressure("read-cache", pace.Share{}, func(int64) int64 { return 0 })()
	v := readAll()
	v.want(t, "cheap_cache_asked_bytes_total", "read-cache", 0)
	v.want(t, "cheap_cache_held_bytes", "read-cache", -1)
	v.want(t, "cheap_cache_slow", "read-cache", 0)
}

// TestDestroyedCounts checks that what a heap has handed out stays in the counts of classes.
func TestDestroyedCounts(t *testing.T) {
	defer SetRate(SetRate(64 << 10)) // some of the blocks are sampled
	h := newHeap(t, "destroyed-counts")
	h.Malloc(200) // of 208 bytes
	first := readAll()
	for range 5000 {
		h.Malloc(200)
	}
	if err := h.DestroyAll(); err != nil { // before anything was read
		t.Fatal(err)
	}
	v := readAll()
	for name, n := range map[string]float64{"cheap_class_mallocs_total": 5000, "cheap_class_malloc_bytes_total": 5000 * 208} {
		v.want(t, name, "208", first.of(t, name, "208")+n)
	}
	v.want(t, "cheap_heaps_destroyed_total", "", first.of(t, "cheap_heaps_destroyed_total", "")+1)
	if _, ok := v["cheap_heap_blocks{destroyed-counts,"]; ok {
		t.Error("the heap is still there")
	}
}

// TestMerge gives the reader counts that went down, and heaps and pools that are busy.
func TestMerge(t *testing.T) {
	heap := func(id uint64, busy bool, n int64) census.Heap {
		h := census.Heap{ID: id, Busy: busy, Mallocs: n, Frees: n, LargeBlocks: n}
		h.Classes[0] = census.Class{Blocks: n, Mallocs: n, Spans: n}
		return h
	}
	var r statReader
	r.last.List = []census.Heap{heap(1, false, 10), heap(2, false, 10), heap(4, false, 10)}
	r.now.List = []census.Heap{heap(2, false, 9), heap(3, true, 0), heap(4, true, 1)}
	r.mergeHeaps()
	got := r.now.List
	if h := got[0]; h.Mallocs != 10 || h.Frees != 10 || h.LargeBlocks != 9 || h.Classes[0].Mallocs != 10 || h.Classes[0].Blocks != 9 {
		t.Errorf("counters that went down: %+v", h)
	}
	if h := got[1]; h.Mallocs != 0 {
		t.Errorf("a new heap that is busy: %+v", h)
	}
	if h := got[2]; h.Mallocs != 10 || h.LargeBlocks != 10 || h.Classes[0].Blocks != 10 || h.Classes[0].Spans != 1 {
		t.Errorf("a heap that is busy: %+v", h)
	}
	r.lastPools = []census.Pool{{Number: 1, Created: 5}, {Number: 2, Created: 10, Live: 3, Collected: 4}, {Number: 3, Created: 7}}
	r.pools = []census.Pool{{Number: 2, Created: 9, Live: 4, Collected: 3}, {Number: 3, Busy: true}, {Number: 4, Busy: true}}
	r.mergePools()
	if p := r.pools[0]; p.Created != 10 || p.Collected != 4 || p.Created-p.Live != 7 {
		t.Errorf("counters that went down: %+v", p)
	}
	if p := r.pools[1]; p.Created != 7 || p.Busy {
		t.Errorf("a pool that is busy: %+v", p)
	}
}

// TestHammerRead reads while goroutines allocate, and make and destroy heaps and pools. No
// counter goes down, and at the end all counts are right.
func TestHammerRead(t *testing.T) {
	h := newHeap(t, "hammer-read")
	pool := own.NewPool(own.Options{Name: "hammer-read", Numbers: true, Release: func(any, []uintptr) error { return nil }})
	defer pool.CloseWait(t.Context()) // the error tells of the owners that were never closed
	var stop atomic.Bool
	var work sync.WaitGroup
	defer func() { stop.Store(true); work.Wait() }()
	mallocs := make([]int64, 4)
	owners := make([]int64, 2)
	for g := range mallocs {
		work.Go(func() {
			var ring [64]unsafe.Pointer
			for i := 0; !stop.Load(); i++ {
				p := &ring[i%len(ring)]
				h.Free(*p)
				*p = h.Malloc(1 + i*37%5000)
				mallocs[g]++
				if i%5000 == 0 {
					cheap.Trim()
				}
			}
			for _, p := range ring {
				h.Free(p)
			}
		})
	}
	for g := range owners {
		work.Go(func() {
			for i := 0; !stop.Load(); i++ {
				var n own.Number[int]
				testcall.Want(t, n.Own(pool, i, 1))
				owners[g]++
				if i%3 == 0 {
					n.Close()
				}
			}
		})
	}
	work.Go(func() { // heaps and pools that come and go
		for i := 0; !stop.Load(); i++ {
			x, err := cheap.NewHeap(cheap.HeapOptions{Name: "hammer-passing"})
			if err != nil {
				t.Error(err)
				return
			}
			l := x.NewLocal()
			l.Free(l.Malloc(100))
			x.Malloc(200)
			x.Malloc(1 << 20)
			l.Destroy()
			testcall.Want(t, x.DestroyAll())
			q := own.NewPool(own.Options{Name: "hammer-passing" + strconv.Itoa(i), Numbers: true, Release: func(any, []uintptr) error { return nil }})
			var n own.Number[int]
			testcall.Want(t, n.Own(q, 1, 1))
			if err := q.CloseWait(t.Context()); err == nil {
				t.Error("Destroy does not say that an owner was never closed")
			}
			runtime.KeepAlive(&n)
		}
	})
	stopReading := testwait.Loop(1, func() { allTables() }) // another reader
	last := map[string]float64{}
	reads := 100
	if testing.Short() {
		reads = 30
	}
	for range reads {
		for _, s := range ReadMetrics() {
			if s.Value < 0 {
				t.Fatalf("%s%q is %v", s.Metric.Name, s.Labels, s.Value)
			}
			if s.Metric.Kind == Counter {
				key := s.Metric.Name
				for _, l := range s.Labels {
					key += "," + l
				}
				if s.Value < last[key] {
					t.Fatalf("%s went from %v to %v", key, last[key], s.Value)
				}
				last[key] = s.Value
			}
		}
		runtime.Gosched()
	}
	stop.Store(true)
	work.Wait()
	stopReading()
	handedOut, made := float64(mallocs[0]+mallocs[1]+mallocs[2]+mallocs[3]), float64(owners[0]+owners[1])
	eventually(t, "the counts of the heap and of the pool, which may be busy, are right", func() bool {
		v := readAll()
		return v.of(t, "cheap_heap_mallocs_total", "hammer-read") == handedOut && v.of(t, "cheap_heap_blocks", "hammer-read") == 0 &&
			v.of(t, "cheap_pool_created_total", "hammer-read") == made
	})
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []struct{ heaps, pools int }{{1, 1}, {1000, 100}} {
		b.Run("heaps="+strconv.Itoa(n.heaps)+"/pools="+strconv.Itoa(n.pools), func(b *testing.B) {
			var heaps []*cheap.Heap
			for i := range n.heaps {
				h := newHeap(b, "bench")
				for size := 16; size < 4096; size *= 2 {
					h.Malloc(size + i%100)
				}
				heaps = append(heaps, h)
			}
			type thing struct{ n own.Number[int] }
			var kept []*thing
			for i := range n.pools {
				p := own.NewPool(own.Options{Name: "bench", Numbers: true, Release: func(any, []uintptr) error { return nil }})
				for range 100 {
					x := new(thing)
					testcall.Must(b, x.n.Own(p, i, 10))
					kept = append(kept, x)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				ReadMetrics()
			}
			runtime.KeepAlive(heaps)
			runtime.KeepAlive(kept)
		})
	}
}

// A collected is a C heap in which a collection runs whenever it is read.
type collected struct {
	cHeap
	reads *int
}

func (h collected) Read() census.CCounts {
	*h.reads++
	runtime.GC()
	return *h.counts
}

// TestReadAgain has a collection run during the reading, and during the second one.
func TestReadAgain(t *testing.T) {
	reads := 0
	withCHeap(t, "", nil)
	census.SetCHeap(collected{cHeap{"", &census.CCounts{Live: 1}}, &reads})
	ReadVerdict()
	const each = 2 // for the verdict, and for the table of the C heap
	if reads != 2*each {
		t.Errorf("%d reads of the C heap, want %d", reads, 2*each)
	}
}
