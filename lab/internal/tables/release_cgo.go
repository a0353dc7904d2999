//go:build cgo && unix

package tables

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/own"
)

// A release is a way to release C memory.
type release struct {
	name, note string
	way        lifetime.Way
	forgets    bool // the collector finds the objects
	purpose    purpose
}

// A purpose says what a row is for.
type purpose int

const (
	usual      purpose = iota
	withoutC           // memory that is not from C's malloc
	diagnostic         // shows where the time of another row goes
	fromCold           // the first objects after all memory was given back, not those in a steady state
	more               // what is promised of other ways than those that most programs use
)

// releases lists the ways in the order of the report.
var releases = []release{
	{"manual", "no Go object", lifetime.Manual, false, usual},
	{"manual-object", "a Go object that escapes holds the pointer", lifetime.ManualObject, false, usual},
	{"defer", "no Go object", lifetime.Defer, false, usual},
	{"addcleanup", "", lifetime.Cleanup, true, usual},
	{"finalizer", "", lifetime.Finalizer, true, usual},
	{"finalizer-empty", "the block is destroyed by hand, and the finalizer only counts", lifetime.FinalizerEmpty, true, diagnostic},
	{"finalizer-no-c", "the object holds nothing, and its finalizer only counts; it has 16 bytes, because the runtime ignores the finalizer of an object of no size", lifetime.FinalizerNoC, true, diagnostic},
	{"own-forget", "own.Pool", lifetime.Owner, true, usual},
	{"own-close", "own.Pool", lifetime.Close, false, usual},
	{"own-memory", "own.NewMem, no C", lifetime.Memory, true, withoutC},
	{"own-group", fmt.Sprintf("own.Group, no C; a block is one of %d of %d bytes", lifetime.GroupBlocks, lifetime.GroupBlockSize), lifetime.Group, true, withoutC},
	{"addcleanup" + cold, coldNote, lifetime.Cleanup, true, fromCold},
	{"finalizer" + cold, coldNote, lifetime.Finalizer, true, fromCold},
	{"own-forget" + cold, coldNote, lifetime.Owner, true, fromCold},
	{"own-memory" + cold, coldNote, lifetime.Memory, true, fromCold},
	{"bulk", "one cgo call destroys 256 blocks", lifetime.Bulk, false, more},
	{"own-inline", "own.Inline", lifetime.OwnerInline, true, more},
	{"own-make", "blocks made in advance", lifetime.Make, true, more},
	{"own-make-inline", "blocks made in advance, own.Inline", lifetime.MakeInline, true, more},
	{"own-bare", "no C: release does nothing", lifetime.Bare, true, more},
	{"own-children", "owners with a parent, which lives", lifetime.Children, true, more},
	{"go-new", "no C: Go arrays of 100 bytes", lifetime.Arrays, true, more},
}

// forgotten is how many objects a round makes at least, a multiple of the blocks of a
// group.
const forgotten = 100_000

// cold ends the names of rows that begin with nothing.
const cold = "-cold"

var coldNote = fmt.Sprintf("the first %d objects after all memory was given back to the system", forgotten)

// steadyWeight is the part of the time of a row whose rounds are long.
const steadyWeight = 10

// sections are the parts of the table in which rows stand that are not usual.
var sections = map[purpose]string{
	withoutC:   "Memory of package own, without C",
	diagnostic: "What a finalizer costs that does nothing",
	fromCold:   "A cold start",
	more:       "Other ways",
}

// releaseRows lists the rows with a collector, then those without.
func releaseRows() []measure.Row {
	var rows []measure.Row
	for _, off := range []bool{false, true} {
		for _, r := range releases {
			if !off || r.purpose != fromCold && r.purpose != more {
				rows = append(rows, r.row(off))
			}
		}
	}
	return slices.Concat(rows, parallelReleases(), jemallocReleases())
}

// parallelReleases are rows of as many goroutines as there are processors.
func parallelReleases() []measure.Row {
	var rows []measure.Row
	for _, r := range []struct {
		name string
		way  func(procs int) lifetime.Way
	}{
		{"manual-object", lifetime.ManualParallel},
		{"addcleanup", lifetime.CleanupParallel},
		{"own-forget", func(procs int) lifetime.Way { return lifetime.OwnerParallel(procs, own.Run{}) }},
		{"own-inline", func(procs int) lifetime.Way { return lifetime.OwnerParallel(procs, own.Inline()) }},
	} {
		row := release{name: r.name + "-parallel", forgets: true, purpose: more}.row(false)
		row.Section, row.Group, row.Versus, row.Procs = "One goroutine for each processor", "parallel", "manual-object-parallel", []int{2}
		if row.Versus == row.Name {
			row.Versus = ""
		}
		row.Open = func(procs int) (measure.Work, error) {
			return release{way: r.way(procs), forgets: true}.open(false)
		}
		rows = append(rows, row)
	}
	return rows
}

// jemallocReleases are rows of a process whose malloc is jemalloc's.
func jemallocReleases() []measure.Row {
	const n = 1_000_000
	l, missing := preload.Find(jemallocName)
	var rows []measure.Row
	for _, r := range []release{
		{"manual-object", "", lifetime.ManualObject, false, more},
		{"own-forget", "", lifetime.Owner, true, more},
		{"own-make", "blocks made in advance", lifetime.Make, true, more},
		{"own-inline", "own.Inline", lifetime.OwnerInline, true, more},
	} {
		row := r.row(false)
		row.Name += "-jemalloc"
		row.Section, row.Group, row.Versus = "On jemalloc", "jemalloc", "manual-object-jemalloc"
		if row.Versus == row.Name {
			row.Versus = ""
		}
		row.N, row.Steady, row.Apart = n, false, true
		if missing == nil {
			row.Env = []string{l.Env()}
		}
		row.Open = func(int) (measure.Work, error) {
			if missing != nil {
				return measure.Work{}, missing
			}
			if err := (blockWay{name: jemallocName, loaded: l.Path}).check(); err != nil {
				return measure.Work{}, err
			}
			w, err := r.open(false)
			if err != nil {
				return w, err
			}
			w.Run(n / 10) // fresh memory is touched
			if w.Settle != nil {
				err = w.Settle()
			}
			return w, err
		}
		rows = append(rows, row)
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
	if row.Steady = !off && r.purpose != fromCold; row.Steady {
		row.Weight = steadyWeight
	}
	row.Named = r.purpose == diagnostic || r.purpose == more
	row.Section = sections[r.purpose]
	if off {
		row.Section = "With the collector off"
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
			if r.forgets {
				cside.ResetPeak()
				if l.Peak != nil {
					l.Peak()
				}
			}
			l.Begin()
			l.Run(n)
		},
		Check: l.Check,
		Close: func() { _ = l.Close() }, // Settle or Check has reported blocks that are left
	}
	if r.purpose == more {
		// What was made in advance and is not used is no block of the next row.
		work.Check = func(n int) error { return errors.Join(l.Check(n), lifetime.Collect(lifetime.Live)) }
	}
	if r.forgets {
		work.Figures = func() measure.Figures {
			if l.Peak != nil {
				return measure.Figures{Peak: l.Peak()}
			}
			return measure.Figures{Peak: cside.Count().Peak}
		}
	}
	switch {
	case kept:
		work.Check, work.Close = l.CheckKept, nil
	case r.forgets:
		work.Settle = l.Settle
	}
	return work, nil
}
