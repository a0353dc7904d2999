package cheap

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

// class is what a heap has of one size class beside its caches. All of it is
// under mu.
type class struct {
	mu sync.Mutex

	// spans leads through the spans that have blocks to give: blocks that came
	// back, or some that are still to be carved.
	spans uintptr

	// batches holds batches as caches gave them back, for the next cache that
	// needs one. Their blocks are missing in their spans.
	batches  [maxBatches]batch
	nbatches int

	out     int64  // blocks given to caches, less those that came back
	mallocs uint64 // calls of Malloc that were served past a cache

	_ [40]byte // two classes do not share a cache line
}

// A batch is a list of n free blocks.
type batch struct {
	list uintptr
	n    int
}

// maxBatches is how many batches a class keeps whole, and wholeBatch how many
// blocks one must have to be worth it.
const (
	maxBatches = 4
	wholeBatch = 4
)

// spanCost is what a span of a class holds from the system, record included.
func spanCost(c uint8) int64 {
	return int64(sizeclass.Classes[c].SpanBytes()) + recordBytes
}

// recordBytes is the metadata that a unit takes.
const recordBytes = 128

// errSettle says that the heap is about to grow.
var errSettle = errors.New("settle first")

// A writtenError is the address of a free block that somebody has written to.
type writtenError uintptr

func (e writtenError) Error() string { return "written after free" }

// get returns a block, what its mark said of it, and a list of n more for a cache: about as many as it wants. It returns errSettle where
// the heap should settle first, unless it has.
//
//go:norace
func (cl *class) get(h *Heap, c uint8, want int, settled bool) (p uintptr, was uint64, list uintptr, n int, err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if h.closed.Load() {
		return 0, 0, 0, 0, ErrDestroyed
	}
	if cl.nbatches > 0 {
		cl.nbatches--
		list, n = cl.batches[cl.nbatches].list, cl.batches[cl.nbatches].n
	} else {
		if cl.spans == 0 {
			if !settled && h.unsettled(spanCost(c), 1) {
				return 0, 0, 0, 0, errSettle
			}
			if err := cl.grow(h, c); err != nil {
				return 0, 0, 0, 0, err
			}
		}
		s := span.At(cl.spans)
		if s.NumFree > 0 {
			list, n, err = takeFree(s, want)
			if err != nil {
				if s.Carved == s.Blocks {
					cl.unlist(s) // it has nothing to give any more
				}
				return 0, 0, 0, 0, err
			}
		} else {
			list, n = carve(s, want)
		}
		if s.NumFree == 0 && s.Carved == s.Blocks {
			cl.unlist(s)
		}
	}
	cl.out += int64(n)
	b := blockAt(list)
	next := b.next
	was = b.odd(list, next)
	if was > zeroed|carved {
		cl.out -= int64(n) // the batch is lost
		return 0, 0, 0, 0, writtenError(list)
	}
	cl.mallocs++
	b.mark = 0
	return list, was, next, n - 1, nil
}

// takeFree takes at most n of the blocks that came back to s.
//
//go:norace
func takeFree(s *span.Span, n int) (list uintptr, taken int, err error) {
	list = s.Free
	p := list
	for {
		b := blockAt(p)
		next := b.next
		was := b.odd(p, next)
		if was > zeroed|carved {
			// What follows cannot be trusted. The blocks are lost, and with
			// them the span: it will never be whole again.
			s.Free, s.NumFree = 0, 0
			return 0, 0, writtenError(p)
		}
		taken++
		if next == 0 || taken == n {
			b.setFree(p, 0, was)
			s.Free = next
			s.NumFree -= uint32(taken)
			return list, taken, nil
		}
		p = next
	}
}

// carve makes at most n new blocks of s, and no more than begin in the page
// that the first of them ends in: pages behind it are not touched before they
// are needed.
//
//go:norace
func carve(s *span.Span, n int) (list uintptr, made int) {
	first := uintptr(s.Carved)
	start := s.Base + first*s.Size
	pageEnd := osmem.RoundPage(start + s.Size)
	made = int((pageEnd - start + s.Size - 1) / s.Size)
	made = min(made, n, int(s.Blocks-s.Carved))
	state := uint64(carved)
	if s.Fresh {
		state |= zeroed
	}
	next := uintptr(0)
	for i := made - 1; i >= 0; i-- {
		p := start + uintptr(i)*s.Size
		if poisoning && !s.Fresh {
			poison(p, s.Size)
		}
		blockAt(p).setFree(p, next, state)
		next = p
	}
	// Not before the blocks bear their marks: Free trusts it.
	atomic.StoreUint32(&s.Carved, s.Carved+uint32(made))
	return next, made
}

// grow takes a span from package span.
//
//go:norace
func (cl *class) grow(h *Heap, c uint8) error {
	cost := spanCost(c)
	if !h.account.Take(cost, h.limit) {
		return ErrLimit
	}
	sc := &sizeclass.Classes[c]
	base, fresh, err := span.AllocCarved(sc.SpanBytes())
	if err != nil {
		h.account.Give(cost)
		return noMemory(err)
	}
	s := span.Find(base)
	s.Size, s.Base = uintptr(sc.Size), base
	s.Inverse, s.Shift, s.Blocks = sc.Inverse, uint32(sc.Shift), sc.Blocks
	s.Free, s.NumFree, s.Fresh = 0, 0, fresh
	s.StoreTag(h.id<<span.KindBits | uintptr(c))
	cl.list(s)
	h.grew.Store(true)
	return nil
}

// put takes back a batch. It returns what sort does.
//
//go:norace
func (cl *class) put(h *Heap, b batch) (written uintptr) {
	cl.mu.Lock()
	if b.n >= wholeBatch && cl.nbatches < maxBatches && !h.closed.Load() {
		cl.batches[cl.nbatches] = b
		cl.nbatches++
		cl.out -= int64(b.n)
		cl.mu.Unlock()
		return 0
	}
	cl.mu.Unlock()
	return cl.sort(h, b.list, b.n)
}

// putOne takes back a block that is not in a cache. It reports false, with
// nothing changed, where the block is free already.
//
//go:norace
func (cl *class) putOne(h *Heap, p uintptr) bool {
	cl.mu.Lock()
	b := blockAt(p)
	if h.closed.Load() || b.odd(p, b.next) <= zeroed|carved {
		cl.mu.Unlock()
		return false
	}
	b.setFree(p, 0, 0)
	cl.mu.Unlock()
	cl.sort(h, p, 1)
	return true
}

// sort gives the n blocks of a list back to the spans they lie in. Spans that
// are whole again go back to package span. Where a block has been written to
// after it was freed, what comes behind it is lost, and its address is returned;
// else 0. Blocks of a heap that is closed are not its any more.
//
//go:norace
func (cl *class) sort(h *Heap, list uintptr, n int) (written uintptr) {
	released := false
	cl.mu.Lock()
	if h.closed.Load() {
		cl.mu.Unlock()
		return 0
	}
	cl.out -= int64(n)
	for p := list; p != 0; {
		b := blockAt(p)
		next := b.next
		was := b.odd(p, next)
		if was > zeroed|carved {
			written = p
			break
		}
		s := span.Find(p)
		b.setFree(p, s.Free, was)
		s.Free = p
		s.NumFree++
		if s.NumFree == s.Carved {
			cl.release(h, s)
			released = true
		} else if !s.Listed {
			cl.list(s)
		}
		p = next
	}
	cl.mu.Unlock()
	if released {
		span.Decay()
	}
	return written
}

// sortBatches gives the blocks of the batches back to their spans. It returns
// what sort does.
//
//go:norace
func (cl *class) sortBatches(h *Heap) (written uintptr) {
	for {
		cl.mu.Lock()
		if cl.nbatches == 0 {
			cl.mu.Unlock()
			return written
		}
		cl.nbatches--
		b := cl.batches[cl.nbatches]
		cl.out += int64(b.n)
		cl.mu.Unlock()
		written = max(written, cl.sort(h, b.list, b.n))
	}
}

// close forgets all blocks of a class whose heap is closed. Whoever waits for
// the lock looks at closed when it has it; whoever had it before has left.
//
//go:norace
func (cl *class) close() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.spans, cl.nbatches, cl.out = 0, 0, 0
}

// hollow gives the memory of the class's free blocks back, all but what begins
// their pages. It is for classes whose blocks are pages long.
//
//go:norace
func (cl *class) hollow() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for a := cl.spans; a != 0; a = span.At(a).Next {
		s := span.At(a)
		for p := s.Free; p != 0; {
			b := blockAt(p)
			next := b.next
			was := b.odd(p, next)
			if was > zeroed|carved {
				return // written to; whoever takes it will say so
			}
			if was&zeroed == 0 && span.Hollow(p+sizeclass.Quantum, s.Size-sizeclass.Quantum) {
				b.setFree(p, next, was|zeroed)
			}
			p = next
		}
	}
}

// release gives s, none of whose blocks is in use or in a cache, back to
// package span.
//
//go:norace
func (cl *class) release(h *Heap, s *span.Span) {
	if s.Listed {
		cl.unlist(s)
	}
	base, cost := s.Base, spanCost(uint8(s.Tag))
	retire(s)
	span.FreeCarved(base)
	h.account.Give(cost)
}

// retire makes s a span of nobody. From here on every Free of an address in it
// is told.
//
//go:norace
func retire(s *span.Span) {
	atomic.StoreUint32(&s.Carved, 0)
	s.Free, s.NumFree, s.Listed = 0, 0, false
	s.StoreTag(0)
}

// list puts s at the head of the class's list.
//
//go:norace
func (cl *class) list(s *span.Span) {
	s.Listed = true
	s.Prev, s.Next = 0, cl.spans
	if cl.spans != 0 {
		span.At(cl.spans).Prev = s.Addr()
	}
	cl.spans = s.Addr()
}

// unlist takes s out of the class's list.
//
//go:norace
func (cl *class) unlist(s *span.Span) {
	s.Listed = false
	if s.Prev != 0 {
		span.At(s.Prev).Next = s.Next
	} else {
		cl.spans = s.Next
	}
	if s.Next != 0 {
		span.At(s.Next).Prev = s.Prev
	}
	s.Prev, s.Next = 0, 0
}
