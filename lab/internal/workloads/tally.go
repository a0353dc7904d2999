package workloads

import (
	"errors"
	"math/bits"
	"unsafe"
)

// A Tally is what a run has done. The C version of a workload has the same.
type Tally struct {
	Blocks uint64 // calls that returned a block: an operation each
	Frees  uint64 // blocks that were freed or resized
	Bytes  uint64 // of all sizes that were asked for
	Sum    uint64 // of all marks that were read before the blocks were freed
	Asked  uint64 // depends on the order of the sizes in each thread
	Freed  uint64 // depends on the order of the frees; 0 where other threads free as well
}

var errNoMemory = errors.New("there is no memory")

// put counts a block, and writes its mark. The size is at least 8.
func (t *Tally) put(block unsafe.Pointer, size, number uint32) {
	if block == nil {
		panic(errNoMemory)
	}
	t.Blocks++
	t.Bytes += uint64(size)
	t.Asked = bits.RotateLeft64(t.Asked, 1) + uint64(size)
	// The block has size bytes.
	*(*byte)(unsafe.Add(block, size-1)) = byte(size)
	*(*uint64)(block) = uint64(number)<<32 | uint64(size)
}

// take counts a block that is about to be freed, and reads its mark.
func (t *Tally) take(block unsafe.Pointer) {
	t.Frees++
	// put has written the word, and the byte at the end of the size in it.
	word := *(*uint64)(block)
	t.Sum += word + uint64(*(*byte)(unsafe.Add(block, uint32(word)-1)))
	t.Freed = bits.RotateLeft64(t.Freed, 1) + word
}

// add adds the tally of another thread.
func (t *Tally) add(u Tally) {
	t.Blocks += u.Blocks
	t.Frees += u.Frees
	t.Bytes += u.Bytes
	t.Sum += u.Sum
	t.Asked += u.Asked
}

// word returns the first word of a block.
func word(block unsafe.Pointer) *uint64 { return (*uint64)(block) }

// A table is an array of blocks, or of parts of it. It holds addresses and not
// pointers: to store a pointer in Go memory, the program tests for the write
// barrier, which a C program does not pay for. There are no checks of bounds, as in C.
// Where a workload looks for nil, it leaves nil.
type table struct{ base unsafe.Pointer }

// newTable makes a table of places.
func newTable(places int) table {
	return table{unsafe.Pointer(unsafe.SliceData(make([]uintptr, places)))}
}

// from returns the part of the table that begins at a place.
func (t table) from(i int) table { return table{t.place(uint32(i))} }

// place is within the array: each workload says how many places it needs.
func (t table) place(i uint32) unsafe.Pointer {
	return unsafe.Add(t.base, uintptr(i)*unsafe.Sizeof(uintptr(0)))
}

// at returns the block in a place, or nil.
func (t table) at(i uint32) unsafe.Pointer {
	// An address is read as a pointer. It is outside of the Go heap, or the
	// allocator keeps the block alive.
	return *(*unsafe.Pointer)(t.place(i))
}

func (t table) set(i uint32, block unsafe.Pointer) { *(*uintptr)(t.place(i)) = uintptr(block) }
