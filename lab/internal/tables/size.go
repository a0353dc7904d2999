package tables

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/own"
)

// An object of the size table has a word for what it would own. The word is a
// pointer: two objects of 8 bytes without a pointer would share a block of the
// runtime, and live equally long.
type object[Rest any] struct {
	rest  Rest
	_     [8 - unsafe.Sizeof(uintptr(0))]byte // sizes are those of 64-bit systems
	owned unsafe.Pointer
}

// An owning object has a Handle instead of the word.
type owning[Rest any] struct {
	rest  Rest
	_     [16 - unsafe.Sizeof(own.Handle[unsafe.Pointer]{})]byte
	owner own.Handle[unsafe.Pointer]
}

// Sizes of objects that are always measured. The others are measured if -run names the
// table: a round with finalizers that has ten collections takes seconds for small objects.
var usualSizes = []int{64, 256, 1024, 4096}

// sizeWeight is the part of the time of a row. Ten collections take the longer, the
// smaller the objects are.
func sizeWeight(bytes int) float64 { return 1.5 + 320/float64(bytes) }

// objects is how many objects of a size a round forgets at least.
func objects(bytes int) int {
	if bytes <= 512 {
		return 30_000
	}
	return 20_000
}

// sizeSink makes objects escape.
//
//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var sizeSink unsafe.Pointer

// ownedBytes is the size of a resource that owners are told: that of the blocks of
// the table release.
const ownedBytes = 100

// sized are the figures of the source for one size, in nanoseconds.
type sized struct {
	bytes            int
	alloc, finalizer float64
	rows             func(sized) []measure.Row
}

// published1260P are the source's figures: objects of each size allocated, and
// allocated with a finalizer.
var published1260P = []sized{
	{8, 7.476, 736.0, sizeRows[[0]byte, [0]byte]},
	{16, 11.08, 446.9, sizeRows[[8]byte, [0]byte]},
	{32, 13.11, 333.8, sizeRows[[24]byte, [16]byte]},
	{64, 18.43, 258.2, sizeRows[[56]byte, [48]byte]},
	{128, 29.68, 205.8, sizeRows[[120]byte, [112]byte]},
	{256, 52.06, 223.4, sizeRows[[248]byte, [240]byte]},
	{512, 92.86, 279.9, sizeRows[[504]byte, [496]byte]},
	{1024, 177.9, 385.0, sizeRows[[1016]byte, [1008]byte]},
	{2048, 355.3, 589.0, sizeRows[[2040]byte, [2032]byte]},
	{4096, 706.9, 972.7, sizeRows[[4088]byte, [4080]byte]},
}

// sourceOfSizes is their source. Its author and its date could not be confirmed.
var sourceOfSizes = result.Source{
	Name:    "i7-1260P",
	Title:   "allocation with and without a finalizer, by the size of the object",
	Machine: "Intel Core i7-1260P",
}

// Size is the table of what the release of an object costs by its size.
func Size() measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "size",
		Title: "What the size of an object changes",
		About: "An object of so many bytes is allocated and forgotten: alone, with a finalizer, with a cleanup, and with an Owner in it. " +
			"No object owns C memory, so the time is that of the runtime and of package own. " +
			"The time ends when everything is released. " +
			"Each object has a pointer, as owners have; from 1,024 bytes on the runtime therefore puts a header before it and takes the next size class. " +
			"With -run size there are ten sizes, from 8 bytes on.",
		Unit:    "object",
		Over:    "bytes",
		Chart:   result.Sizes,
		Sources: []result.Source{sourceOfSizes},
	}}
	for _, s := range published1260P {
		t.Rows = append(t.Rows, s.rows(s)...)
	}
	return t
}

// sizeRows returns the rows of one size: objects with Rest beside their
// pointer, and with OwnerRest beside their Handle.
func sizeRows[Rest, OwnerRest any](s sized) []measure.Row {
	row := func(kind string, open func() measure.Work) measure.Row {
		return measure.Row{
			Name:   fmt.Sprintf("%s-%d", kind, s.bytes),
			Group:  fmt.Sprint(s.bytes),
			Versus: fmt.Sprintf("alloc-%d", s.bytes),
			N:      objects(s.bytes),
			Steady: true,
			Named:  !slices.Contains(usualSizes, s.bytes),
			Weight: sizeWeight(s.bytes),
			Open:   func(int) (measure.Work, error) { return open(), nil },
		}
	}
	alloc := row("alloc", allocate[Rest])
	alloc.Versus, alloc.N, alloc.Steady = "", 0, false
	alloc.Published = figure(sourceOfSizes, s.alloc)
	finalizer := row("finalizer", withFinalizer[Rest])
	finalizer.Published = figure(sourceOfSizes, s.finalizer)
	cleanup := row("addcleanup", withCleanup[Rest])
	owner := row("own", withOwner[OwnerRest])
	if size := unsafe.Sizeof(owning[OwnerRest]{}); size != uintptr(s.bytes) {
		owner.Note = fmt.Sprintf("the object has %d bytes, the size of an Owner", size)
	}
	return []measure.Row{alloc, finalizer, cleanup, owner}
}

func allocate[Rest any]() measure.Work {
	return measure.Work{Run: func(n int) {
		for range n {
			sizeSink = unsafe.Pointer(new(object[Rest]))
		}
		sizeSink = nil
	}}
}

func withFinalizer[Rest any]() measure.Work {
	t := new(tally)
	finalize := func(*object[Rest]) { t.released.Add(1) }
	return t.work(func(n int) {
		for range n {
			o := new(object[Rest])
			runtime.SetFinalizer(o, finalize)
			sizeSink = unsafe.Pointer(o)
		}
	})
}

func withCleanup[Rest any]() measure.Work {
	t := new(tally)
	return t.work(func(n int) {
		for range n {
			o := new(object[Rest])
			runtime.AddCleanup(o, (*tally).release, t)
			sizeSink = unsafe.Pointer(o)
		}
	})
}

// resource is what each owner owns.
var resource byte

func withOwner[Rest any]() measure.Work {
	t := new(tally)
	p := own.NewPool(own.Options{
		Name:    "bench.object",
		Release: func(_ any, resources []uintptr) error { t.released.Add(int64(len(resources))); return nil },
	})
	w := t.work(func(n int) {
		for range n {
			o := new(owning[Rest])
			if err := o.owner.Own(p, unsafe.Pointer(&resource), ownedBytes); err != nil {
				panic(err) // the pool is open, and has no limit
			}
			sizeSink = unsafe.Pointer(o)
		}
	})
	w.Close = func() { p.CloseWait(context.Background()) } // Check has found that nothing is left
	return w
}

// A tally counts objects and their releases.
type tally struct {
	made     int64
	released atomic.Int64
	before   int64 // released when the last round was checked
}

func (t *tally) release() { t.released.Add(1) }

// work makes a work of objects that forget makes and forgets.
func (t *tally) work(forget func(n int)) measure.Work {
	return measure.Work{
		Run: func(n int) {
			forget(n)
			sizeSink = nil
			t.made += int64(n)
		},
		Settle: func() error { return lifetime.Collect(func() int { return int(t.made - t.released.Load()) }) },
		Check: func(n int) error {
			now := t.released.Load()
			if got := now - t.before; got != int64(n) {
				return fmt.Errorf("%d releases of %d objects", got, n)
			}
			t.before = now
			return nil
		},
	}
}
