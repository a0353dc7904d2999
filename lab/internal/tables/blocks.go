package tables

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// blockSizes are the sizes of the table blocks: one that every allocator keeps in a list,
// and one of several pages.
var blockSizes = []int{64, 64 << 10}

// A blockWay is a way to have one block after the other. Run allocates n blocks of a
// size, writes to each of their pages, and frees them.
type blockWay struct {
	name, note string
	open       func(size int) (measure.Work, error)
	env        []string // of a process of its own
	loaded     string   // the library that is the malloc of that process
}

// Blocks is the table of what gives a Go program memory outside its heap.
func Blocks() measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "blocks",
		Title: "One block, from all that have some",
		About: "A block of so many bytes is allocated, a byte is written to each of its pages, and it is freed, before the next one. " +
			"malloc, calloc and jemalloc are two cgo calls. calloc is what the mallocator of arrow-go calls for each buffer, and jemalloc what ristretto calls with its build tag; " +
			"their own notes on each block are not in it. mmap is two system calls, and page faults. No source has figures.",
		Unit:  "block",
		Chart: result.Sizes, Over: "bytes",
	}}
	ways := append(cgoBlocks(&t), mappedBlocks()...)
	ways = append(ways, blockWay{name: "heap", open: heapBlocks})
	for _, size := range blockSizes {
		for _, w := range ways {
			row := measure.Row{
				Name: fmt.Sprintf("%s-%d", w.name, size), Group: fmt.Sprint(size), Note: w.note,
				Apart: w.env != nil, Env: w.env,
				Open: func(int) (measure.Work, error) {
					if err := w.check(); err != nil {
						return measure.Work{}, err
					}
					return w.open(size)
				},
			}
			if cgoHere && w.name != "malloc" {
				row.Versus = fmt.Sprintf("malloc-%d", size)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// pageSize is that of most systems: where pages are larger, some have several bytes.
const pageSize = 4096

// write writes to each page of a block.
func write(block unsafe.Pointer, size int) {
	for i := 0; i < size; i += pageSize {
		*(*byte)(unsafe.Add(block, i)) = 1 // within the block, which has size bytes
	}
}

// heapBlocks takes blocks from a Heap, which counts them.
func heapBlocks(size int) (measure.Work, error) {
	return onOneHeap(func(h *cheap.Heap, n int) {
		for range n {
			block := needed(h.Malloc(size))
			write(block, size)
			h.Free(block)
		}
	})
}
