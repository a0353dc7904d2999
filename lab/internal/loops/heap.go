package loops

import (
	"unsafe"

	"github.com/cheapgo/cheap"
)

// Heap has the loops of Malloc on a heap.
var Heap = map[string]func(h *cheap.Heap, n int){
	"TemporaryData": func(h *cheap.Heap, n int) {
		for range n {
			a := h.Malloc(64)
			h.Free(a)
		}
	},

	"GrowShrink": func(h *cheap.Heap, n int) {
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = h.Malloc(8)
		}
		for i := range n {
			h.Free(ptrs[i])
		}
	},

	"MultilayerTemporaryData": func(h *cheap.Heap, n int) {
		for i := range n {
			a := h.Malloc(temporarySize(i))
			h.Free(a)
		}
	},

	"MultilayerGrowShrink": func(h *cheap.Heap, n int) {
		ptrs := make([]unsafe.Pointer, n)
		for i := range n {
			ptrs[i] = h.Malloc(grownSize(i))
		}
		for i := range n {
			h.Free(ptrs[i])
		}
	},
}

// ArenaTemporaryData takes a pooled arena for each two blocks. If n is odd, it
// allocates one block more, as all loops over two blocks do.
func ArenaTemporaryData(n int) {
	for range (n + 1) / 2 {
		arena := cheap.GetArena()
		_ = arena.Malloc(64)
		_ = arena.Malloc(64)
		arena.Put()
	}
}

// ArenaBatch takes the arguments of one C call from a pooled arena, n times, as
// cgoparam's benchmark of a small batch does.
func ArenaBatch(n int) {
	for range n {
		arenaBatch()
	}
}

func arenaBatch() {
	arena := cheap.GetArena()
	defer arena.Put()

	_ = arena.Malloc(1)
	_ = arena.Malloc(10)
	_ = arena.Malloc(100)
	_ = arena.Malloc(1000)
}
