//go:build !jemalloc || !cgo

package z

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// memory is what Calloc takes blocks from.
var memory = sync.OnceValue(func() *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "ristretto"})
	if err != nil {
		panic(err) // the program has no memory to begin with
	}
	return h
})

// A header is before the bytes of each block. Its size keeps them aligned to 16 bytes.
type header struct {
	tagged uintptr // the address of the count of the block's tag, which is in memory, too
	_      [16 - unsafe.Sizeof(uintptr(0))]byte
}

const headerSize = int(unsafe.Sizeof(header{}))

// tags has the count of live bytes of each tag. Callers use few, and constant ones.
var tags struct {
	sync.RWMutex
	counts map[string]*atomic.Int64 // not freed
}

func tagged(tag string) *atomic.Int64 {
	tags.RLock()
	count := tags.counts[tag]
	tags.RUnlock()
	if count != nil {
		return count
	}
	tags.Lock()
	defer tags.Unlock()
	if count = tags.counts[tag]; count == nil {
		if count = cheap.New[atomic.Int64](memory()); count == nil {
			panic(cheap.ErrNoMemory)
		}
		if tags.counts == nil {
			tags.counts = map[string]*atomic.Int64{}
		}
		tags.counts[tag] = count
	}
	return count
}

// Calloc returns n zeros outside the Go heap, which stay until Free. They count for the tag in Leaks.
func Calloc(n int, tag string) []byte {
	if n == 0 {
		return []byte{}
	}
	p, err := memory().TryCalloc(1, headerSize+n)
	if err != nil {
		panic(err)
	}
	count := tagged(tag)
	(*header)(p).tagged = uintptr(unsafe.Pointer(count))
	count.Add(int64(n))
	atomic.AddInt64(&numBytes, int64(n))
	return unsafe.Slice((*byte)(unsafe.Add(p, headerSize)), n)
}

// CallocNoRef is Calloc.
func CallocNoRef(n int, tag string) []byte { return Calloc(n, tag) }

// Free frees a slice that Calloc returned, or one that begins and ends where it does.
func Free(b []byte) {
	n := int64(cap(b))
	if n == 0 {
		return
	}
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -headerSize)
	memory().UsableSize(p) // panics if Calloc did not return b, before the header is read
	(*atomic.Int64)(cheap.Pointer((*header)(p).tagged)).Add(-n)
	atomic.AddInt64(&numBytes, -n)
	memory().Free(p)
}

// Leaks says how many bytes are live, for each tag.
func Leaks() string {
	tags.RLock()
	defer tags.RUnlock()
	var b strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(tags.counts)) {
		if n := tags.counts[tag].Load(); n != 0 {
			fmt.Fprintf(&b, "%d bytes of %s\n", n, tag)
		}
	}
	if b.Len() == 0 {
		return "No bytes are live."
	}
	return b.String()
}

// StatsPrint prints the counts of the heap.
func StatsPrint() { fmt.Printf("%+v\n", memory().Stats()) }

// ReadMemStats sets what the heap counts: Allocated and Resident.
func ReadMemStats(stats *MemStats) {
	if stats != nil {
		s := memory().Stats()
		stats.Allocated, stats.Resident = uint64(s.Bytes), uint64(s.Held)
	}
}
