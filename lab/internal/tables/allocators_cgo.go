//go:build cgo && unix

package tables

import (
	"runtime"
	"strings"

	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/loops"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

const cgoHere = true

// HasC says that this build has the rows that call C.
const HasC = cgoHere

// cgoRows are the rows on C's malloc, on cgoalloc, and on the drop-in.
func (a allocation) cgoRows() []measure.Row {
	original := a.original
	if !strings.HasPrefix(original, "Multilayer") && !strings.HasPrefix(original, "Arena") {
		original = "FBA" + original
	}
	// The allocators over C's malloc call C once for a page of many blocks.
	malloc := measure.Row{Name: a.name + "-malloc", Open: throughCgo(loops.Malloc(a.original), 2)}
	theirs := measure.Row{Name: a.name + "-cgoalloc", Open: throughCgo(loops.Original[original], 0), Versus: malloc.Name}
	dropin := measure.Row{Name: a.name + "-dropin", Open: throughCgo(loops.Dropin[original], 0), Versus: theirs.Name}
	if a.malloc > 0 {
		malloc.Published = figure(sourceCgoalloc, a.malloc)
	}
	theirs.Published = figure(sourceCgoalloc, a.cgoalloc)
	rows := []measure.Row{malloc, theirs, dropin}
	if name := "Default" + a.original; loops.Dropin[name] != nil {
		rows = append(rows, measure.Row{Name: dropin.Name + "-default", Open: throughCgo(loops.Dropin[name], 2), Versus: malloc.Name, Named: true})
	}
	return rows
}

// nativePairs is a row of C's malloc and free without cgo.
func nativePairs(name string) []measure.Row {
	return []measure.Row{{Name: name, Named: true, Open: func(int) (measure.Work, error) {
		did := 0
		return measure.Work{
			Run:   func(n int) { did = cside.Pairs(n, pairSize) },
			Check: func(n int) error { return allDone(did, n) },
		}, nil
	}}}
}

// throughCgo is a loop that makes its allocator, and at least calls cgo calls for
// each block.
func throughCgo(loop func(n int) error, calls int64) func(int) (measure.Work, error) {
	return func(int) (measure.Work, error) { return counted(loop, runtime.NumCgoCall, calls), nil }
}
