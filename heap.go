package cheap

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
)

// HeapOptions configure a [Heap]. The zero value is the default.
type HeapOptions struct {
	// Name is for people to read, in statistics and in profiles. The profiles keep their
	// counts of each name, so a program that makes many heaps should use few names. The
	// default is "cheap.Heap".
	Name string

	// Limit is the largest number of bytes that the heap may hold from the
	// operating system, see [Stats]: spans, large blocks and metadata. The heap checks it
	// when it takes a span or a large block. A request that would exceed the
	// limit first empties all caches of the heap; if that does not help, the
	// request fails. 0 means no limit. A negative Limit panics.
	//
	// A heap with one small block holds about 72 KiB. With a smaller Limit NewHeap
	// succeeds, and each Malloc fails.
	Limit int64

	// Check makes the heap check how its blocks are used; see [CheckBlocks]. That takes time
	// and memory. Each block is 144 bytes larger, or more with an alignment above 128. Malloc
	// and Free take 15 to 30 times as long, or longer with stacks. Stats then count the bytes
	// that were asked for, and UsableSize returns them. The environment variable CHEAP_CHECK,
	// which is blocks or stacks, sets the least level for all heaps of the program.
	Check CheckLevel

	// Quarantine is how many bytes of freed blocks a heap with Check keeps from reuse. They
	// count for Limit, and leave the quarantine when Limit is reached. Each heap has its
	// own quarantine. 0 means [DefaultQuarantine].
	Quarantine int

	// HugePages asks the system for huge pages, of 2 MiB, for the memory of the heap. That is
	// for heaps of gigabytes whose blocks are read at random: with 1 to 4 GiB in blocks of 600
	// bytes a read took 0.5 to 0.85 of the time. The price is memory: the heap takes it from the
	// system 2 MiB at a time, which Limit does not count, and blocks of other heaps that lie
	// between get huge pages, too. Where idle memory is given back, the huge page around it
	// becomes small ones, until all of its 2 MiB are given back. It does something on Linux only, and there if
	// /sys/kernel/mm/transparent_hugepage/enabled says madvise or always.
	HugePages bool

	// OnLimit is called when a request of size bytes is refused because of Limit, or of a
	// limit of package pace. err wraps [ErrLimit]. It is for reports: inspect.Where of
	// github.com/cheapgo/cheap/inspect says what holds the memory. OnLimit runs on the
	// goroutine of the request, with no lock of this module held, and at most once a second.
	// It may use the heap, and may panic. A request that is served in another way is not
	// refused: Realloc, for example, may leave the block where it is.
	OnLimit func(size int, err error)
}

// A Heap is a general purpose allocator of memory outside the Go heap. Blocks
// are aligned to 16 bytes and do not move, and C code may keep pointers to them.
// No method makes a cgo call.
//
// All methods may be called from several goroutines at the same time, except
// Destroy and DestroyAll. A block may be freed by another goroutine than the
// one that allocated it. The methods must not be called from a signal handler,
// nor in a child process between fork and exec.
//
// A Heap is made by [NewHeap]; the zero value is not usable. If a Heap becomes
// unreachable without Destroy, its memory is never released.
type Heap heap.Heap

// NewHeap makes a heap. Before the first Malloc the heap takes only a few pages
// of metadata from the operating system. If the operating system refuses these,
// the error wraps [ErrNoMemory].
func NewHeap(o HeapOptions) (*Heap, error) {
	h, err := heap.New(heap.Options{
		Name: o.Name, Limit: o.Limit, Check: heap.CheckLevel(o.Check), Quarantine: o.Quarantine,
		HugePages: o.HugePages, OnLimit: o.OnLimit,
	})
	return (*Heap)(h), err
}

// Malloc returns a block of at least size bytes. Its contents are undefined. A
// size of 0 gives a distinct block; a negative size panics.
//
// Malloc returns nil if the operating system has no memory or the heap's limit
// is reached; [Heap.TryMalloc] says which. Blocks that are allocated stay valid,
// and the heap works on when there is memory again.
//
// The caller owns the block until it passes it to Free. The block must not hold
// the only reference to Go memory.
func (h *Heap) Malloc(size int) unsafe.Pointer { return (*heap.Heap)(h).Malloc(size) }

// Free frees a block. It ignores a nil pointer.
//
// If ptr is not the start of a live block of this heap, Free panics with a
// [MisuseError] that says what ptr is: a block that is free already, the inside of
// a block, a block of another heap, memory that no heap gave out. The package
// documentation says which mistakes cannot be detected.
func (h *Heap) Free(ptr unsafe.Pointer) { (*heap.Heap)(h).Free(ptr) }

// TryMalloc is [Heap.Malloc] with the reason: both fail in the same cases, Malloc with nil, and
// TryMalloc with nil and an error. The error wraps [ErrLimit] if the limit is reached, and
// [ErrNoMemory] if the operating system has no memory.
func (h *Heap) TryMalloc(size int) (unsafe.Pointer, error) { return (*heap.Heap)(h).TryMalloc(size) }

// AlignedMalloc is like [Heap.Malloc], for an address that is a multiple of align.
// It panics if align is not a power of two.
func (h *Heap) AlignedMalloc(size, align int) unsafe.Pointer {
	return (*heap.Heap)(h).AlignedMalloc(size, align)
}

// Calloc returns a zeroed block for count elements of size bytes each. It returns
// nil if there is no memory, as [Heap.Malloc] does, and if the product overflows;
// [Heap.TryCalloc] says why.
// Memory that comes fresh from the operating system is zero already; Calloc does
// not write to it again.
func (h *Heap) Calloc(count, size int) unsafe.Pointer { return (*heap.Heap)(h).Calloc(count, size) }

// TryCalloc is [Heap.Calloc] with the reason, as [Heap.TryMalloc] is Malloc.
func (h *Heap) TryCalloc(count, size int) (unsafe.Pointer, error) {
	return (*heap.Heap)(h).TryCalloc(count, size)
}

// Realloc resizes the block at ptr to at least size bytes and returns its address,
// which changes if the block cannot be resized in place. The contents are kept,
// up to the smaller of the two sizes. If there is no memory, Realloc returns nil
// and the block at ptr stays as it is; [Heap.TryRealloc] says why.
//
// With a nil ptr Realloc is Malloc. A size of 0 gives a block of size 0; it does
// not free. Realloc panics if ptr is not the start of a live block of this heap;
// see [Heap.Free]. A block from AlignedMalloc keeps its alignment only as long as
// it stays in place.
//
// A large block that cannot grow in place needs room for both sizes under the limit,
// because it is copied. On Linux a block of 16 MiB or more (1 MiB on 32-bit systems)
// needs room for the difference only: its pages move to other addresses. On 64-bit
// systems so do those of a block of 1 MiB or more that is to have 16 MiB or more, if
// there is no room for a copy.
func (h *Heap) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	return (*heap.Heap)(h).Realloc(ptr, size)
}

// TryRealloc is [Heap.Realloc] with the reason, as [Heap.TryMalloc] is Malloc.
func (h *Heap) TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error) {
	return (*heap.Heap)(h).TryRealloc(ptr, size)
}

// GoodSize returns the usable size, in bytes, of the block that a [Heap]
// returns for a request of size bytes: the block size of its size class, or, for
// more than 64 KiB, whole pages of the operating system. Above 128 bytes the
// block is at most an eighth larger than size, or less than a page larger where pages
// have more than 4 KiB: with pages of 64 KiB a block of 65 KiB takes 128. It is not for
// AlignedMalloc, whose blocks may be larger. GoodSize panics if size is negative, or
// so large that rounding it up overflows.
func GoodSize(size int) int { return heap.GoodSize(size) }

// UsableSize returns the size in bytes of the block at ptr, a live block of any
// heap of this package. It may be larger than the size that was asked for; the
// caller may use all of it. UsableSize returns 0 for nil, and panics if ptr is
// not the start of a live block of a heap.
func UsableSize(ptr unsafe.Pointer) int { return heap.UsableSize(ptr) }

// UsableSize returns the size in bytes of the block at ptr, which may be larger
// than the size that was asked for; the caller may use all of it. It returns 0
// for nil. It panics if ptr is not the start of a live block of this heap; see
// [Heap.Free].
func (h *Heap) UsableSize(ptr unsafe.Pointer) int { return (*heap.Heap)(h).UsableSize(ptr) }

// Owns reports whether ptr is the start of a live block of this heap. ptr may
// have any value.
func (h *Heap) Owns(ptr unsafe.Pointer) bool { return (*heap.Heap)(h).Owns(ptr) }

// Destroy releases everything that the heap holds to the operating system. If
// there are live blocks, it releases nothing and returns a [LiveError]; the blocks
// and the heap stay usable. After a Destroy that returned nil, Destroy and DestroyAll
// return [ErrDestroyed], Free of nil does nothing, and all other methods panic.
//
// Destroy must not run at the same time as other methods of the heap. If it does,
// those may panic, but other heaps are not harmed. The heap of [Default] cannot be
// destroyed: Destroy panics.
func (h *Heap) Destroy() error { return (*heap.Heap)(h).Destroy() }

// DestroyAll is like [Heap.Destroy], but frees live blocks, too. Neither Go nor C may
// use the blocks afterwards.
func (h *Heap) DestroyAll() error { return (*heap.Heap)(h).DestroyAll() }
