//go:build cgo && unix

package tables

import (
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// jemallocName is its name in package preload, and in rows.
const jemallocName = "jemalloc"

// cgoBlocks lists the ways that call C. If jemalloc is not here, the notes of the table
// say so.
func cgoBlocks(t *measure.Table) []blockWay {
	ways := []blockWay{
		{name: "malloc", open: throughCalls(cside.Malloc)},
		{name: "calloc", note: "zeroed", open: throughCalls(cside.Calloc)},
	}
	l, err := preload.Find(jemallocName)
	if err != nil {
		t.Notes = append(t.Notes, "blocks: "+err.Error())
		return ways
	}
	return append(ways, blockWay{
		name: jemallocName, note: "calloc and free through cgo, in a process whose malloc is jemalloc's; it zeroes a block of 64 KiB by giving its pages to the system and taking them again, 16 page faults",
		open: throughCalls(cside.Calloc), env: []string{l.Env()}, loaded: l.Path,
	})
}

// check returns an error if the malloc of this process is not the one that it should be.
func (w blockWay) check() error {
	if w.loaded == "" {
		return nil
	}
	if err := preload.Check(w.loaded); err != nil {
		return &preload.MissingError{Name: w.name, Reason: err.Error()}
	}
	return nil
}

// throughCalls takes blocks from C, with two cgo calls each.
func throughCalls(malloc func(size int) unsafe.Pointer) func(size int) (measure.Work, error) {
	return func(size int) (measure.Work, error) {
		return counted(noError(func(n int) {
			for range n {
				block := needed(malloc(size))
				write(block, size)
				cside.Free(block)
			}
		}), runtime.NumCgoCall, 2), nil
	}
}
