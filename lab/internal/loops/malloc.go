//go:build cgo

package loops

import (
	"unsafe"

	"github.com/CannibalVox/cgoalloc"
)

// Malloc has the loops of Original on C's malloc and free, with a cgo call for each.
var Malloc = map[string]func(n int) error{
	"TemporaryData": Original["DefaultTemporaryData"],
	"GrowShrink":    Original["DefaultGrowShrink"],

	"MultilayerTemporaryData": func(n int) error {
		alloc := &cgoalloc.DefaultAllocator{}
		for i := range n {
			a := alloc.Malloc(temporarySize(i))
			alloc.Free(a)
		}
		return nil
	},

	"MultilayerGrowShrink": func(n int) error {
		alloc := &cgoalloc.DefaultAllocator{}
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = alloc.Malloc(grownSize(i))
		}
		for i := range n {
			alloc.Free(ptrs[i])
		}
		return nil
	},

	"ArenaTemporaryData": func(n int) error {
		alloc := &cgoalloc.DefaultAllocator{}
		for range (n + 1) / 2 {
			a := alloc.Malloc(64)
			b := alloc.Malloc(64)
			alloc.Free(a)
			alloc.Free(b)
		}
		return nil
	},
}
