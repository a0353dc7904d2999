package sample

import (
	"math"
	"runtime"
	"slices"

	"github.com/cheapgo/cheap/internal/watch/stacks"
)

// A guarded block needs its stack as long as its slot, and there is a fixed number of slots. The
// table keeps the stacks of samples, and of heaps that record stacks, for ever. A program with
// very many stacks, as a recursive one, would fill the table with those of guarded blocks. So the
// stacks of guarded blocks are not in the table: they are counted, and dropped with their last
// user.

// A heldStack is a stack that Hold has returned.
type heldStack struct {
	pcs   []uintptr
	users int    // calls of Hold, less those of LetGo
	sum   uint64 // of its frames, by which held.byFrames has it; 0 if by none
}

// held is under the lock of the table.
var held struct {
	stacks   map[uint32]*heldStack // by number
	byFrames map[uint64]uint32
	last     uint32 // number, less heldBit
}

// heldBit tells the numbers of held stacks from others. A number is used again when all others
// have been used.
const heldBit = math.MaxInt32 + 1

// Hold is [Stack] for a stack that is not needed for ever. Each call must be followed by one of
// LetGo with the number.
func Hold() uint32 {
	table.mu.Lock()
	defer table.mu.Unlock()
	if held.stacks == nil {
		held.stacks, held.byFrames = map[uint32]*heldStack{}, map[uint64]uint32{}
	}
	var frames [stacks.MostFrames]uintptr
	short := stacks.Frames(&frames) % stacks.MostFrames // as in here
	sum := stacks.Sum(frames[:short])
	if id, ok := held.byFrames[sum]; ok && short > 0 {
		held.stacks[id].users++
		return id
	}
	var pcs [deepest]uintptr
	s := &heldStack{pcs: slices.Clone(pcs[:runtime.Callers(2, pcs[:])]), users: 1}
	id := nextHeld()
	held.stacks[id] = s
	if short > 0 {
		s.sum = sum
		held.byFrames[sum] = id
	}
	return id
}

// nextHeld returns a number that no stack has. The lock is held.
func nextHeld() uint32 {
	for {
		held.last = (held.last + 1) % heldBit
		if held.stacks[held.last|heldBit] == nil {
			return held.last | heldBit
		}
	}
}

// LetGo ends what a call of Hold began. When all calls for a stack are ended it is forgotten: PCs
// then returns nil. It does nothing for other numbers, such as 0.
func LetGo(id uint32) {
	table.mu.Lock()
	defer table.mu.Unlock()
	s := held.stacks[id]
	if s == nil {
		return
	}
	if s.users--; s.users > 0 {
		return
	}
	delete(held.stacks, id)
	if held.byFrames[s.sum] == id {
		delete(held.byFrames, s.sum)
	}
}

// Held returns how many stacks there are that Hold has returned and LetGo has not ended.
func Held() int {
	table.mu.Lock()
	defer table.mu.Unlock()
	return len(held.stacks)
}
