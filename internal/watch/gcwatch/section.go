package gcwatch

import (
	"sync"
	"sync/atomic"
)

// A Section counts a goroutine's calls of [EnterSection] that [Section.Leave] has not ended.
// Package own enters a section for each call of a release function and of OnCollect. Sections are
// found by the number of the goroutine, and stay: the runtime reuses numbers, so there are at most
// as many sections as goroutines were in one at the same time.
//
// Only the goroutine that has the number touches depth, so depth needs no atomic instruction. The
// runtime orders a goroutine before the next one with its number, and does not tell the race
// detector. Hence go:norace.
type Section struct {
	id    uintptr // of the goroutine; does not change
	depth int
}

// sections is a hash table with open addressing. Goroutines read it without a lock.
// A full table is replaced by a larger one, which has the same sections.
var sections struct {
	table atomic.Pointer[[]atomic.Pointer[Section]] // the length is a power of two

	mu sync.Mutex // held by addSection
	n  int        // number of sections
}

// sectionOf returns the section of the goroutine with number id, or nil.
//
//go:norace
func sectionOf(id uintptr) *Section {
	t := sections.table.Load()
	if t == nil {
		return nil
	}
	table := *t
	for i := sectionSlot(id); ; i++ {
		m := table[i&uint32(len(table)-1)].Load()
		if m == nil || m.id == id {
			return m
		}
	}
}

// sectionSlot returns where the search for a number begins.
func sectionSlot(id uintptr) uint32 { return uint32(uint64(id) * 0x9E3779B97F4A7C15 >> 32) }

// addSection adds a section for the calling goroutine, whose number is id.
func addSection(id uintptr) *Section {
	sections.mu.Lock()
	defer sections.mu.Unlock()
	sections.n++
	t := sections.table.Load()
	if t == nil || sections.n > len(*t)/2 {
		size := 64
		if t != nil {
			size = 2 * len(*t)
		}
		larger := make([]atomic.Pointer[Section], size)
		if t != nil {
			for i := range *t {
				if m := (*t)[i].Load(); m != nil {
					m.insert(larger)
				}
			}
		}
		t = &larger
	}
	m := &Section{id: id}
	m.insert(*t)
	sections.table.Store(t)
	return m
}

// insert puts the section into a table that has room.
func (m *Section) insert(table []atomic.Pointer[Section]) {
	for i := sectionSlot(m.id); ; i++ {
		if p := &table[i&uint32(len(table)-1)]; p.CompareAndSwap(nil, m) {
			return
		}
	}
}

// EnterSection records that the goroutine enters a section. The goroutine calls Leave at
// its end.
//
//go:norace
func EnterSection() *Section {
	id := GoroutineID()
	m := sectionOf(id)
	if m == nil {
		m = addSection(id)
	}
	m.depth++
	return m
}

// Leave ends a section.
//
//go:norace
func (m *Section) Leave() { m.depth-- }

// InSection reports whether the calling goroutine is in a section.
//
//go:norace
func InSection() bool {
	m := sectionOf(GoroutineID())
	return m != nil && m.depth > 0
}
