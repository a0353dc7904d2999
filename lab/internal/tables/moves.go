//go:build cgo && unix

package tables

import (
	"errors"
	"math/rand/v2"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A script is moves that repeat, and the blocks that they move. An operation is per moves.
type script struct {
	moves []cside.Move
	slots []uintptr
	per   int

	at, did int
}

// scripts are the groups of rows of the table patterns that a script makes, in its order.
var scripts = []struct {
	name string
	n    int // of a round of rows that show resident memory, else 0
	make func() *script
}{
	{"resize-8k", 0, func() *script { return resizing(5 << 10) }},
	{"resize-32k", 0, func() *script { return resizing(20 << 10) }},
	{"resize-64k", 0, func() *script { return resizing(40 << 10) }},
	{"resize-16m", 0, func() *script { return resizing(10 << 20) }},
	{"steps-1m", 0, steps},
	{"churn-33k", 1 << 17, func() *script { return churning(33_000, 33_000, 0) }},
	{"churn-64k", 1 << 17, func() *script { return churning(32<<10, 64<<10, 0) }},
	{"aligned-64k", 0, func() *script { return churning(100, 100, 64<<10) }},
}

// resizing is Malloc of size bytes, Realloc to twice, and Free.
func resizing(size uint32) *script {
	return &script{per: 3, slots: make([]uintptr, 1), moves: []cside.Move{
		{What: cside.MoveMalloc, Size: size}, {What: cside.MoveRealloc, Size: 2 * size}, {What: cside.MoveFree},
	}}
}

// steps is Realloc in steps of 64 bytes to 1 MiB.
func steps() *script {
	const step = 64
	s := &script{per: 1, slots: make([]uintptr, 1), moves: []cside.Move{{What: cside.MoveMalloc, Size: step}}}
	for size := uint32(2 * step); size <= 1<<20; size += step {
		s.moves = append(s.moves, cside.Move{What: cside.MoveRealloc, Size: size})
	}
	s.moves = append(s.moves, cside.Move{What: cside.MoveFree})
	return s
}

// churning replaces one of 1,024 blocks after the other, in random order, by one of least to most
// bytes, aligned to align bytes if that is not 0.
func churning(least, most, align uint32) *script {
	const live, replaced = 1024, 1 << 15
	rng := rand.New(rand.NewPCG(5, 6))
	s := &script{per: 2, slots: make([]uintptr, live)}
	for range replaced {
		put := cside.Move{What: cside.MoveMalloc, Slot: rng.Uint32N(live), Size: least + rng.Uint32N(most-least+1), Align: align}
		if align != 0 {
			put.What = cside.MoveAligned
		}
		s.moves = append(s.moves, cside.Move{What: cside.MoveFree, Slot: put.Slot}, put)
	}
	return s
}

// run does n operations by play, which returns how many moves it did.
func (s *script) run(n int, play func(n, at int) int) {
	s.did = play(n*s.per, s.at)
	s.at = (s.at + n*s.per) % len(s.moves)
}

func (s *script) check(n int) error { return allDone(s.did, n*s.per) }

// play is cside.Play on a Heap.
func (s *script) play(h *cheap.Heap, n, at int) (did int) {
	for range n {
		m := &s.moves[at]
		if at++; at == len(s.moves) {
			at = 0
		}
		// The block is not in the Go heap.
		p := cheap.Pointer(s.slots[m.Slot])
		switch m.What {
		case cside.MoveFree:
			h.Free(p)
			s.slots[m.Slot] = 0
			did++
			continue
		case cside.MoveRealloc:
			p = h.Realloc(p, int(m.Size))
		case cside.MoveAligned:
			p = h.AlignedMalloc(int(m.Size), int(m.Align))
		default:
			p = h.Malloc(int(m.Size))
		}
		if p == nil {
			return did
		}
		s.slots[m.Slot] = uintptr(p)
		*(*byte)(p) = 1
		if m.What != cside.MoveRealloc {
			*(*byte)(unsafe.Add(p, m.Size-1)) = 1 // the block has m.Size bytes
		}
		did++
	}
	return did
}

// moveRows returns the rows of the scripts, and those of the sparse blocks.
func moveRows() (rows []measure.Row) {
	pair := func(name string, n int, native, heap func() (measure.Work, error)) {
		row := measure.Row{Group: name, N: n, Apart: n != 0, Keeps: n != 0}
		c, ours := row, row
		c.Name, ours.Name = name+"-native", name+"-heap"
		c.Open = func(int) (measure.Work, error) { return native() }
		ours.Open = func(int) (measure.Work, error) { return heap() }
		ours.Versus, ours.CPUVersus = c.Name, []string{c.Name}
		rows = append(rows, c, ours)
	}
	for _, sc := range scripts {
		pair(sc.name, sc.n, func() (measure.Work, error) {
			s := sc.make()
			return measure.Work{
				Run: func(n int) {
					s.run(n, func(n, at int) (did int) {
						OnMain(func() { did = cside.Play(n, at, s.moves, s.slots) })
						return did
					})
				},
				Check: s.check,
				Close: func() { cside.FreeAll(s.slots) },
			}, nil
		}, func() (measure.Work, error) {
			h, err := cheap.NewHeap(cheap.HeapOptions{})
			if err != nil {
				return measure.Work{}, err
			}
			s := sc.make()
			return measure.Work{
				Run:   func(n int) { s.run(n, func(n, at int) int { return s.play(h, n, at) }) },
				Check: s.check,
				Close: func() {
					for i := range s.slots {
						h.Free(cheap.Pointer(s.slots[i]))
					}
					if err := h.Destroy(); err != nil {
						panic(err) // a block was lost
					}
				},
			}, nil
		})
	}
	const sparseBlocks = 3_000_000
	pair("sparse", sparseBlocks, func() (measure.Work, error) {
		got := 0
		return measure.Work{
			Run:   func(n int) { OnMain(func() { got = cside.Sparse(make([]uintptr, n)) }) },
			Check: func(n int) error { return allDone(got, n) },
		}, nil
	}, func() (measure.Work, error) {
		h, err := cheap.NewHeap(cheap.HeapOptions{})
		if err != nil {
			return measure.Work{}, err
		}
		got := 0
		return measure.Work{
			Run:   func(n int) { got = sparse(h, make([]uintptr, n)) },
			Check: func(n int) error { return errors.Join(allDone(got, n), allDone(int(h.Stats().Blocks), 0)) },
			Close: func() { _ = h.Destroy() }, // Check has found that no block is live
		}, nil
	})
	for _, huge := range []bool{false, true} {
		row := measure.Row{Name: "cache-small-pages", Group: "cache", N: 4 << 30 / cacheValue, Apart: true, Keeps: true}
		if huge {
			row.Name, row.Versus, row.CPUVersus = "cache-huge-pages", row.Name, []string{row.Name}
		}
		row.Open = func(int) (measure.Work, error) { return cache(huge) }
		rows = append(rows, row)
	}
	return rows
}

const cacheValue = 600 // bytes

// cache is reads of random values of a cache that has as many as a round has operations. The first
// round of that number makes it.
func cache(huge bool) (measure.Work, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{HugePages: huge})
	if err != nil {
		return measure.Work{}, err
	}
	var values []uintptr
	rng, read := rand.New(rand.NewPCG(8, 9)), 0
	value := func(i int) []byte { return unsafe.Slice((*byte)(cheap.Pointer(values[i])), cacheValue) } // it has as many
	return measure.Work{
		Run: func(n int) {
			for len(values) < n {
				p := h.Malloc(cacheValue)
				if p == nil {
					return
				}
				values = append(values, uintptr(p))
				clear(value(len(values) - 1))
				*(*uint64)(p) = uint64(len(values))
			}
			read = 0
			var to [cacheValue]byte
			for range n {
				i := rng.IntN(len(values))
				copy(to[:], value(i))
				if *(*uint64)(unsafe.Pointer(&to)) == uint64(i+1) {
					read++
				}
			}
		},
		Check: func(n int) error { return allDone(read, n) },
		Close: func() { _ = h.DestroyAll() },
	}, nil
}

// sparse is cside.Sparse on a Heap.
func sparse(h *cheap.Heap, slots []uintptr) (got int) {
	x, first := uint64(88172645463325252), len(slots)/3*2
	for i := range slots {
		if i == first {
			for j := range slots[:first] {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				if x%50 != 0 {
					h.Free(cheap.Pointer(slots[j])) // the block is not in the Go heap
					slots[j] = 0
				}
			}
		}
		size := 256
		if i >= first {
			size = 320
		}
		p := h.Malloc(size)
		if slots[i] = uintptr(p); p != nil {
			*(*byte)(p) = 1
			*(*byte)(unsafe.Add(p, size-1)) = 1
			got++
		}
	}
	for i := range slots {
		h.Free(cheap.Pointer(slots[i]))
	}
	return got
}
