//go:build cgo && unix

package tables

import (
	"errors"
	"math/rand/v2"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/libc"
)

// Patterns is the table of three ways in which programs use blocks.
func Patterns() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "patterns",
			Title: "Blocks replaced among many, freed at random, and handed over",
			About: "Replace: 4,096 blocks of 16 to 1,024 bytes are live, and one after the other, in random order, is freed and replaced by another, whose first and last byte are written. " +
				"Drain: 131,072 blocks of 64 bytes are allocated, and all are freed in random order; a malloc and a free are two blocks. " +
				"Handover: one goroutine allocates 4,096 blocks of 64 bytes, and another one frees them. " +
				"native is C's malloc called from a loop in C, libc the same malloc called from Go. No source has figures.",
			Unit:  "block",
			Chart: result.Bars,
		},
		Rows:  patternRows(),
		Named: true,
	}
}

func patternRows() []measure.Row {
	row := func(name, group, versus string, open func() (measure.Work, error)) measure.Row {
		return measure.Row{Name: name, Group: group, Versus: versus, Open: func(int) (measure.Work, error) { return open() }}
	}
	rows := []measure.Row{
		row("replace-native", "replace", "", nativeReplace),
		row("replace-heap", "replace", "replace-native", heapReplace),
		row("replace-local", "replace", "replace-native", localReplace),
		row("drain-native", "drain", "", func() (measure.Work, error) {
			d := newDrain()
			return d.work(func(n int) int { return cside.Replace(n, d.steps, d.slots) }, func() error { cside.FreeAll(d.slots); return nil }), nil
		}),
		row("drain-heap", "drain", "drain-native", func() (measure.Work, error) {
			d := newDrain()
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			return d.work(func(n int) int { return d.run(h, n) }, h.DestroyAll), err
		}),
		row("handover-libc", "handover", "", func() (measure.Work, error) {
			var a libc.Allocator
			return handing(func(c *crate) {
				for i := range c {
					c.put(i, a.Malloc(pairSize))
				}
			}, func(c *crate) (intact int) {
				for i := range c {
					ptr, ok := c.take(i)
					intact += ok
					a.Free(ptr)
				}
				return intact
			}), nil
		}),
		row("handover-heap", "handover", "handover-libc", func() (measure.Work, error) {
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			if err != nil {
				return measure.Work{}, err
			}
			w := handing(func(c *crate) {
				for i := range c {
					c.put(i, h.Malloc(pairSize))
				}
			}, func(c *crate) (intact int) {
				for i := range c {
					ptr, ok := c.take(i)
					intact += ok
					h.Free(ptr)
				}
				return intact
			})
			w.Close = func() { h.Destroy() } // Check has found that no block is live
			return w, nil
		}),
	}
	for i := range rows {
		switch rows[i].Group {
		case "handover":
			rows[i].N, rows[i].Procs = 40*len(crate{}), []int{2}
		case "drain":
			rows[i].N = 2 * drainSteps
		}
	}
	return rows
}

const (
	liveBlocks = 4096
	manySteps  = 1 << 16
)

// A replacement is live blocks, and the steps that replace them one after the other.
type replacement struct {
	steps *[manySteps]cside.Step
	slots *[liveBlocks]uintptr // addresses: a pointer would need a write barrier
	did   int                  // blocks of the last round
}

func newReplacement() *replacement {
	rng := rand.New(rand.NewPCG(3, 4))
	r := &replacement{steps: new([manySteps]cside.Step), slots: new([liveBlocks]uintptr)}
	for i := range r.steps {
		r.steps[i] = cside.Step{Slot: rng.Uint32N(liveBlocks), Size: 16 + rng.Uint32N(1024-16+1)}
	}
	for i := range liveBlocks { // fills every slot
		r.steps[i].Slot = uint32(i)
	}
	rng.Shuffle(liveBlocks, func(i, j int) { r.steps[i], r.steps[j] = r.steps[j], r.steps[i] })
	return r
}

// work makes a work that replaces the blocks, and frees those that are left.
func (r *replacement) work(replace func(n int) (did int), free func(unsafe.Pointer), end func() error) measure.Work {
	return measure.Work{
		Run:   func(n int) { r.did = replace(n) },
		Check: func(n int) error { return allDone(r.did, n) },
		Close: func() {
			for slot := range r.slots {
				free(r.at(uint32(slot)))
			}
			if err := end(); err != nil {
				panic(err) // a block was lost
			}
		},
	}
}

// at returns the block in a slot, nil if there is none. The blocks are not in
// the Go heap, or their heap keeps them alive.
func (r *replacement) at(slot uint32) unsafe.Pointer {
	return cheap.Pointer(r.slots[slot&(liveBlocks-1)])
}

// put stores and touches a block of size bytes.
func (r *replacement) put(slot uint32, ptr unsafe.Pointer, size uint32) {
	r.slots[slot&(liveBlocks-1)] = uintptr(ptr)
	*(*byte)(ptr) = 1
	*(*byte)(unsafe.Add(ptr, size-1)) = 1
}

func heapReplace() (measure.Work, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return measure.Work{}, err
	}
	r := newReplacement()
	return r.work(func(n int) int {
		for i := range n {
			s := &r.steps[i&(manySteps-1)]
			h.Free(r.at(s.Slot))
			r.put(s.Slot, h.Malloc(int(s.Size)), s.Size)
		}
		return n
	}, h.Free, h.Destroy), nil
}

func localReplace() (measure.Work, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return measure.Work{}, err
	}
	l, r := h.NewLocal(), newReplacement()
	return r.work(func(n int) int {
		for i := range n {
			s := &r.steps[i&(manySteps-1)]
			l.Free(r.at(s.Slot))
			r.put(s.Slot, l.Malloc(int(s.Size)), s.Size)
		}
		return n
	}, l.Free, func() error { return errors.Join(l.Destroy(), h.Destroy()) }), nil
}

func nativeReplace() (measure.Work, error) {
	r := newReplacement()
	return r.work(func(n int) int { return cside.Replace(n, r.steps[:], r.slots[:]) },
		func(unsafe.Pointer) {}, func() error { cside.FreeAll(r.slots[:]); return nil }), nil
}

const drainSteps = 1 << 18

// A drain is the steps that fill all slots one after the other, and empty them at random.
type drain struct {
	steps []cside.Step
	slots []uintptr
	did   int
}

func newDrain() *drain {
	const blocks = drainSteps / 2
	d := &drain{steps: make([]cside.Step, drainSteps), slots: make([]uintptr, blocks)}
	for i, slot := range rand.New(rand.NewPCG(5, 6)).Perm(blocks) {
		d.steps[i], d.steps[blocks+i] = cside.Step{Slot: uint32(i), Size: pairSize}, cside.Step{Slot: uint32(slot)}
	}
	return d
}

func (d *drain) run(h *cheap.Heap, n int) int {
	for i := range n {
		s := &d.steps[i&(len(d.steps)-1)]
		slot := &d.slots[s.Slot]
		h.Free(cheap.Pointer(*slot)) // nil, or what a round that ended early has left
		if *slot = 0; s.Size != 0 {
			ptr := h.Malloc(int(s.Size))
			*(*byte)(ptr) = 1
			*slot = uintptr(ptr)
		}
	}
	return n
}

func (d *drain) work(run func(n int) int, end func() error) measure.Work {
	return measure.Work{
		Run:   func(n int) { d.did = run(n) },
		Check: func(n int) error { return allDone(d.did, n) },
		Close: func() { end() },
	}
}

// A crate is the blocks that a producer hands to a consumer together, by address.
type crate [4096]uintptr

// put and take write and read the first byte of a block, so that it is used.
func (c *crate) put(i int, ptr unsafe.Pointer) {
	c[i] = uintptr(ptr)
	*(*byte)(ptr) = byte(i)
}

// take returns 1 if the block is intact, else 0.
func (c *crate) take(i int) (ptr unsafe.Pointer, intact int) {
	// The blocks are not in the Go heap, or their heap keeps them alive.
	ptr = cheap.Pointer(c[i])
	if *(*byte)(ptr) == byte(i) {
		intact = 1
	}
	return ptr, intact
}

// handing is the work of handing over whole crates: fill allocates those of
// a crate on one goroutine, empty frees them on another and returns how many were intact.
func handing(fill func(*crate), empty func(*crate) int) measure.Work {
	sum := 0
	return measure.Work{
		Run: func(n int) {
			full, free := make(chan *crate), make(chan *crate, 2)
			free <- new(crate)
			free <- new(crate)
			go func() {
				for range crates(n) {
					c := <-free
					fill(c)
					full <- c
				}
				close(full)
			}()
			sum = 0
			for c := range full {
				sum += empty(c)
				free <- c
			}
		},
		Check: func(n int) error { return allDone(sum, crates(n)*len(crate{})) },
	}
}

func crates(n int) int { return (n + len(crate{}) - 1) / len(crate{}) }
