// Package heap is what a cheap.Heap and a cheap.Local are: blocks of all sizes, caches for Ps and
// goroutines, and what watches blocks.
package heap

// # The heap
//
// A Heap is a set of spans, and a cache for each P.
//
// A span is 64 KiB, aligned to its size, and holds blocks of one size class. A
// request above 64 KiB gets a span of its own. Package span hands out spans and
// finds the record of a span from any address. Blocks are carved from a span when
// they are needed: Carved in the record counts them, and the memory after the last
// of them was never touched.
//
// The first word of a free block is a link: the address of the next block of its
// list. The second word is a canary, which is computed from the link, the block's
// own address and random keys. A block in use has no canary, because Malloc
// clears it. So Free detects a block that is free already, and Malloc detects a
// free block that was written to.
//
// # The files
//
//	heap.go            Heap; Malloc and Free if the P's cache serves
//	alloc.go           the steps of an allocation that misses the cache
//	free.go            the steps of a free that misses the cache
//	watched.go         the watchers: a CheckLevel, samples, guarded blocks
//	block/             a free block, its link and its canary
//	cache.go           the cache of a P, or of a Local
//	cache_pool.go      the caches that no P and no Local has
//	class.go           a size class hands out blocks
//	sort.go            free blocks return to their spans
//	span.go            the spans of a size class
//	magazine.go        the magazines that a class keeps whole: the depot, and its bounds
//	large.go           blocks with a span of their own
//	large_spare.go     those that stay for the next one of their size
//	large_resize.go    how they grow and shrink
//	calloc.go          Calloc
//	realloc.go         Realloc
//	usable.go          GoodSize, UsableSize, Owns
//	busy.go            what Destroy waits for
//	reclaim.go         giving memory back: consolidation, Trim, idle caches
//	destroy.go         the end of a heap
//	misuse.go          what a wrong address is, and the panics for it
//	damage.go          a free block that was written to, and the panic that says where
//	checked.go         heaps with a CheckLevel
//	checked_blocks.go  where their blocks come from, and the quarantine
//	checked_report.go  the block that was overrun, if the damage is found behind it
//	header.go          the header and the borders of such a block, and the reports
//	fill.go            what a heap with a CheckLevel fills blocks with; fill/ has the patterns
//	guard.go           blocks between inaccessible pages
//	sample.go          the blocks that package inspect makes profiles of
//	stats.go           counting
//	race.go            what the race detector is told
//	errors.go          errors, whose types are those of package cheap
//	wiring.go          what packages below call
//	local.go           a cache that belongs to a goroutine
//	local_cache.go     how an idle Local loses its cache
//	local_seize.go     the steps of that
//
// # The way of an allocation, and of a free
//
// Malloc takes a block from the list of the P's cache, pinned: no lock, no atomic write; only the
// cache and the block are touched. The head of alloc.go numbers the steps if the list is
// empty.
//
// Free finds the span's record by the address; checks that the span belongs to this heap, that the
// address is the start of a carved block, and that the block has no canary; and puts the block on
// the list of the P's cache. The head of free.go numbers the steps if the list is full.
//
// So any goroutine may free any block, and the cache of its P gets the block.
//
// # Concurrency
//
// A cache is touched by the goroutine that is pinned to its P, or by the goroutine
// that took it with percpu.Table.Seize, which waits until no goroutine is pinned to
// it. Locks are taken in this order: Heap.seize, Heap.large.mu, class.mu, the locks
// of package span. No lock is held while pinned, and no goroutine pins itself while
// it holds a lock other than seize.
//
// A pinned section does not panic. If one of its checks fails, the slow path, which
// is not pinned, checks again, and the panic is there.
//
// # A free block that was written to
//
// The canary of such a block is wrong, and its link cannot be trusted. The slow
// path that finds the block drops the rest of the list from all counts and calls
// Heap.noteDamage. Slow paths end with Heap.mustBeUndamaged, which panics if damage
// was noted.
//
// # A block that is freed twice at the same time
//
// Free checks for a canary and then writes one, without an atomic instruction. So
// two calls for one block may both find none. Then the block is in the lists of two
// caches. It has one link, so the two lists have the same blocks from there on. The
// heap detects that later, and reports it as it reports a free block that was
// written to. Until then no span with a block in use goes to another heap, and no
// list leads to a span of another heap:
//
//   - The canary of a block in the list of its span differs from other canaries by a
//     bit. No cache takes such a block, and class.sort does not sort it again.
//   - Before a span goes back, class.isWhole checks the canary of each block.
//   - The canary depends on the heap and on the class. A list that leads to memory
//     of another heap ends there.
//
// There are two exceptions, which the documentation of the package names. The
// second call of Free may be interrupted between its check and its write, until the
// block's memory belongs to another heap. Or two goroutines may take the block off
// the two lists at the same moment; then one of them uses it after the other has
// freed it.

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/heap/fill"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// Options are cheap.HeapOptions.
type Options struct {
	Name       string
	Limit      int64
	Check      CheckLevel
	Quarantine int
	HugePages  bool
	OnLimit    func(size int, err error)
}

// A Heap is a cheap.Heap.
type Heap struct {
	// Read by every Malloc and Free, and written once.

	id     uintptr // the number in the tags of its spans; 0 in the zero Heap
	closed atomic.Bool
	_      [64]byte

	busy atomic.Int64 // goroutines between begin and end
	_    [56]byte

	caches percpu.Table // of cache

	_       [64]byte
	account *account.Account

	// damaged describes a free block that was written to, or was freed twice at the
	// same time. It is nil if there is none, or if a panic has reported it.
	damaged atomic.Pointer[fill.Damage]

	// seize is held while caches are installed in the table or taken out.
	seize     sync.Mutex
	locals    *localCache  // the first open one; under seize
	gone      tally        // the counts of caches that no longer exist; under seize
	numPlaces atomic.Int32 // 1 + the highest place that has a cache; written under seize

	// For consolidation, which is done before the heap grows: see consolidate.
	consolidateAt  atomic.Int64 // it is due when the heap holds at least this many bytes
	consolidations atomic.Int64 // how often it was done

	large struct {
		mu                     sync.Mutex // held while a large block is allocated, freed or resized
		blocks, bytes, mallocs int64      // under mu; peekLarge reads them
		spares                 largeSpares
	}

	classes [sizeclass.Count]class

	regions span.Regions // where the spans of the heap are, and have been

	emptyings atomic.Int64 // how often emptyCaches has begun; written under seize

	watched atomic.Bool // the heap has a watcher, or had one: watched.go; written under seize

	sampled atomic.Pointer[samples] // nil until a block is sampled

	guardHeld atomic.Int64 // bytes charged for guarded blocks

	checked *checked // nil with CheckNone

	huge bool // HeapOptions.HugePages

	onLimit   func(size int, err error) // HeapOptions.OnLimit
	limitTold atomic.Int64              // when onLimit was last called, in nanoseconds after processStart; 0 means never
}

// std is the default heap. It takes nothing from the system before it is used.
var std = func() *Heap {
	h := &Heap{}
	h.init(Options{})
	return h
}()

// Default is cheap.Default.
func Default() *Heap { return std }

// heapIDs counts all heaps that were ever made.
var heapIDs atomic.Uintptr

// New is cheap.NewHeap.
func New(o Options) (*Heap, error) {
	if o.Limit < 0 {
		panicMisuse("NewHeap", 0, "HeapOptions.Limit is negative (%d)", o.Limit)
	}
	if err := span.Init(); err != nil {
		return nil, noMemory(err)
	}
	if o.Quarantine < 0 || o.Check < CheckNone || o.Check > CheckStacks {
		panicMisuse("NewHeap", 0, "HeapOptions.Quarantine or Check is out of range (%d, %d)", o.Quarantine, o.Check)
	}
	h := &Heap{onLimit: o.OnLimit, huge: o.HugePages}
	h.init(o)
	if h.id<<span.KindBits>>span.KindBits != h.id {
		return nil, errors.New("cheap: NewHeap: more heaps were made than a word can number")
	}
	return h, nil
}

func (h *Heap) init(o Options) {
	h.id = heapIDs.Add(1)
	for c := range h.classes {
		cl := &h.classes[c]
		cl.tag = h.id<<span.KindBits | uintptr(c)
		cl.factor = block.FactorOf(cl.tag)
	}
	h.account = account.Process.Open(account.Options{Name: cmp.Or(o.Name, "cheap.Heap"), Limit: o.Limit, Live: h.live})
	if level := max(o.Check, checkAll); level != CheckNone {
		h.checked = newChecked(h, level, o.Quarantine)
		h.watched.Store(true)
		numChecked.Add(1)
	}
	heaps.Store(h, nil) // before watch reads the rates: whoever changes a rate later finds the heap
	h.seize.Lock()
	h.watch()
	h.seize.Unlock()
}

// numChecked counts the heaps with a CheckLevel that were ever made.
var numChecked atomic.Int64

// Malloc is cheap.Heap.Malloc.
//
//go:norace
//go:nosplit
func (h *Heap) Malloc(size int) unsafe.Pointer {
	if uint(size) <= sizeclass.MaxSize {
		slot := h.caches.Pin()
		if slot != 0 {
			cc := cacheAt(slot).at(uintptr(sizeclass.Of(size)))
			if p := cc.head; p != 0 && cc.takes < cc.sampleAt {
				b := block.At(p)
				link := b.Link
				if b.Canary == block.Checksum(p, link, cc.factor) {
					cc.head = block.NextOf(link)
					cc.takes++
					b.Canary = 0
					h.caches.Unpin(slot)
					raceAcquire(p, block.StateOf(link))
					return osmem.Pointer(p)
				}
			}
		}
		h.caches.Unpin(slot)
	}
	p, _ := h.allocSlow("Heap.Malloc", nil, size, sizeclass.Quantum)
	return osmem.Pointer(p)
}

// Free is cheap.Heap.Free.
//
//go:norace
//go:nosplit
func (h *Heap) Free(ptr unsafe.Pointer) {
	p := uintptr(ptr)
	h.raceRelease(p)
	slot := h.caches.Pin()
	if slot != 0 {
		table := span.TableOf(p)
		if table == 0 {
			goto slow
		}
		s, k := table.Record(p), cacheAt(slot)
		if c := s.LoadTag() - k.base; c < sizeclass.Count {
			if startsBlock(s, p) {
				cc := k.at(c)
				if !block.At(p).IsFree(p, cc.factor) {
					if cc.push(p) {
						h.caches.Unpin(slot)
						return
					}
				}
			}
		}
	}
slow:
	h.caches.Unpin(slot)
	h.freeSlow("Heap.Free", nil, p)
}
