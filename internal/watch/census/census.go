// Package census has the counts that package inspect reads of heaps, of pools and of the C
// heap. Package inspect calls the functions that read them. The packages that count implement
// [HeapReader], [PoolReader] and [CHeap], and register while they are initialized. So a
// program without package own has no pools.
//
// A reader does not stop the program. If it would have to wait for a lock that may be held
// for long, it sets Busy, and the counts are zero: the caller goes on with the counts that
// it read before. Counts that change while they are read may not be mutually consistent.
package census

import (
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/mem/sizeclass"
)

// A Class is what is counted of one size class, in one heap or in all.
type Class struct {
	Blocks int64 // in use
	Cached int64 // free, in caches
	Spans  int64 // that have blocks of the class
	Carved int64 // blocks that were carved from these, in use or not

	// Mallocs is how many blocks were handed out, by the caches of Ps and past caches. Those
	// that a Local has handed out are in Heap.Mallocs only.
	Mallocs int64
}

// A Heap is what is counted of a heap that is not destroyed.
type Heap struct {
	ID   uint64 // heaps are numbered in the order in which they were made
	Name string

	Busy bool // the rest is zero, except for Held, Limit and spans

	Held, Limit    int64
	Blocks, Bytes  int64 // in use; the classes of a heap with a CheckLevel have its quarantine as well
	Mallocs, Frees int64 // blocks handed out, and those that came back
	Caches         int64
	Consolidations int64

	LargeBlocks, LargeBytes, LargeMallocs int64
	LargeSpans                            int64

	Classes [sizeclass.Count]Class
}

// Heaps is what is counted of all heaps.
type Heaps struct {
	List []Heap // those made first at the front

	Destroyed int64                  // heaps that were destroyed
	Gone      [sizeclass.Count]int64 // blocks that these had handed out, as Class.Mallocs
	GoneLarge int64                  // and those above the largest class
	Ticks     int64                  // ticks of the decay

	Units   int64 // units handed out, to heaps and to others
	Idle    int64 // units that hold nothing and may have memory
	Tails   int64 // bytes behind spans that may have memory
	Regions int64 // how many there are

	Large         int64 // bytes of the spans of large blocks
	Guarded       int64 // bytes of the pages of guarded blocks
	Mapped, Space int64 // of these, bytes of those that have a mapping, and its address space
}

// A HeapReader reads the counts of all heaps: package cheap.
type HeapReader interface {
	// Heaps reads the counts into h, whose slice is used again.
	Heaps(h *Heaps)
}

var heaps atomic.Pointer[HeapReader]

// SetHeaps sets the reader of the counts of heaps.
func SetHeaps(r HeapReader) { heaps.Store(&r) }

// ReadHeaps reads the counts of all heaps into h, whose slice is used again.
func ReadHeaps(h *Heaps) {
	if r := heaps.Load(); r != nil {
		(*r).Heaps(h)
	}
}

// DefaultSize is the size of a resource of package own, in bytes, for which the program has declared none.
const DefaultSize = 4 << 10

// A Pool is what is counted of a pool or a Memory of package own.
type Pool struct {
	Number uint64 // pools are numbered in the order in which they were made
	Name   string
	Memory bool // it is a Memory, which has two pools

	Busy bool // the rest is zero

	Live      int64 // resources that are owned and not released
	Bytes     int64 // their sizes, and those of resources made in advance
	Made      int64 // made in advance, and not handed out
	Created   int64 // owners that were ever made
	Collected int64 // released because of the collector
	Queued    int64 // releases that wait for Drain or for a thread
	Oldest    int64 // nanoseconds that the first of these has waited
	Open      int64 // batches that are not sealed
}

// A PoolReader reads the counts of all pools: package own.
type PoolReader interface {
	// Pools appends the counts of all pools to list.
	Pools(list []Pool) []Pool

	// StoreBytes returns the bytes of what package own keeps of owners outside the Go heap.
	StoreBytes() int64
}

// pools is nil in a program without package own.
var pools atomic.Pointer[PoolReader]

// SetPools sets the reader of the counts of pools.
func SetPools(r PoolReader) { pools.Store(&r) }

// ReadPools appends the counts of all pools to list.
func ReadPools(list []Pool) []Pool {
	if r := pools.Load(); r != nil {
		return (*r).Pools(list)
	}
	return list
}

// ReadStore returns the bytes of what package own keeps of owners outside the Go heap.
func ReadStore() int64 {
	if r := pools.Load(); r != nil {
		return (*r).StoreBytes()
	}
	return 0
}
