//go:build cgo && unix

package tables

import (
	"fmt"

	"github.com/cheapgo/cheap/cmd/cheap/internal/lifetime"
	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
)

// A release is a way to release what C made.
type release struct {
	name, note string
	way        lifetime.Way
	forgets    bool // it is the collector that finds out
}

// releases lists the ways in the order of the report.
var releases = []release{
	{"manual", "no Go object", lifetime.Manual, false},
	{"manual-object", "a Go object that escapes holds the pointer", lifetime.ManualObject, false},
	{"defer", "no Go object", lifetime.Defer, false},
	{"addcleanup", "", lifetime.Cleanup, true},
	{"finalizer", "", lifetime.Finalizer, true},
	{"finalizer-empty", "the block is destroyed by hand, and the finalizer only counts", lifetime.FinalizerEmpty, true},
	{"finalizer-no-c", "the object holds nothing, and the finalizer only counts; the runtime ignores that of an object without a size, so it has 16 bytes", lifetime.FinalizerNoC, true},
	{"own-forget", "own.Pool", lifetime.Owner, true},
	{"own-close", "own.Pool", lifetime.Close, false},
	{"own-memory", "own.NewMem, no C", lifetime.Memory, true},
	{"own-group", fmt.Sprintf("own.Group, no C; a block is one of %d of %d bytes", lifetime.GroupBlocks, lifetime.GroupBlockSize), lifetime.Group, true},
}

// forgotten is how many objects a round makes: some collections' worth, and a
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

// open makes the work of a row. Where the collector is off, a row that forgets its
// objects is over when it has done so.
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
		Close: func() { _ = l.Close() }, // what it says of blocks that are left, Settle or Check has said
	}
	switch {
	case kept:
		work.Check, work.Close = l.CheckKept, nil
	case r.forgets:
		work.Settle = l.Settle
	}
	return work, nil
}
