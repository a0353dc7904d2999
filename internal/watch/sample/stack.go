package sample

import (
	"runtime"
	"slices"

	"github.com/cheapgo/cheap/internal/watch/stacks"
)

// A stack is the program counters of a call, as [runtime.Callers] returns them, and what it has
// allocated. Equal stacks are one.
type stack struct {
	pcs   []uintptr
	id    uint32 // 0 if Stack has not returned it
	sites []*site
	index map[siteKey]*site // of sites, from manySites of them on
	live  float64           // bytes in use
}

const manySites = 16

// Callers returns the program counters.
func (st *stack) Callers() []uintptr { return st.pcs }

// deepest is how many frames of a stack are kept, the innermost ones.
const deepest = 64

// Stack returns a number for the stack of the caller of its caller; equal stacks have one
// number, which is not 0. PCs returns the stack.
func Stack() uint32 {
	table.mu.Lock()
	defer table.mu.Unlock()
	prepare()
	s := here()
	if s.id == 0 {
		table.numbered = append(table.numbered, s)
		s.id = uint32(len(table.numbered))
	}
	return s.id
}

// PCs returns the program counters of the stack with that number, or nil if there is none.
func PCs(id uint32) []uintptr {
	table.mu.Lock()
	defer table.mu.Unlock()
	if s := held.stacks[id]; s != nil {
		return s.pcs
	}
	if id == 0 || uint64(id) > uint64(len(table.numbered)) {
		return nil
	}
	return table.numbered[id-1].pcs
}

// here returns the stack of the caller of its caller. The lock is held. If the stack is deeper
// than Frames reads, it has no key.
func here() *stack {
	var frames [stacks.MostFrames]uintptr
	short := stacks.Frames(&frames)
	short %= stacks.MostFrames
	key := stacks.Sum(frames[:short])
	if s := table.stacks.Known(key); s != nil && short > 0 {
		return s
	}
	var pcs [deepest]uintptr
	s := stackOf(pcs[:runtime.Callers(3, pcs[:])])
	if short > 0 {
		table.stacks.Note(key, s)
	}
	return s
}

// stackOf returns the stack with those program counters. The lock is held.
func stackOf(pcs []uintptr) *stack {
	s, place := table.stacks.Find(pcs)
	if s == nil {
		s = &stack{pcs: slices.Clone(pcs)}
		table.numStacks++
		table.frames += len(pcs)
		table.stacks.Add(s, place)
	}
	return s
}
