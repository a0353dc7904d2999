//go:build cgo && unix

//cheapvet:ignore perobject this is what owners are compared with

package splice

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/lifetime"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A small object owns a block, and has 8 bytes. It has a pointer, so that the
// allocator does not put two objects into one block. No other object here has a
// pointer and this size, so that a span has only small objects.
type small struct {
	_     [8 - unsafe.Sizeof(uintptr(0))]byte // not at the end: there, a field of no size would be padded
	block unsafe.Pointer
}

// smallSink makes objects escape.
//
//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var smallSink *small

// smallRows are ways to release the blocks of small objects.
func smallRows() []measure.Row {
	row := func(name string, own func() *small) measure.Row {
		return measure.Row{
			Name: name,
			Note: "8-byte objects, alone in their spans",
			Open: func(int) (measure.Work, error) { return forgetting(own), nil },
		}
	}
	return []measure.Row{
		row("addcleanup-8-bytes", smallWithCleanup),
		row("finalizer-8-bytes", smallWithFinalizer),
	}
}

// The argument is an address and not a pointer: the runtime allocates memory for it,
// which would be among the small objects if it had a pointer.
func smallWithCleanup() *small {
	o := &small{block: cside.CreateBlock()}
	runtime.AddCleanup(o, destroyAddress, uintptr(o.block))
	return o
}

func destroyAddress(block uintptr) { cside.DestroyAll([]uintptr{block}) }

func smallWithFinalizer() *small {
	o := &small{block: cside.CreateBlock()}
	runtime.SetFinalizer(o, finalizeSmall)
	return o
}

func finalizeSmall(o *small) { cside.Destroy(o.block) }

// forgetting makes objects and forgets them immediately. A round ends when C has
// counted every destruction.
func forgetting(own func() *small) measure.Work {
	before := cside.Count() // of the round before
	return measure.Work{
		Run: func(n int) {
			for range n {
				smallSink = own()
			}
		},
		Settle: settle,
		Check: func(n int) error {
			after := cside.Count()
			created, destroyed := after.Created-before.Created, after.Destroyed-before.Destroyed
			before = after
			if created != uint64(n) || destroyed != uint64(n) {
				return fmt.Errorf("made %d blocks in C and destroyed %d, for %d objects", created, destroyed, n)
			}
			return nil
		},
	}
}

// settle collects until every block is destroyed.
func settle() error {
	smallSink = nil
	return lifetime.Collect(func() int {
		c := cside.Count()
		return int(c.Created - c.Destroyed)
	})
}
