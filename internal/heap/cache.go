package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap/block"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/mem/span"
)

// cache holds free blocks for one P, or for a Local. It lies outside the Go heap.
// Only its owner touches it: the goroutine that is pinned to the P, the goroutine
// that has seized it, or the goroutine that the Local belongs to. Any goroutine may
// read the counts; each count is a word with one writer.
type cache struct {
	percpu.Slot

	// base is the tag of the heap's spans, less the class.
	base uintptr

	// room is the number of bytes by which the magazines may still grow; see widen.
	room int

	_ [64 - 2*unsafe.Sizeof(uintptr(0))]byte

	classes [sizeclass.Count]cacheClass
}

// cacheClass is the part of a cache for one size class: a list of at most capacity
// blocks, and perhaps a spare magazine. A class that was never used has a capacity
// of 0.
type cacheClass struct {
	head  uintptr // first block of the list
	spare uintptr // first block of the spare magazine, or 0

	// takes counts the blocks that leave the list, and puts those that come, such
	// that
	//
	//	length of the list = puts - takes + capacity
	//
	// So the list has room while puts < takes. A change of a word is a load, an
	// addition and a store, and the next change of the same word waits for the store.
	// With two words a pair of Malloc and Free waits once, with one word twice.
	takes, puts int64

	// capacity is the largest length of the list. It starts small, and grows
	// whenever blocks come from the class or return to it. So a class that is
	// rarely used holds few blocks. setCapacity changes it.
	capacity int64

	numSpare uint64 // blocks in the spare magazine

	// sampleAt is the value of takes at which the next block is sampled, or sample.Redraw. It is
	// sample.Never in a heap that is not watched. The owner of the cache and redrawSamples write
	// it.
	sampleAt int64

	_ [16 - 2*unsafe.Sizeof(uintptr(0))]byte

	factor uint64 // block.FactorOf the tag of the class's spans
}

const cacheClassSize = 64 // a cache line

// cacheLimit is the largest number of bytes that a cache may hold.
const cacheLimit = 1 << 20

// cacheBytes is what a cache holds from the system: AllocMeta rounds its size up to a power of two.
const cacheBytes = 8 << 10

var (
	_ [128]byte            = [unsafe.Offsetof(cache{}.classes)]byte{}
	_ [cacheClassSize]byte = [unsafe.Sizeof(cacheClass{})]byte{}
	_ [cacheBytes - unsafe.Sizeof(cache{})]byte
	_ [2*unsafe.Sizeof(cache{}) - cacheBytes - 1]byte
	_ [cacheLimit - sizeclass.CacheLeast]byte
)

// cacheAt returns the cache at slot, an address from the table of a heap:
// newCache made it, and it stays mapped.
//
//go:norace
func cacheAt(slot uintptr) *cache { return (*cache)(osmem.Pointer(slot)) }

// class returns &k.classes[c] without a bounds check: sizeclass.Of, and the tag
// of a span of a class, are always in range.
//
//go:norace
func (k *cache) class(c uint8) *cacheClass { return k.at(uintptr(c)) }

// at is class for c < sizeclass.Count.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (k *cache) at(c uintptr) *cacheClass {
	return (*cacheClass)(unsafe.Add(unsafe.Pointer(&k.classes), c*cacheClassSize))
}

// due reports whether the next block must come from the slow path, which may sample it.
//
//go:norace
func (cc *cacheClass) due() bool { return cc.takes >= cc.sampleAt }

// pop takes a block from the list. It returns 0 if the list is empty, or if its first
// block was written to after it was freed. The caller has checked due.
//
// Heap.Malloc and Local.Malloc contain a copy of due and pop, which saves them a
// call.
//
//go:norace
func (cc *cacheClass) pop() (p uintptr, was block.State) {
	if p := cc.head; p != 0 {
		b := block.At(p)
		link := b.Link
		if b.Canary == block.Checksum(p, link, cc.factor) {
			cc.head = block.NextOf(link)
			cc.takes++
			b.Canary = 0
			return p, block.StateOf(link)
		}
	}
	return 0, 0
}

// useSpare makes the spare magazine the list if the list is empty. It reports whether the list has
// a block then.
//
//go:norace
func (cc *cacheClass) useSpare() bool {
	if cc.head == 0 && cc.spare != 0 {
		cc.head, cc.spare = cc.spare, 0
		cc.setLength(int(cc.numSpare))
	}
	return cc.head != 0
}

// dropList drops the list, whose first block was written to. It returns the address of that block,
// and how many blocks are lost.
//
//go:norace
func (cc *cacheClass) dropList() (written uintptr, lost int) {
	written, lost, cc.head = cc.head, cc.length(), 0
	cc.setLength(0)
	return written, lost
}

// push puts the block at p, which is not free, on the list, if the list has room.
//
//go:norace
//go:nosplit
func (cc *cacheClass) push(p uintptr) bool {
	puts := cc.puts
	if puts >= cc.takes {
		return false
	}
	block.At(p).SetCached(p, cc.head, 0, cc.factor)
	cc.puts = puts + 1
	cc.head = p
	return true
}

// free frees the block at p, which lies in the unit of s, into k. It returns
// false, and changes nothing, if p is not the start of a block of the heap that
// is in use, or if the list is full.
//
// Heap.Free and Local.Free contain a copy of it, which saves them a call.
//
//go:norace
func (k *cache) free(s *span.Span, p uintptr) bool {
	c := s.LoadTag() - k.base
	if c >= sizeclass.Count || !startsBlock(s, p) {
		return false
	}
	cc := k.class(uint8(c))
	return !block.At(p).IsFree(p, cc.factor) && cc.push(p)
}

// startsBlock reports whether p, in the unit of s, is the start of a block of a
// class that was carved.
//
//go:norace
func startsBlock(s *span.Span, p uintptr) bool {
	return sizeclass.Index(uint32(p)%span.UnitSize, s.Inverse, uint8(s.Shift)) < atomic.LoadUint32(&s.Carved)
}

// fill makes list, which has n blocks, the list of class c, and raises the capacity to
// want as far as k has room. It returns false if k has no room for n blocks, or if the
// class has a list already.
//
//go:norace
func (k *cache) fill(c uint8, list uintptr, n, want int) bool {
	cc := k.class(c)
	if cc.head != 0 {
		return false
	}
	if k.widen(c, max(want, n)); int64(n) > cc.capacity {
		return false
	}
	cc.head = list
	cc.setLength(n)
	return true
}

// widen makes n the largest length of a list of class c, or less if k has no room for two
// lists of n blocks.
//
// The largest capacities of all classes together are more than a cache may hold. So
// the classes that the program uses get large ones, until room is used up. Each
// class may have sizeclass.Class.Least blocks in any case: otherwise a class that
// comes late would be slow until the heap grows.
//
//go:norace
func (k *cache) widen(c uint8, n int) {
	cc := k.class(c)
	n = max(int(cc.capacity), k.within(c, n))
	k.room -= charge(c, n) - charge(c, int(cc.capacity))
	cc.setCapacity(int64(n))
}

// within returns n, or less if k has no room for two lists of n blocks of class c.
//
//go:norace
func (k *cache) within(c uint8, n int) int {
	class := &sizeclass.Classes[c]
	return min(n, max(int(k.class(c).capacity), int(class.Least))+k.room/(2*int(class.Size)))
}

// charge is what two lists of n blocks of class c take from room.
//
//go:norace
func charge(c uint8, n int) int {
	class := &sizeclass.Classes[c]
	return 2 * max(0, n-int(class.Least)) * int(class.Size)
}

// makeRoom makes room in the list of class c, and returns the magazine that no
// longer has a place in the cache.
//
//go:norace
func (k *cache) makeRoom(c uint8) (over magazine) {
	cc := k.class(c)
	if cc.head != 0 && cc.puts < cc.takes { // as push compares
		return magazine{}
	}
	if cc.head != 0 {
		if cc.spare != 0 {
			over = magazine{cc.spare, int(cc.numSpare)}
		}
		cc.spare, cc.numSpare, cc.head = cc.head, uint64(cc.length()), 0
	}
	cc.setLength(0)
	k.widen(c, nextCapacity(c, int(cc.capacity)))
	return over
}

// nextCapacity returns the capacity to which a list of class c grows from capacity
// n.
//
//go:norace
func nextCapacity(c uint8, n int) int {
	most := int(sizeclass.Classes[c].Magazine)
	return min(max(2*n, (most+slowStart-1)/slowStart), most)
}

// A class begins with 1/slowStart of its largest capacity.
const slowStart = 8

// length returns the length of the list. After a block was freed twice, the list
// may have more blocks than that, and the result may become negative.
//
//go:norace
func (cc *cacheClass) length() int { return int(cc.puts + cc.capacity - cc.takes) }

// setLength sets the length after head was set to another list.
//
//go:norace
func (cc *cacheClass) setLength(n int) { cc.puts = cc.takes + int64(n) - cc.capacity }

// setCapacity changes the capacity, and keeps the length.
//
//go:norace
func (cc *cacheClass) setCapacity(n int64) { cc.puts, cc.capacity = cc.puts-n+cc.capacity, n }

// cached returns how many blocks cc has. Any goroutine may call it.
//
//go:norace
func (cc *cacheClass) cached() int {
	n := 0
	if atomic.LoadUintptr(&cc.head) != 0 {
		n = int(atomic.LoadInt64(&cc.puts) + atomic.LoadInt64(&cc.capacity) - atomic.LoadInt64(&cc.takes))
	}
	if atomic.LoadUintptr(&cc.spare) != 0 {
		n += int(atomic.LoadUint64(&cc.numSpare))
	}
	return n
}

// mallocs returns how many blocks k has handed out. Any goroutine may call it.
//
//go:norace
func (k *cache) mallocs() (n uint64) {
	for i := range k.classes {
		n += uint64(atomic.LoadInt64(&k.classes[i].takes))
	}
	return n
}

// takeAll takes all lists out of k.
//
//go:norace
func (k *cache) takeAll(lists *[2 * sizeclass.Count]magazine) {
	for i := range k.classes {
		cc := &k.classes[i]
		if cc.head != 0 {
			lists[2*i] = magazine{cc.head, cc.length()}
		}
		if cc.spare != 0 {
			lists[2*i+1] = magazine{cc.spare, int(cc.numSpare)}
		}
		cc.head, cc.spare = 0, 0
		cc.setLength(0)
		cc.setCapacity(0)
	}
	k.room = cacheLimit - sizeclass.CacheLeast
}

// hasBlocks reports whether a list of k has a block. Any goroutine may call it.
//
//go:norace
func (k *cache) hasBlocks() bool {
	for i := range k.classes {
		cc := &k.classes[i]
		if atomic.LoadUintptr(&cc.head)|atomic.LoadUintptr(&cc.spare) != 0 {
			return true
		}
	}
	return false
}
