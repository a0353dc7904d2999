package stacks

import (
	"math/bits"
	"slices"
)

// Sum returns a number that depends on all program counters of a stack and on their order. Each
// step permutes the numbers. It spreads each bit over the upper bits, and by the rotation over
// the lower bits. Two of n stacks have one sum with the probability n² / 2⁶⁵: one in four million
// if there are three million stacks.
func Sum(pcs []uintptr) uint64 {
	sum := uint64(len(pcs))
	for _, pc := range pcs {
		sum = bits.RotateLeft64(sum^uint64(pc), 27) * 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio
	}
	return sum
}

// An Entry is what a Table has for a stack.
type Entry interface {
	comparable
	Callers() []uintptr // the stack, as runtime.Callers returns it; does not change
}

// A Table has one entry for each stack. The zero Table has none. It has no lock: a goroutine that
// calls Add or Note is alone; others may call what remains at the same time.
//
// Most calls come from a stack that is known. [Frames] reads its return addresses in a fiftieth of
// the time of runtime.Callers, and the table has the entry by a key that is made of them. The
// addresses themselves would take half of the memory of the table.
type Table[E Entry] struct {
	byKey map[uint64]E // several keys may lead to one entry: Callers has no wrappers
	bySum map[uint64]E // an entry whose sum is taken has the next number that is free
}

// Known returns the entry that Note was given with a key, or none.
func (t *Table[E]) Known(key uint64) E { return t.byKey[key] }

// Find returns the entry of a stack, or none, and then the place for one.
func (t *Table[E]) Find(pcs []uintptr) (e E, place uint64) {
	var none E
	for place = Sum(pcs); ; place++ {
		if e = t.bySum[place]; e == none || slices.Equal(e.Callers(), pcs) {
			return e, place
		}
	}
}

// Add adds an entry at the place that Find has returned for a stack without one.
func (t *Table[E]) Add(e E, place uint64) {
	if t.bySum == nil {
		t.bySum = map[uint64]E{}
	}
	t.bySum[place] = e
}

// Note has Known return the entry for a key.
func (t *Table[E]) Note(key uint64, e E) {
	if t.byKey == nil {
		t.byKey = map[uint64]E{}
	}
	t.byKey[key] = e
}

// Len returns the number of entries, and Keys that of the keys.
func (t *Table[E]) Len() int  { return len(t.bySum) }
func (t *Table[E]) Keys() int { return len(t.byKey) }

// All yields all entries, in no order.
func (t *Table[E]) All(yield func(E) bool) {
	for _, e := range t.bySum {
		if !yield(e) {
			return
		}
	}
}
