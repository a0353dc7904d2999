//go:build cgo && unix

package tables

import (
	"math/rand/v2"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/libc"
)

// Patterns is the table of the ways in which programs use blocks.
func Patterns() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "patterns",
			Title: "Blocks replaced among many, freed at random, grown, and handed over",
			About: "Replace: 4,096 blocks of 16 to 1,024 bytes are live, and one after the other, in random order, is freed and replaced by another, whose first and last byte are written. " +
				"Large: the same with 2,048 blocks of 65,000 to 70,000 bytes. " +
				"Drain: 131,072 blocks of 64 bytes are allocated, and all are freed in random order; a malloc and a free are two blocks. " +
				"Spill: the same with 4,096 blocks of 32 KiB. " +
				"Grow: eight blocks grow in turn, by 4 KiB up to 2 MiB. " +
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
	var rows []measure.Row
	for _, g := range []struct {
		name string
		n    int // of a round, or 0
		open func() *slots
	}{
		{"replace", 0, func() *slots { return replaced(4096, 16, 1024) }},
		{"large", 0, func() *slots { return replaced(2048, 65_000, 70_000) }},
		{"drain", 1 << 19, func() *slots { return drained(1<<17, pairSize) }},
		{"spill", 1 << 14, func() *slots { return drained(1<<12, 32<<10) }},
	} {
		native, heap := row(g.name+"-native", g.name, "", func() (measure.Work, error) {
			s := g.open()
			return s.work(func(n int) int { return cside.Replace(n, s.steps, s.at) }, func() error { cside.FreeAll(s.at); return nil }), nil
		}), row(g.name+"-heap", g.name, g.name+"-native", func() (measure.Work, error) {
			s := g.open()
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			return s.work(func(n int) int { return s.run(h, n) }, h.DestroyAll), err
		})
		native.N, heap.N = g.n, g.n
		rows = append(rows, native, heap)
	}
	rows = append(rows,
		row("replace-local", "replace", "replace-native", localReplace),
		row("grow-libc", "grow", "", func() (measure.Work, error) { return growing(libc.Allocator{}), nil }),
		row("grow-heap", "grow", "grow-libc", func() (measure.Work, error) {
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			w := growing(h)
			w.Close = func() { h.DestroyAll() }
			return w, err
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
	)
	for i := range rows {
		switch rows[i].Group {
		case "handover":
			rows[i].N, rows[i].Procs = 40*len(crate{}), []int{2}
		case "grow":
			rows[i].N = 2 * growSteps
		}
	}
	return rows
}

// slots has blocks, and the steps that are done one after the other, over and over: a step frees the block in a
// slot and, unless its size is 0, puts another one there.
type slots struct {
	steps []cside.Step
	at    []uintptr // addresses: a pointer would need a write barrier
	did   int       // steps of the last round
}

// replaced makes the steps that replace blocks at random. The first ones fill all slots.
func replaced(blocks, least, most int) *slots {
	rng := rand.New(rand.NewPCG(3, 4))
	s := &slots{steps: make([]cside.Step, 1<<16), at: make([]uintptr, blocks)}
	for i := range s.steps {
		s.steps[i] = cside.Step{Slot: rng.Uint32N(uint32(blocks)), Size: uint32(least + rng.IntN(most-least+1))}
	}
	for i := range blocks {
		s.steps[i].Slot = uint32(i)
	}
	rng.Shuffle(blocks, func(i, j int) { s.steps[i], s.steps[j] = s.steps[j], s.steps[i] })
	return s
}

// drained makes the steps that fill all slots one after the other, and empty them at random.
func drained(blocks int, size uint32) *slots {
	s := &slots{steps: make([]cside.Step, 2*blocks), at: make([]uintptr, blocks)}
	for i, slot := range rand.New(rand.NewPCG(5, 6)).Perm(blocks) {
		s.steps[i], s.steps[blocks+i] = cside.Step{Slot: uint32(i), Size: size}, cside.Step{Slot: uint32(slot)}
	}
	return s
}

func (s *slots) work(run func(n int) int, end func() error) measure.Work {
	return measure.Work{
		Run:   func(n int) { s.did = run(n) },
		Check: func(n int) error { return allDone(s.did, n) },
		Close: func() { end() },
	}
}

func (s *slots) run(h *cheap.Heap, n int) int {
	for i := range n {
		step := &s.steps[i&(len(s.steps)-1)]
		at := &s.at[step.Slot]
		h.Free(cheap.Pointer(*at)) // nil, or what a round that ended early has left
		if *at = 0; step.Size != 0 {
			put(at, h.Malloc(int(step.Size)), step.Size)
		}
	}
	return n
}

func localReplace() (measure.Work, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return measure.Work{}, err
	}
	l, s := h.NewLocal(), replaced(4096, 16, 1024)
	return s.work(func(n int) int {
		for i := range n {
			step := &s.steps[i&(len(s.steps)-1)]
			at := &s.at[step.Slot]
			l.Free(cheap.Pointer(*at))
			put(at, l.Malloc(int(step.Size)), step.Size)
		}
		return n
	}, h.DestroyAll), nil
}

// put stores and touches a block of size bytes.
func put(at *uintptr, ptr unsafe.Pointer, size uint32) {
	*at = uintptr(ptr)
	*(*byte)(ptr) = 1
	*(*byte)(unsafe.Add(ptr, size-1)) = 1
}

const growSteps = 8 * 512 // in which eight blocks have grown to 2 MiB

func growing(a interface {
	Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer
	Free(ptr unsafe.Pointer)
}) measure.Work {
	var blocks [8]unsafe.Pointer
	did := 0
	free := func() {
		for i, ptr := range blocks {
			a.Free(ptr)
			blocks[i] = nil
		}
	}
	return measure.Work{
		Run: func(n int) {
			for did = 0; did < n; did++ {
				if did%growSteps == 0 {
					free()
				}
				size := (did%growSteps/8 + 1) * 4096
				ptr := a.Realloc(blocks[did%8], size)
				*(*byte)(unsafe.Add(ptr, size-1)) = 1
				blocks[did%8] = ptr
			}
		},
		Check: func(n int) error { return allDone(did, n) },
		Close: free,
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
