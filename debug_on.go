//go:build cheap_check

package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// poisoning says whether free blocks are filled with a pattern.
const poisoning = true

const (
	poisonFree = 0xDF // in a block that is free
	poisonNew  = 0xCE // in a block that is handed out
)

// contents returns what of a block of a class is neither link nor mark while it
// is free.
func contents(p, size uintptr) []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(p+sizeclass.Quantum)), size-sizeclass.Quantum)
}

// checkPoison looks whether the block at p is as poison, or the system, left it,
// and then makes sure that nobody takes its contents for something.
//
//go:norace
func checkPoison(p uintptr, fresh bool) {
	s := span.Find(p)
	if s.LoadTag()&span.KindMask >= span.KindBody {
		return
	}
	all := contents(p, s.Size)
	if fresh {
		for i, b := range all {
			if b != 0 {
				misuse("Heap.Malloc", p, "byte %d of the block at %#x is %#x; it has never been handed out and should be 0", i+sizeclass.Quantum, p, b)
			}
		}
		return
	}
	for i, b := range all {
		if b != poisonFree && b != 0 {
			misuse("Heap.Malloc", p, "byte %d of the block at %#x was written to after it was freed", i+sizeclass.Quantum, p)
		}
		all[i] = poisonNew
	}
}

// poison fills the block at p with the pattern of a free one.
//
//go:norace
func poison(p, size uintptr) {
	all := contents(p, size)
	for i := range all {
		all[i] = poisonFree
	}
}
