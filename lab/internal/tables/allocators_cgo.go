//go:build cgo && unix

package tables

import (
	"runtime"
	"strings"

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
	malloc := measure.Row{Name: a.name + "-malloc", Open: throughCgo(loops.Malloc[a.original], 2)}
	theirs := measure.Row{Name: a.name + "-cgoalloc", Open: throughCgo(loops.Original[original], 0), Versus: malloc.Name}
	dropin := measure.Row{Name: a.name + "-dropin", Open: throughCgo(loops.Dropin[original], 0), Versus: theirs.Name}
	if a.malloc > 0 {
		malloc.Published = figure(sourceCgoalloc, a.malloc)
	}
	theirs.Published = figure(sourceCgoalloc, a.cgoalloc)
	return []measure.Row{malloc, theirs, dropin}
}

// throughCgo is a loop that makes its allocator, and at least calls cgo calls for
// each block.
func throughCgo(loop func(n int) error, calls int64) func(int) (measure.Work, error) {
	return func(int) (measure.Work, error) { return counted(loop, runtime.NumCgoCall, calls), nil }
}
