//go:build cgo && unix

package tables

import (
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// cgoPairs lists the rows of the C library's malloc.
func cgoPairs() []measure.Row {
	return []measure.Row{{
		Name: "libc", Note: "malloc and free of the C library, with a cgo call each",
		Open: func(procs int) (measure.Work, error) { return parallel(procs, openLibcPairs) },
	}}
}

func openLibcPairs() (worker, error) {
	count := new(struct {
		_ line
		n int
		_ line
	})
	return worker{
		run:   func(n int) { count.n += libcPairs(n) },
		count: func() int { return count.n },
	}, nil
}

// libcPairs returns how many blocks there were.
func libcPairs(n int) (blocks int) {
	for range n {
		block := needed(cside.Malloc(pairSize))
		blocks++
		cside.Free(block)
	}
	return blocks
}
