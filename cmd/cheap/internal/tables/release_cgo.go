//go:build cgo && unix

package tables

import (
	"fmt"

	"github.com/cheapgo/cheap/cmd/cheap/internal/lifetime"
	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
)

// A release is a way to release C memory.
type release struct {
	name, note string
	way        lifetime.Way
	forgets    bool // the collector finds the objects
}

// releases lists the ways in the order of the report.
var releases = []release{
	{"manual", "no Go object", lifetime.Manual, false},
	{"manual-object", "a Go object that escapes holds the pointer", lifetime.ManualObject, false},
	{"defer", "no Go object", lifetime.Defer, false},
	{"addcleanup", "", lifetime.Cleanup, true},
	{"finalizer", "", lifetime.Finalizer, true},
	{"finalizer-empty", "the block is destroyed by hand, and the finalizer only counts", lifetime.FinalizerEmpty, true},
	{"finalizer-no-c", "the object holds nothing, and its finalizer only counts; it has 16 bytes, because the runtime ignores the finalizer of an object of no size", lifetime.FinalizerNoC, true},
	{"own-forget", "own.Pool", lifetime.Owner, true},
	{"own-close", "own.Pool", lifetime.Close, false},
	{"own-memory", "own.NewMem, no C", lifetime.Memory, true},
	{"own-group", fmt.Sprintf("own.Group, no C; a block is one of %d of %d bytes", lifetime.GroupBlocks, lifetime.GroupBlockSize), lifetime.Group, true},
}

// forgotten is how many objects a round makes: enough for some collections, and a
// multiple of the blocks of a group.
const forgotten = 100_000

// releaseRows lists the rows with a collector, then those without.
func releaseRows() []measure.Row {
	var rows []measure.Row
	for _, off := range []bool{false, true} {
		for _, r := range releases {
			rows = append(rows, r.row(off))
		}
	}
	return rows
}

func (r release) row(off bool) measure.Row {
	row := measure.Row{
		Name: r.name, Note: r.note, N: forgotten,
		Published: released(r.name, off),
		Group:     "release", Versus: "manual",
		Open: func(int) (measure.Work, error) { return r.open(off) },
	}
	if off {
		row.Name += gcOff
		row.Group += gcOff
		row.Versus += gcOff
		row.NoGC = true
	}
	if row.Versus == row.Name {
		row.Versus = ""
	}
	return row
}

// open makes the work of a row. With the collector off, the round of a row that
// forgets its objects ends when they are made.
func (r release) open(off bool) (measure.Work, error) {
	l, err := r.way()
	if err != nil {
		return measure.Work{}, err
	}
	kept := off && r.forgets
	work := measure.Work{
		Run: func(n int) {
			l.Begin()
			l.Run(n)
		},
		Check: l.Check,
		Close: func() { _ = l.Close() }, // Settle or Check has reported blocks that are left
	}
	switch {
	case kept:
		work.Check, work.Close = l.CheckKept, nil
	case r.forgets:
		work.Settle = l.Settle
	}
	return work, nil
}
