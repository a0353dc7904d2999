package inspect

import (
	"strconv"
	"sync"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/internal/watch/sample"
	"github.com/cheapgo/cheap/pace"
)

// A snapshot is what one read has found.
type snapshot struct {
	heaps    []heapFigures
	classes  []classFigures // those that were ever used, and large blocks
	accounts []accountFigures
	pools    []poolFigures

	c         *census.CCounts // nil if nothing is counted
	libraries []libraryFigures

	totals census.Heaps // but for the list
	system osmem.Counts
	store  int64 // bytes of the store of package own
	pace   pace.Stats
	queued int64 // releases that wait, of all pools

	samples, sampleBytes int64 // blocks in use that are sampled, and what their records take

	allocated, active int64 // bytes, as jemalloc defines them

	reading *resident.Reading
	parts   resident.Table // of reading
	verdict resident.Verdict
}

type heapFigures struct {
	*census.Heap
	labels                 []string
	cached, spans          int64
	spanBytes, mallocBytes int64
}

type classFigures struct {
	census.Class
	labels      []string
	bytes       int64 // of blocks in use
	mallocBytes int64
	carvedBytes int64
}

type accountFigures struct {
	labels                    []string
	held, limit, blocks, live int64
}

type poolFigures struct {
	census.Pool
	labels []string
}

type libraryFigures struct {
	census.CLibrary
	labels []string
}

// reader reads. It keeps what it read last, for heaps and pools that are busy, and so that no
// counter goes down: the parts of a sum are read one after the other.
var reader struct {
	mu sync.Mutex
	statReader
}

type statReader struct {
	now, last         census.Heaps
	pools, lastPools  []census.Pool
	classes           [sizeclass.Count]int64 // blocks handed out, by class
	labels, lastNames map[uint64][]string    // of heaps
	c                 census.CCounts
}

// withSnapshot reads everything, and calls use with it, under the lock of the reader. Without mappings it takes less time. The
// figures are read one after the other, so what a collection releases meanwhile is in some and not in others. If
// one has run, all are read once more.
func withSnapshot(mappings bool, use func(*snapshot)) {
	var s *snapshot
	since := resident.Collections()
	for s == nil {
		var m *resident.Mappings
		if mappings {
			m = resident.ReadMappings() // without the lock, because that takes a while
		}
		reader.mu.Lock()
		if s = reader.read(m, since); s == nil {
			reader.mu.Unlock()
			since = 0
		}
	}
	defer reader.mu.Unlock()
	use(s)
}

// read is withSnapshot with mappings that were read, or nil. It returns nil if a collection has run since a number of them.
func (r *statReader) read(mappings *resident.Mappings, since uint64) *snapshot {
	r.now, r.last = r.last, r.now
	r.pools, r.lastPools = r.lastPools, r.pools
	census.ReadHeaps(&r.now)
	r.mergeHeaps()
	r.pools = census.ReadPools(r.pools[:0])
	r.mergePools()

	s := &snapshot{totals: r.now, system: osmem.ReadCounts(), store: census.ReadStore(), pace: pace.ReadStats()}
	s.totals.List = nil
	s.samples, s.sampleBytes = sample.Count(), sample.Bytes()
	s.queued = account.Process.Queued.Load() + account.Process.ToDrain.Load()
	r.addHeaps(s)
	r.addClasses(s)
	r.addAccounts(s)
	for _, p := range r.pools {
		s.pools = append(s.pools, poolFigures{p, []string{p.Name, strconv.FormatUint(p.Number, 10)}})
	}
	r.addC(s)
	if !s.addResident(mappings, since) {
		return nil
	}
	return s
}

// mergeHeaps replaces the counts of busy heaps by those of the last read, and raises counters
// that went down.
func (r *statReader) mergeHeaps() {
	last := r.last.List
	for i := range r.now.List {
		h := &r.now.List[i]
		for len(last) > 0 && last[0].ID < h.ID {
			last = last[1:]
		}
		if len(last) == 0 || last[0].ID != h.ID {
			continue
		}
		was := &last[0]
		if h.Busy {
			h.Blocks, h.Bytes = was.Blocks, was.Bytes
			h.Mallocs, h.Frees, h.Caches, h.Consolidations = was.Mallocs, was.Frees, was.Caches, was.Consolidations
			h.LargeBlocks, h.LargeBytes, h.LargeMallocs = was.LargeBlocks, was.LargeBytes, was.LargeMallocs
			for c := range h.Classes {
				now := h.Classes[c] // the spans are counted without the heap
				h.Classes[c] = was.Classes[c]
				h.Classes[c].Spans, h.Classes[c].Carved = now.Spans, now.Carved
			}
			continue
		}
		h.Mallocs, h.Frees = max(h.Mallocs, was.Mallocs), max(h.Frees, was.Frees)
		for c := range h.Classes {
			h.Classes[c].Mallocs = max(h.Classes[c].Mallocs, was.Classes[c].Mallocs)
		}
	}
}

// mergePools is mergeHeaps for pools.
func (r *statReader) mergePools() {
	last := r.lastPools
	for i := range r.pools {
		p := &r.pools[i]
		for len(last) > 0 && last[0].Number < p.Number {
			last = last[1:]
		}
		if len(last) == 0 || last[0].Number != p.Number {
			continue
		}
		was := &last[0]
		if p.Busy {
			*p = *was
			continue
		}
		p.Created, p.Collected = max(p.Created, was.Created), max(p.Collected, was.Collected)
		// Created − Live is a counter, too: what was released.
		p.Live = min(p.Live, p.Created-(was.Created-was.Live))
	}
}

func (r *statReader) addHeaps(s *snapshot) {
	r.lastNames, r.labels = r.labels, make(map[uint64][]string, len(r.now.List))
	s.heaps = make([]heapFigures, len(r.now.List))
	for i := range r.now.List {
		h := &r.now.List[i]
		f := heapFigures{Heap: h, labels: r.lastNames[h.ID], spans: h.LargeSpans}
		if f.labels == nil {
			f.labels = []string{h.Name, strconv.FormatUint(h.ID, 10)}
		}
		r.labels[h.ID] = f.labels
		for c := range h.Classes {
			k, size := &h.Classes[c], int64(sizeclass.Classes[c].Size)
			f.cached += k.Cached * size
			f.mallocBytes += k.Mallocs * size
			f.spans += k.Spans
			f.spanBytes += k.Spans * int64(osmem.RoundPage(sizeclass.Classes[c].SpanBytes()))
		}
		s.allocated += h.Bytes
		s.active += f.spanBytes
		s.heaps[i] = f
	}
	s.active += s.totals.Large + s.totals.Guarded
}

func (r *statReader) addClasses(s *snapshot) {
	for c := range sizeclass.Count {
		class := &sizeclass.Classes[c]
		f := classFigures{labels: sizeLabels[c]}
		f.Mallocs = s.totals.Gone[c]
		for _, h := range s.heaps {
			k := &h.Classes[c]
			f.Blocks, f.Cached, f.Mallocs = f.Blocks+k.Blocks, f.Cached+k.Cached, f.Mallocs+k.Mallocs
			f.Spans, f.Carved = f.Spans+k.Spans, f.Carved+k.Carved
		}
		f.Mallocs = max(f.Mallocs, r.classes[c])
		r.classes[c] = f.Mallocs
		f.bytes, f.mallocBytes = f.Blocks*int64(class.Size), f.Mallocs*int64(class.Size)
		f.carvedBytes = f.Carved * int64(class.Size)
		if f.Spans > 0 || f.Mallocs > 0 {
			s.classes = append(s.classes, f)
		}
	}
}

// sizeLabels are the values of the label size.
var sizeLabels = func() (labels [sizeclass.Count][]string) {
	for c := range labels {
		labels[c] = []string{strconv.Itoa(int(sizeclass.Classes[c].Size))}
	}
	return labels
}()

// addAccounts adds the accounts but those of heaps, which are counted as heaps.
func (r *statReader) addAccounts(s *snapshot) {
	for _, a := range account.Process.All() {
		blocks, live, ok := a.TryLive()
		if !ok {
			continue // of a heap
		}
		s.accounts = append(s.accounts, accountFigures{
			labels: []string{a.Name(), strconv.FormatUint(a.Number(), 10)},
			held:   a.Held(), limit: a.Limit(), blocks: blocks, live: live,
		})
	}
}
