package tables

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// pairSize is the size of a block that is freed as soon as it is allocated.
const pairSize = 64

// Scaling is the table of what calls and allocators cost on more processors.
func Scaling() measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "scaling",
		Title: "What more processors bring",
		About: "The calls of the table above, and the allocation and free of a block of 64 bytes, with one goroutine for each processor, and with -run scaling a loop that shares nothing (none). The time is that of the round divided by the operations of all goroutines: if nothing is shared, twice the processors halve it.",
		Unit:  "operation", Chart: result.Procs,
		Sources: []result.Source{sourceHansen},
	}, Weight: 0.5}
	procs := doublings(runtime.NumCPU())
	for _, c := range calls() {
		t.Rows = append(t.Rows, measure.Row{
			Name: c.name, Note: c.note, Procs: procs,
			Published: byProcs(c.in, c.scaling),
			Open:      func(procs int) (measure.Work, error) { return parallel(procs, c.open) },
		})
	}
	pairs := []measure.Row{
		{Name: "heap", Group: "pairs", Open: openHeapPairs, Note: "one Heap for all"},
		{Name: "local", Open: openLocalPairs, Note: "one Heap for all, with a Local for each goroutine"},
	}
	pairs = append(pairs, cgoPairs()...)
	pairs = append(pairs, measure.Row{
		Name: "none", Group: "pairs", Named: true, Note: "a free list for each goroutine",
		Open: func(procs int) (measure.Work, error) {
			return parallel(procs, func() (worker, error) { return worker{run: privatePairs()}, nil })
		},
	})
	for _, row := range pairs {
		row.Procs = procs
		t.Rows = append(t.Rows, row)
	}
	return t
}

// doublings returns the powers of two up to the first one above the number of cores,
// and the number of cores.
func doublings(cores int) []int {
	var procs []int
	for p := 1; ; p *= 2 {
		if p >= cores {
			procs = append(procs, cores)
		}
		if p != cores {
			procs = append(procs, p)
		}
		if p > cores {
			return slices.Compact(procs)
		}
	}
}

// pairsOn makes a work of pairs on one heap for all goroutines. The heap counts them.
func pairsOn(procs int, open func(h *cheap.Heap) worker) (measure.Work, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return measure.Work{}, err
	}
	work, err := parallel(procs, func() (worker, error) { return open(h), nil })
	if err != nil {
		return measure.Work{}, err
	}
	closeWorkers := work.Close
	work.Close = func() {
		closeWorkers()
		_ = h.Destroy() // Check has reported live blocks
	}
	before := h.Stats()
	work.Check = func(n int) error {
		now := h.Stats()
		mallocs, frees := int(now.Mallocs-before.Mallocs), int(now.Frees-before.Frees)
		before = now
		if err := allDone(mallocs, n); err != nil {
			return err
		}
		return allDone(frees, n)
	}
	return work, nil
}

func openHeapPairs(procs int) (measure.Work, error) {
	return pairsOn(procs, func(h *cheap.Heap) worker {
		return worker{run: func(n int) { heapPairs(h, n) }}
	})
}

func openLocalPairs(procs int) (measure.Work, error) {
	return pairsOn(procs, func(h *cheap.Heap) worker {
		l := h.NewLocal()
		return worker{run: func(n int) { localPairs(l, n) }, close: func() { _ = l.Destroy() }}
	})
}

func heapPairs(h *cheap.Heap, n int) {
	for range n {
		h.Free(needed(h.Malloc(pairSize)))
	}
}

func localPairs(l *cheap.Local, n int) {
	for range n {
		l.Free(needed(l.Malloc(pairSize)))
	}
}

// privatePairs pops and pushes a private free list.
func privatePairs() func(n int) {
	list := &struct {
		_    line
		free uint32
		next [15]uint32
		_    line
	}{}
	return func(n int) {
		for range n {
			b := list.free & 7
			list.free = list.next[b]
			list.next[b] = list.free
			list.free = b
		}
	}
}

// needed returns the block, and panics if it is nil.
func needed(block unsafe.Pointer) unsafe.Pointer {
	if block == nil {
		panic(errNoMemory)
	}
	return block
}
