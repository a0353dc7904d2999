//go:build cgo && unix

//cheapvet:ignore perobject this is what owners are compared with

package tables

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay/resident"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// The objects of the table resident: large ones, as images and textures are.
const (
	LargeObjects = 512
	LargeBytes   = 256 << 10

	ResidentLimit = 64 << 20 // of package pace: without one, as many bytes may come before it collects
)

// Resident is the table of what stays in memory where large C objects are forgotten.
func Resident() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "resident",
			Title: "What stays resident if C objects are forgotten",
			About: fmt.Sprintf("%d objects of %d KiB of C memory are made, written to and released, one after the other: closed at once, or forgotten, with a cleanup, with an own.Pool, and with an own.Pool and package pace, which has a limit of %d MiB. ", LargeObjects, LargeBytes>>10, ResidentLimit>>20) +
				"Resident is the most memory of the process during that, less what it had before the first time. " +
				"The collector does not start for C memory, so without pace the figure grows with the number of objects. No source has figures.",
			Unit:  "object",
			Chart: result.Bytes,
		},
		Rows: residentRows(),
	}
}

// residentRows lists the rows. Each has a process of its own, because resident memory
// and the pacing are those of a process.
func residentRows() []measure.Row {
	const alone = "a resource of 64 KiB or more has a batch of its own (own.Options.Pinned), about 300 bytes of the Go heap"
	var rows []measure.Row
	for _, w := range largeWays {
		note := alone
		if w.name == "addcleanup" {
			note = ""
		}
		rows = append(rows, measure.Row{
			Name: w.name, Note: note, Group: "resident", N: LargeObjects, Apart: true,
			Open: func(int) (measure.Work, error) { return openLarge(w.open) },
		})
	}
	return rows
}

// A large is a way to make large objects.
type large struct {
	*tally
	make func(size int) largeObject
	end  func() error // when nothing is left
}

// A largeObject is a Go object with a block of C. It is forgotten, or closed when it is not
// used any more.
type largeObject struct {
	object any
	block  unsafe.Pointer
	closes *own.Handle[unsafe.Pointer] // nil if it is forgotten
}

// done ends the use of an object.
func (o largeObject) done() {
	if o.closes != nil {
		o.closes.Close()
	}
	runtime.KeepAlive(o.object)
}

func cleanLarge() *large {
	t := new(tally)
	return &large{tally: t, make: func(size int) largeObject {
		o := &lifetime.Plain{Block: needed(cside.Malloc(size))}
		runtime.AddCleanup(o, func(p unsafe.Pointer) { cside.Free(p); t.release() }, o.Block)
		return largeObject{object: o, block: o.Block}
	}, end: func() error { return nil }}
}

func ownLarge(closes bool) *large {
	t := new(tally)
	p := own.NewPool(own.Options{Name: "bench.large", Release: func(_ any, resources []uintptr) error {
		for _, r := range resources {
			cside.Free(cheap.Pointer(r))
		}
		t.released.Add(int64(len(resources)))
		return nil
	}})
	return &large{tally: t, make: func(size int) largeObject {
		o := new(lifetime.Owned)
		block := needed(cside.Malloc(size))
		if err := o.Handle.Own(p, block, size); err != nil {
			panic(err) // the pool is open, and has no limit
		}
		if closes {
			return largeObject{o, block, &o.Handle}
		}
		return largeObject{object: o, block: block}
	}, end: func() error { return p.CloseWait(context.Background()) }}
}

func paceLarge() (*large, error) {
	if err := pace.Start(pace.Options{Limit: ResidentLimit}); err != nil {
		return nil, err
	}
	l := ownLarge(false)
	end := l.end
	l.end = func() error { defer pace.Stop(); return end() }
	return l, nil
}

// largeWays are the ways to release large objects.
var largeWays = []struct {
	name string
	open func() (*large, error)
}{
	{"close", func() (*large, error) { return ownLarge(true), nil }},
	{"addcleanup", func() (*large, error) { return cleanLarge(), nil }},
	{"own", func() (*large, error) { return ownLarge(false), nil }},
	{"own-pace", paceLarge},
}

// objectsPerSample is after how many objects resident memory is read.
const objectsPerSample = 16

// openLarge makes a work that reads the resident memory while it makes objects.
func openLarge(open func() (*large, error)) (measure.Work, error) {
	l, err := open()
	if err != nil {
		return measure.Work{}, err
	}
	memory, err := resident.Self()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return measure.Work{}, err
	}
	now := func() int64 {
		if memory == nil {
			return 0
		}
		bytes, failed := memory.Bytes()
		err = errors.Join(err, failed)
		return bytes
	}
	before, most := now(), int64(0) // what malloc keeps of earlier rounds counts
	work := l.work(func(n int) {
		most = 0
		for i := range n {
			o := l.make(LargeBytes)
			write(o.block, LargeBytes)
			o.done()
			if i%objectsPerSample == objectsPerSample-1 {
				most = max(most, now()-before)
			}
		}
	})
	check := work.Check
	work.Check = func(n int) error {
		if memory != nil && err != nil {
			return err
		}
		return check(n)
	}
	work.Figures = func() measure.Figures { return measure.Figures{Resident: most} }
	work.Close = func() { l.end() } // Check has found that nothing is left
	return work, nil
}
