package cheap

// # The heap
//
// A Heap is a set of spans and a cache for each P.
//
// A span is 64 KiB, aligned to its size, and holds blocks of one size class; a
// request above 32 KiB gets a span of its own. Package span hands them out and
// finds the record of a span from any address. Spans are carved lazily: Carved
// in the record says how far, and what lies behind has never been touched.
//
// A free block leads to the next one of its list by its first word, and bears
// a mark in its second: the XOR of the next block's address, its own and a
// random key. A block in use has no mark (Malloc clears it), so Free tells a
// block that is free already, wherever it is kept, and Malloc tells a block
// that was written to after it was freed.
//
// # The way of an allocation
//
//	Malloc       pops from the list of the P's cache, pinned: no lock, no
//	             atomic write, nothing but the cache and the block is touched
//	mallocSlow   swaps in the cache's spare batch; or
//	class.get    takes a batch that another cache gave back; or blocks that
//	             came back to a span; or carves some; or takes a new span
//
// # The way of a free
//
//	Free         finds the span's record by the address; checks that it is
//	             this heap's, that the address is the start of a carved block,
//	             that the block has no mark; pushes it on the P's list
//	freeSlow     when the list is a full batch, keeps it as the spare, and
//	             gives the spare that was there to
//	class.put    which keeps some batches whole for the next get, and sorts
//	             the blocks of others into their spans; a span that has all its
//	             blocks back goes back to package span
//
// So a block may be freed by any goroutine, and ends up where it is needed.
//
// # Concurrency
//
// What lies in a cache is touched by whoever is pinned to its P, or after
// percpu.Table.Seize, which waits until nobody is. Locks are taken in this
// order: Heap.seize, Heap.large.mu, class.mu, those of package span. No lock is
// held while pinned, and nobody pins while holding one but seize.
//
// Pinned sections do not panic: they say that something is wrong, and the slow
// path, unpinned, looks again and names it.
//
// # What is not promised
//
// A pointer that is freed after its block was handed out again is the new
// owner's pointer, and no metadata can tell. Writes to a freed block are told
// only if they hit its first 16 bytes, when the block is next taken off its list:
// to be handed out, or to be sorted into its span. The blocks behind it on that
// list are lost then.

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// Options configure a [Heap]. The zero value is the default.
type Options struct {
	// Limit bounds the bytes that the heap holds from the operating system:
	// its spans, its large blocks and its metadata. It is looked at when a
	// span or a large block is taken; a request that would exceed it first
	// empties all caches of the heap, and then gets nil. 0 means no limit.
	Limit int64
}

// A Heap is a general purpose allocator. Blocks are aligned to 16 bytes, do not
// move, and lie outside the Go heap; C code may keep them. No call is a cgo
// call.
//
// All methods may be called from any number of goroutines at once, and a block
// may be freed by another goroutine than the one that allocated it. They must
// not be called from a signal handler, nor in a child process after a fork
// without exec.
//
// A Heap is made by [NewHeap]; the zero value is not usable. A Heap that is
// dropped without Destroy stays.
type Heap struct {
	// Read by every Malloc and Free and written once.

	id     uintptr // what the tags of its spans say; 0 in the zero Heap
	closed atomic.Bool
	_      [64]byte

	busy atomic.Int64 // goroutines between begin and end
	_    [56]byte

	caches percpu.Table // of cache

	_       [64]byte
	account *account.Account
	limit   int64

	// seize is held while caches are installed in the table or taken out.
	seize  sync.Mutex
	locals *localCache // first of those of Locals that are open; under seize
	gone   tally       // what caches that are no more have counted; under seize

	// places is one more than the highest place with a cache; under seize. grew
	// is set when a span or large block was taken; see afterGrowth.
	places   atomic.Int32
	grew     atomic.Bool
	settleAt atomic.Int64 // settle before more bytes than these are held
	settles  atomic.Int64 // how often that was done

	large struct {
		mu                     sync.Mutex // held while a large block comes, goes or changes
		blocks, bytes, mallocs atomic.Int64
	}

	classes [sizeclass.Count]class
}

// heapIDs counts the heaps that were ever made.
var heapIDs atomic.Uintptr

// NewHeap makes a heap. It takes no memory from the operating system before
// the first Malloc but for a few pages of metadata; if these are refused, the
// error wraps [ErrNoMemory].
func NewHeap(o Options) (*Heap, error) {
	if o.Limit < 0 {
		misuse("NewHeap", 0, "Options.Limit is negative (%d)", o.Limit)
	}
	if err := span.Init(); err != nil {
		return nil, noMemory(err)
	}
	h := &Heap{}
	h.init(o)
	if h.id<<span.KindBits>>span.KindBits != h.id {
		return nil, errors.New("cheap: more heaps were made than a word can number")
	}
	return h, nil
}

func (h *Heap) init(o Options) {
	h.id = heapIDs.Add(1)
	h.limit = o.Limit
	h.account = account.Open("cheap.Heap", h.limit, h.live)
	remember(h)
}

// Malloc returns a block of at least size bytes, or nil when the operating
// system has no more memory or the limit is met; what was allocated before
// stays as it is, and the heap works on when there is memory again. Its
// contents are undefined. A size of 0 gives a distinct block; a negative size
// panics.
//
// The block belongs to the caller until it is given to Free. It must not hold
// the only reference to Go memory.
//
//go:norace
//go:nosplit
func (h *Heap) Malloc(size int) unsafe.Pointer {
	if uint(size) <= sizeclass.MaxSize {
		k := h.caches.Pin()
		if k != 0 {
			c := cacheAt(k).class(sizeclass.Of(size))
			if p := c.head; p != 0 {
				b := blockAt(p)
				next := b.next
				if was := b.odd(p, next); was <= zeroed|carved {
					c.head = next
					c.takes++
					b.mark = 0
					h.caches.Unpin(k)
					if instrumented {
						handedOut(p, was)
					}
					return osmem.Pointer(p)
				}
			}
		}
		h.caches.Unpin(k)
	}
	return h.mallocSlow(size)
}

// Free gives a block back. A nil pointer is ignored.
//
// A pointer that is not the start of a live block of this heap panics with a
// [MisuseError] that says what it is: a block that is free already, the inside
// of a block, a block of another heap, memory that no heap gave out. See there
// for what can be told.
//
//go:norace
//go:nosplit
func (h *Heap) Free(ptr unsafe.Pointer) {
	p := uintptr(ptr)
	if instrumented {
		h.freeing(p)
	}
	k := h.caches.Pin()
	if k != 0 {
		s := span.Find(p)
		if s == nil {
			goto slow
		}
		if class := s.LoadTag() - cacheAt(k).base; class < sizeclass.Count {
			if startsBlock(s, p) {
				if b := blockAt(p); b.odd(p, b.next) > zeroed|carved {
					if cacheAt(k).class(uint8(class)).push(p) {
						h.caches.Unpin(k)
						return
					}
				}
			}
		}
	}
slow:
	h.caches.Unpin(k)
	h.freeSlow("Heap.Free", p)
}

// What the mark of a free block says of it besides that it is free.
const (
	zeroed = 1 // all behind the first 16 bytes is zero, as it came from the system
	carved = 2 // it has not been handed out since its span was carved
)

// key is part of the mark of every free block.
var key = rand.Uint64() &^ (zeroed | carved)

// block is what lies in the first 16 bytes of a free block.
type block struct {
	next uintptr // the next free block of the list, or 0
	_    [8 - unsafe.Sizeof(uintptr(0))]byte

	// mark is next ^ the block's own address ^ key ^ the bits that say more. The
	// three have these bits clear.
	mark uint64
}

// blockAt returns the block at p, which is the start of a carved block: it lies
// in a span, whose memory is committed as long as it has one, and no block is
// smaller than this.
//
//go:norace
func blockAt(p uintptr) *block { return (*block)(osmem.Pointer(p)) }

// odd returns what the mark says of a free block, and a larger number than
// zeroed|carved for a block that is in use or has been written to, unless by
// accident, with a probability of 2⁻⁶².
//
//go:norace
func (b *block) odd(p, next uintptr) uint64 { return b.mark ^ uint64(next) ^ uint64(p) ^ key }

// setFree makes b, which lies at p, a free block before next, and has the mark
// say state of it.
//
//go:norace
func (b *block) setFree(p, next uintptr, state uint64) {
	b.next = next
	b.mark = uint64(next) ^ uint64(p) ^ key ^ state
}
