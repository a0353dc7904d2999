package span

import (
	"sync"

	"math/bits"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
)

// metaChunk is how much memory for metadata is taken from the system at once,
// in bytes. It costs memory only where it is touched.
const metaChunk = 1 << 20

var meta struct {
	mu   sync.Mutex
	next uintptr     // what is left of the last chunk
	end  uintptr     //
	free [32]uintptr // records that came back, by the logarithm of their size; the first word leads to the next
}

// AllocMeta returns size bytes of zeroed memory for a record that lies outside
// the Go heap, aligned to 128. The memory is never unmapped.
//
//go:norace
func AllocMeta(size uintptr) (uintptr, error) {
	class := bits.Len(uint(max(size, 128) - 1))
	size = 1 << class
	meta.mu.Lock()
	defer meta.mu.Unlock()
	if p := meta.free[class]; p != 0 {
		meta.free[class] = *(*uintptr)(osmem.Pointer(p)) // the record was ours and is idle
		*(*uintptr)(osmem.Pointer(p)) = 0
		return p, nil
	}
	if size > metaChunk/8 {
		return osmem.Map(osmem.RoundPage(size))
	}
	if meta.end-meta.next < size {
		p, err := osmem.Map(metaChunk)
		if err != nil {
			return 0, err
		}
		meta.next, meta.end = p, p+metaChunk
	}
	p := meta.next
	meta.next += size
	return p, nil
}

// FreeMeta gives a record back to AllocMeta. Whoever still reads it finds
// zeroes, or another record of the same size.
//
//go:norace
func FreeMeta(addr, size uintptr) {
	class := bits.Len(uint(max(size, 128) - 1))
	clear(unsafe.Slice((*byte)(osmem.Pointer(addr)), size))
	meta.mu.Lock()
	defer meta.mu.Unlock()
	*(*uintptr)(osmem.Pointer(addr)) = meta.free[class]
	meta.free[class] = addr
}
