// Package guard places blocks of heaps alone on pages between pages that fault when they are
// touched. So an access behind the end of such a block or before its start faults at once,
// and so does one after its free.
//
// # Slots
//
// The blocks are in slots, which are a fixed number and lie side by side in one mapping:
//
//	slot      | inaccessible, a page at least            | pages of the block |
//	          |                                          |  slack | the block |   or
//	          |                                          | the block |  slack |
//
// The page behind a slot is the first of the next one. A block of whole pages touches
// inaccessible pages on both sides. Any other has slack on one side, at random, which is
// filled with a pattern that is looked at when the block is freed.
//
// When a block is freed its pages become inaccessible. They stay so until the slot is used
// again, and of the free slots that is the one that was freed first. The pages of a block
// of more than one page lose their memory when it is freed.
//
// # Concurrency
//
// The lock of the package is taken while that of a class of a heap is held. Only the locks of
// packages sample, span and osmem are taken under it.
package guard

import (
	"math/rand/v2"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

const (
	// Largest is the largest block that can be guarded.
	Largest = 32 << 10

	// MostSlots is how many slots there are at most. On 32-bit systems there are as many as
	// fit in a region.
	MostSlots = 255
)

// SetRate is [sample.SetGuardRate], and 0 where pages cannot be made inaccessible.
func SetRate(n int64) (old int64) {
	if osmem.GoBacked {
		n = 0
	}
	return sample.SetGuardRate(n)
}

// A Block is a block that is guarded, or was guarded in the slot last.
type Block struct {
	Start, Size uintptr
	Live        bool
	AllocStack  uint32  // of package sample
	FreeStack   uint32  // 0 if it is live
	Alloc, Free uintptr // goroutines, as gcwatch.GoroutineID numbers them
}

// End is the address behind the block.
func (b *Block) End() uintptr { return b.Start + b.Size }

// FreedBy is the title of the stack of the free.
func (b *Block) FreedBy() string {
	if b.Alloc != b.Free {
		return "freed by, in another goroutine,"
	}
	return "freed by"
}

// pages returns the pages that have the block.
func (b *Block) pages() (start, size uintptr) {
	start = b.Start &^ (osmem.PageSize - 1)
	return start, osmem.RoundPage(b.Size)
}

var pool struct {
	mu    sync.Mutex
	state int8 // 0 before the first Place, 1 if there are slots, -1 if the system has refused

	base     uintptr // of the first slot
	slotSize uintptr
	slots    []Block // Start is 0 in those that were never used
	earlier  []Block // the blocks that the slots had before these; Start is 0 if there were none

	// The free slots, first in first out: queue[first], and n in all. The last pages of the
	// first ready of them are committed.
	queue           []int
	first, n, ready int
}

// ahead is how many slots are made ready at a time. The system needs half the time for each
// of several calls in a row.
const ahead = 16

// Cost is how many bytes a guarded block of that size holds from the system.
func Cost(size uintptr) int64 { return int64(osmem.RoundPage(size)) + recordBytes }

// recordBytes is the metadata of a unit.
const recordBytes = 128

// Place returns the address of a block of size bytes in a unit whose record gets that tag, or 0 if
// no slot is free, or the system refuses. stack is that of the caller of package cheap, which
// sample.Hold has returned; if there is a block, Place takes it over. sampled says that package
// sample is going to know of the block. Size is at most Largest. The address is a multiple of
// every power of two that size is a multiple of.
func Place(size, tag uintptr, stack uint32, sampled bool) uintptr {
	osmem.Must(0 < size && size <= Largest, "guard.Place", "size", size)
	if osmem.GoBacked {
		return 0
	}
	pool.mu.Lock()
	defer pool.mu.Unlock()
	i := takeSlot()
	if i < 0 {
		return 0
	}
	pages := osmem.RoundPage(size)
	start := slotEnd(i) - pages
	if pages > osmem.PageSize && osmem.Commit(start, pages-osmem.PageSize) != nil {
		_ = osmem.Revoke(slotEnd(i)-osmem.PageSize, osmem.PageSize, true)
		giveSlot(i)
		return 0
	}
	b := Block{Start: start, Size: size, Live: true, AllocStack: stack, Alloc: gcwatch.GoroutineID()}
	if rand.Uint64()&1 == 0 {
		b.Start += pages - size
	}
	before, behind := b.slack()
	fill(before)
	fill(behind)
	sample.LetGo(pool.earlier[i].AllocStack)
	sample.LetGo(pool.earlier[i].FreeStack)
	pool.earlier[i], pool.slots[i] = pool.slots[i], b
	writeSlot(i)
	s := span.Find(b.Start)
	s.ForgetChunk()
	s.Base, s.Size, s.Carved, s.Space, s.Sampled = b.Start, size, 0, 0, sampled
	s.StoreTag(tag)
	return b.Start
}

// takeSlot returns the number of a free slot whose last page is committed, or -1. The lock is
// held.
func takeSlot() int {
	if pool.state == 0 {
		pool.state = -1
		makeSlots()
	}
	if pool.ready == 0 {
		makeReady()
	}
	if pool.ready == 0 {
		return -1
	}
	i := pool.queue[pool.first]
	pool.first = (pool.first + 1) % len(pool.queue)
	pool.n--
	pool.ready--
	return i
}

// makeReady commits the last pages of the next slots. The lock is held.
func makeReady() {
	for pool.ready < min(ahead, pool.n) {
		i := pool.queue[(pool.first+pool.ready)%len(pool.queue)]
		if osmem.Commit(slotEnd(i)-osmem.PageSize, osmem.PageSize) != nil {
			return
		}
		pool.ready++
	}
}

// slotEnd returns the address behind slot i.
func slotEnd(i int) uintptr { return pool.base + uintptr(i+1)*pool.slotSize }

// giveSlot puts a slot at the end of the queue. The lock is held.
func giveSlot(i int) {
	pool.queue[(pool.first+pool.n)%len(pool.queue)] = i
	pool.n++
}

// makeSlots makes the slots. The lock is held.
func makeSlots() {
	// The mapping is a region, of which only the first page is committed.
	base, space, err := span.AllocMapping(osmem.PageSize, 1)
	if err != nil {
		return
	}
	if osmem.Revoke(base, osmem.PageSize, false) != nil {
		span.FreeMapping(base, space)
		return
	}
	osmem.SmallPages(base, space)
	pool.slotSize = (Largest + osmem.PageSize + span.UnitSize - 1) &^ (span.UnitSize - 1)
	// The page behind the last slot is in the mapping, too. The first unit's record is that of
	// the mapping.
	pool.base = base + span.UnitSize
	n := min(MostSlots, (space-2*span.UnitSize)/pool.slotSize)
	pool.slots, pool.earlier = make([]Block, n), make([]Block, n)
	pool.queue, pool.n = make([]int, n), int(n)
	for i := range pool.queue {
		pool.queue[i] = i
		osmem.Apart(slotEnd(i)-pool.slotSize, pool.slotSize-osmem.PageSize)
	}
	pool.state = 1
	shareSlots()
}

// Damage says which bytes of the slack of a block were written to.
type Damage struct {
	From, To int // the bytes in [From, To), counted from the start of the block; none if they are equal

	Block   Block // as Free leaves it; another block may have its slot when that returns
	Earlier Block // the block that had the first of these bytes before, or one with a Start of 0
}

// Free frees the block at p, if it is live, has that size, and its unit has that tag. Else it
// returns false, and changes nothing. stack is as for Place.
func Free(p, size, tag uintptr, stack uint32) (d Damage, ok bool) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	i := slotOf(p)
	if i < 0 {
		return d, false
	}
	b := &pool.slots[i]
	if !b.Live || b.Start != p || b.Size != size || span.Find(p).LoadTag() != tag {
		return d, false
	}
	span.Find(p).StoreTag(0)
	d = damage(i)
	b.Live, b.FreeStack, b.Free = false, stack, gcwatch.GoroutineID()
	d.Block = *b
	writeSlot(i) // before an access can fault
	start, n := b.pages()
	// If the system refuses, a later access is not found.
	_ = osmem.Revoke(start, n, n == osmem.PageSize)
	giveSlot(i)
	return d, true
}

// Look returns the first damage of a block in use whose unit has that tag. It is false if there
// is none.
func Look(tag uintptr) (d Damage, ok bool) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	for i := range pool.slots {
		b := &pool.slots[i]
		if !b.Live || span.Find(b.Start).LoadTag() != tag {
			continue
		}
		if d = damage(i); d.From < d.To {
			d.Block = *b
			return d, true
		}
	}
	return Damage{}, false
}

// slotOf returns the slot that addr is in, or -1. The lock is held.
func slotOf(addr uintptr) int {
	if pool.state != 1 || addr < pool.base {
		return -1
	}
	if i := (addr - pool.base) / pool.slotSize; i < uintptr(len(pool.slots)) {
		return int(i)
	}
	return -1
}

// Find returns the block that addr is in, or the one that it is nearest to in its slot and
// the page behind that. It is false if that slot was never used.
//
// A pointer that is used after the free may be so old that the slot has another block by now.
// earlier is the block before that, if addr is one of its bytes. Else its Start is 0.
func Find(addr uintptr) (b, earlier Block, ok bool) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.state != 1 {
		return Block{}, Block{}, false
	}
	if i := slotOf(addr); i >= 0 {
		earlier = pool.earlier[i].ifAt(addr)
	}
	b, ok = nearest(addr, pool.base, pool.slotSize, pool.slots)
	return b, earlier, ok
}

// ifAt returns b if addr is one of its bytes, or else a Block with a Start of 0.
func (b *Block) ifAt(addr uintptr) Block {
	if b.Start == 0 || b.Distance(addr) != 0 {
		return Block{}
	}
	return *b
}

// nearest is Find in a table of slots.
func nearest(addr, base, slotSize uintptr, slots []Block) (b Block, ok bool) {
	if addr < base || (addr-base)/slotSize > uintptr(len(slots)) {
		return Block{}, false
	}
	i := (addr - base) / slotSize
	var candidates []Block
	if i < uintptr(len(slots)) {
		candidates = slots[i : i+1]
	}
	if i > 0 {
		candidates = slots[i-1 : i-1+1+uintptr(len(candidates))]
	}
	least := slotSize
	for _, c := range candidates {
		if c.Start == 0 {
			continue
		}
		if d := c.Distance(addr); d < least {
			b, ok, least = c, true, d
		}
	}
	return b, ok
}

// Distance returns how far addr is from the bytes of b; 0 if it is one of them.
func (b *Block) Distance(addr uintptr) uintptr {
	switch {
	case addr < b.Start:
		return b.Start - addr
	case addr >= b.End():
		return addr - b.End() + 1
	}
	return 0
}

// slack returns the bytes of the pages of b before and behind it. They are committed.
func (b *Block) slack() (before, behind []byte) {
	start, n := b.pages()
	bytes := unsafe.Slice((*byte)(osmem.Pointer(start)), n)
	return bytes[:b.Start-start], bytes[b.End()-start:]
}

// pattern is a page of bytes that are in slack.
var pattern = func() []byte {
	p := make([]byte, osmem.PageSize)
	for i := range p {
		p[i] = 0xB6 // as before the blocks of a heap with a CheckLevel
	}
	return p
}()

func fill(slack []byte) { copy(slack, pattern) }

// damage returns what was written to of the slack of the block in slot i, but for the block. The
// lock is held.
func damage(i int) (d Damage) {
	b := &pool.slots[i]
	before, behind := b.slack()
	if from, to := changed(before); from < to {
		d.From, d.To = from-len(before), to-len(before)
	} else if from, to := changed(behind); from < to {
		d.From, d.To = int(b.Size)+from, int(b.Size)+to
	} else {
		return d
	}
	d.Earlier = pool.earlier[i].ifAt(b.Start + uintptr(d.From))
	return d
}

// changed returns the range of bytes of slack that fill has not left.
func changed(slack []byte) (from, to int) {
	if string(slack) == string(pattern[:len(slack)]) {
		return 0, 0
	}
	for slack[from] == pattern[0] {
		from++
	}
	for to = len(slack); slack[to-1] == pattern[0]; to-- {
	}
	return from, to
}
