//go:build cheap_check

package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
)

// fillFree makes n bytes at p, which nobody uses any more, such that nobody
// takes them for something.
func fillFree(p, n uintptr) {
	b := unsafe.Slice((*byte)(osmem.Pointer(p)), n) // of a chunk that the caller holds
	for i := range b {
		b[i] = poisonFree
	}
}

// mustBeFilled panics if n bytes at p, in the free block at block, are not as
// fillFree has left them.
func mustBeFilled(op string, block, p, n uintptr) {
	for i, b := range unsafe.Slice((*byte)(osmem.Pointer(p)), n) { // as above
		if b != poisonFree {
			misuse(op, block, "byte %d of the free block at %#x is %#x; something has written to it after it was freed", p-block+uintptr(i), block, b)
		}
	}
}
