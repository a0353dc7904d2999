package tables

import (
	"fmt"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/loops"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// sourceCgoalloc is the README of cgoalloc.
var sourceCgoalloc = result.Source{
	Name:    "cgoalloc",
	Author:  "CannibalVox",
	Title:   "README of cgoalloc v1.2.1",
	Date:    "2021-08-21",
	Machine: "GOMAXPROCS 16; the README does not say more",
	URL:     "https://github.com/CannibalVox/cgoalloc",
}

// An allocation is a benchmark of cgoalloc.
type allocation struct {
	name     string // of the rows
	original string // in the source, without "Benchmark", "FBA" and "Default"

	// n is how many blocks are live at once, 0 for few. The time of a block
	// depends on it.
	n int

	malloc, cgoalloc float64 // the figures of the source, 0 if there is none
}

// grown is how many blocks a grow-shrink row has live at once.
const grown = 250_000

var allocations = []allocation{
	{"temporary-data", "TemporaryData", 0, 94.58, 9.714},
	{"grow-shrink", "GrowShrink", grown, 104.7, 34.83},
	{"multilayer-temporary-data", "MultilayerTemporaryData", 0, 0, 17.06},
	{"multilayer-grow-shrink", "MultilayerGrowShrink", grown, 0, 35.78},
	{"arena-temporary-data", "ArenaTemporaryData", 0, 0, 29.24},
}

// Allocators is the table of cgoalloc's benchmarks.
func Allocators() measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "allocators",
		Title: "The benchmarks of cgoalloc",
		About: fmt.Sprintf("A block is allocated and freed: immediately (temporary-data), or when there are %d (grow-shrink; the source had more). ", grown) +
			"Blocks have 64 and 8 bytes; in the multilayer rows most have 4 bytes and some up to 512; the arena rows free two blocks of 64 bytes together. " +
			"The blocks come from C's malloc through cgo, from cgoalloc as its benchmarks set it up, from the drop-in for it, and from a Heap or a pooled Arena. " +
			"With -run allocators also from a Local, from malloc in a loop in C (native), and from the drop-in's DefaultAllocator.",
		Unit:    "block",
		Chart:   result.Bars,
		Sources: []result.Source{sourceCgoalloc},
	}}
	for _, a := range allocations {
		rows := append(a.cgoRows(), a.ourRow())
		if a.original == "TemporaryData" {
			rows = append(rows, measure.Row{Name: a.name + "-local", Named: true, Open: func(int) (measure.Work, error) { return openLocalPairs(1) }})
			rows = append(rows, nativePairs(a.name+"-native")...)
		}
		for i := range rows {
			rows[i].Group, rows[i].N = a.name, a.n
		}
		t.Rows = append(t.Rows, rows...)
	}
	return t
}

// ourRow is the row that needs no C.
func (a allocation) ourRow() measure.Row {
	row := measure.Row{Name: a.name + "-heap"}
	switch {
	case a.original == "ArenaTemporaryData":
		row.Name = a.name + "-arena"
		row.Open = func(int) (measure.Work, error) { return measure.Work{Run: loops.ArenaTemporaryData}, nil }
	case a.n > 0:
		row.Open = func(int) (measure.Work, error) { return onNewHeap(loops.Heap[a.original]), nil }
	default:
		row.Open = func(int) (measure.Work, error) { return onOneHeap(loops.Heap[a.original]) }
	}
	if cgoHere {
		row.Versus = a.name + "-malloc"
	}
	return row
}

// onOneHeap is a loop on one heap for all rounds.
func onOneHeap(loop func(*cheap.Heap, int)) (measure.Work, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return measure.Work{}, err
	}
	var before int64
	return measure.Work{
		Run: func(n int) { loop(h, n) },
		Check: func(n int) error {
			s := h.Stats()
			if got := s.Mallocs - before; got != int64(n) || s.Frees != s.Mallocs {
				return fmt.Errorf("the heap allocated %d blocks for %d, and %d of all %d were freed", got, n, s.Frees, s.Mallocs)
			}
			before = s.Mallocs
			return nil
		},
		Close: func() { h.Destroy() }, // Check has found that no block is live
	}, nil
}

// onNewHeap makes a heap for each round, on the clock, as the loops of cgoalloc
// make their allocators. The growth of the heap is part of the round.
func onNewHeap(loop func(*cheap.Heap, int)) measure.Work {
	var last cheap.Stats
	var err error
	return measure.Work{
		Run: func(n int) {
			h, failed := cheap.NewHeap(cheap.HeapOptions{})
			if failed != nil {
				err = failed
				return
			}
			loop(h, n)
			last = h.Stats()
			err = h.Destroy()
		},
		Check: func(n int) error {
			if err == nil && last.Mallocs != int64(n) {
				err = fmt.Errorf("the heap allocated %d blocks, want %d", last.Mallocs, n)
			}
			return err
		},
	}
}
