package span

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// metaChunk is how much memory for metadata is mapped at once, in bytes. It costs
// memory only where it is touched.
const metaChunk = 1 << 20

// metaAlign is what the addresses of records are multiples of, in bytes.
const metaAlign = 128

var meta struct {
	mu   sync.Mutex
	next uintptr // what is left of the last chunk: [next, end)
	end  uintptr

	// Records that were freed, by the logarithm of their size. The first word of each
	// is the address of the next.
	free [32]uintptr
}

// AllocMeta returns size bytes of zeroed memory outside the Go heap for a record. They
// are aligned to 128, or to pages if they have that size, and never unmapped.
//
//go:norace
func AllocMeta(size uintptr) (uintptr, error) {
	size = MetaSize(size)
	class := bits.Len(uint(size - 1))
	meta.mu.Lock()
	defer meta.mu.Unlock()
	if p := meta.free[class]; p != 0 {
		meta.free[class] = *(*uintptr)(osmem.Pointer(p)) // the record is in no use
		*(*uintptr)(osmem.Pointer(p)) = 0
		return p, nil
	}
	if size > metaChunk/8 {
		return osmem.Map(osmem.RoundPage(size))
	}
	if size >= osmem.PageSize {
		meta.next = osmem.RoundPage(meta.next) // so that their pages can be released; end is a multiple
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

// MetaSize returns how many bytes AllocMeta uses for size bytes.
//
//go:norace
func MetaSize(size uintptr) uintptr { return 1 << bits.Len(uint(max(size, metaAlign)-1)) }

// FreeMeta frees a record that AllocMeta returned. A goroutine that still reads it
// finds zeroes, or another record of the same size.
//
//go:norace
func FreeMeta(addr, size uintptr) {
	class := bits.Len(uint(max(size, metaAlign) - 1))
	align := uintptr(metaAlign)
	if MetaSize(size) >= osmem.PageSize {
		align = osmem.PageSize
	}
	osmem.Must(addr != 0 && addr&(align-1) == 0, "span.FreeMeta", "addr", addr)
	clear(unsafe.Slice((*byte)(osmem.Pointer(addr)), size))
	meta.mu.Lock()
	defer meta.mu.Unlock()
	*(*uintptr)(osmem.Pointer(addr)) = meta.free[class]
	meta.free[class] = addr
}
