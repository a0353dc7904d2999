package goroutine

import (
	"sync"
	"sync/atomic"
)

// A Mark counts how often a goroutine is in a section between [Enter] and
// [Mark.Leave]. Package own marks its calls of release functions and of OnCollect.
// Marks are found by the number of the goroutine. A mark is never removed: the
// runtime uses a number again, so there are no more marks than goroutines were in
// a section at a time.
//
// Only the goroutine that has the number at present touches depth, so depth needs
// no atomic instruction. The race detector does not know that the runtime orders
// a goroutine and the next one with its number, hence go:norace.
type Mark struct {
	id    uintptr // of the goroutine; does not change
	depth int
}

// marks is a hash table with open addressing. Goroutines read it without a lock.
// A full table is replaced by a larger one, which has the same marks.
var marks struct {
	table atomic.Pointer[[]atomic.Pointer[Mark]] // the length is a power of two

	mu sync.Mutex // held by addMark
	n  int        // number of marks
}

// markOf returns the mark of the goroutine with number id, or nil.
//
//go:norace
func markOf(id uintptr) *Mark {
	t := marks.table.Load()
	if t == nil {
		return nil
	}
	table := *t
	for i := slot(id); ; i++ {
		m := table[i&uint32(len(table)-1)].Load()
		if m == nil || m.id == id {
			return m
		}
	}
}

// slot returns where the search for a number begins.
func slot(id uintptr) uint32 { return uint32(uint64(id) * 0x9E3779B97F4A7C15 >> 32) }

// addMark adds a mark for the calling goroutine, whose number is id.
func addMark(id uintptr) *Mark {
	marks.mu.Lock()
	defer marks.mu.Unlock()
	marks.n++
	t := marks.table.Load()
	if t == nil || marks.n > len(*t)/2 {
		size := 64
		if t != nil {
			size = 2 * len(*t)
		}
		larger := make([]atomic.Pointer[Mark], size)
		if t != nil {
			for i := range *t {
				if m := (*t)[i].Load(); m != nil {
					m.insert(larger)
				}
			}
		}
		t = &larger
	}
	m := &Mark{id: id}
	m.insert(*t)
	marks.table.Store(t)
	return m
}

// insert puts the mark into a table that has room.
func (m *Mark) insert(table []atomic.Pointer[Mark]) {
	for i := slot(m.id); ; i++ {
		if p := &table[i&uint32(len(table)-1)]; p.CompareAndSwap(nil, m) {
			return
		}
	}
}

// Enter records that the goroutine enters a section. The goroutine calls Leave at
// its end.
//
//go:norace
func Enter() *Mark {
	id := ID()
	m := markOf(id)
	if m == nil {
		m = addMark(id)
	}
	m.depth++
	return m
}

// Leave ends a section.
//
//go:norace
func (m *Mark) Leave() { m.depth-- }

// Entered reports whether the calling goroutine is in a section.
//
//go:norace
func Entered() bool {
	m := markOf(ID())
	return m != nil && m.depth > 0
}
