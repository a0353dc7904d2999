package intake

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/watch/sample"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/window"
)

// Blocks of a Memory are carved one after the other from the chunk of the
// shard's open batch. The chunk is a block of the heap and belongs to the batch.
// It returns to the heap when the batch is sealed and its last entry is gone.
//
// The space of a block is not reused before that, with two exceptions, both in
// the open batch. The block carved last makes room when it is closed. And when
// all blocks are gone, the chunk is empty again. See Closed.

// A Carver makes blocks of one spec, and is its releaser. A Memory has one for blocks
// whose handles are Owners and nothing else, and one for groups. The fields do not
// change after the first block.
type Carver struct {
	Heap *cheap.Heap

	// NewHandles returns n handles of a batch, side by side, each at a distance of
	// Stride from the one before and beginning with its Ref: the sentinel and the
	// index.
	NewHandles func(t *batch.Sentinel, n uint32) unsafe.Pointer
	Stride     uintptr

	// Shared says that no block can be disowned, not even one that is alone in its
	// chunk.
	Shared bool

	// Workers take dead batches whose spec has OnCollect, which may block.
	Workers batch.Releaser

	// In is the intake of all blocks. The Carver is the releaser of its spec.
	In *Intake
}

// A carving is the state of a Carver's shard beside its open batch. It is under
// the shard's lock.
type carving struct {
	base    uintptr        // of the chunk, whose other bounds are in Fill
	handles unsafe.Pointer // one for each entry, side by side, each beginning with its Owner
	mean    int64          // bytes of a block of the last batch, a multiple of window.Quantum, or of a resource; 0 before the first
	chunks  uint32         // number of chunks requested from the heap
}

// firstChunk is the size in bytes of a shard's first chunk, unless its first block
// is larger.
const firstChunk = 2 << 10

// Carve returns a block of size bytes, not zeroed, and its handle. It returns nil if
// the caller must call CarveSlow. flags are set in the state of the entry.
func (c *Carver) Carve(size int, flags uint64) (handle unsafe.Pointer, block uintptr) {
	return c.In.owning.Carve(size, flags, c.Stride)
}

// MostZeroed is the largest size, in bytes, of a block that CarveZeroed makes.
const MostZeroed = window.MostZeroed

// CarveZeroed is Carve for a zeroed block of MostZeroed bytes at most, which is in no
// Use. It returns nil for larger ones as well.
func (c *Carver) CarveZeroed(size int) (handle unsafe.Pointer, block uintptr) {
	return c.In.owning.CarveZeroed(size, c.Stride)
}

// CarveSlow is the slow path of Carve. If zero is set, the block is zeroed.
//
//go:noinline
func (c *Carver) CarveSlow(op string, size int, flags uint64, zero bool) (handle, block unsafe.Pointer, err error) {
	k := c.In.spec
	if size < 0 {
		k.PanicMisuse(op, "the size %d is negative", size)
	}
	if int64(size) > min(batch.MaxSize, math.MaxInt-window.Quantum) {
		return nil, nil, c.NoMemory(op, size, cheap.ErrNoMemory)
	}
	need := window.Takes(int64(size))
	if k.Batch == 1 || need >= k.Pinned {
		return c.alone(op, size, flags, zero)
	}
	s := c.In.owning.lock()
	for {
		switch {
		case s.destroyed:
			s.mu.Unlock()
			return nil, nil, ErrPoolClosed
		case s.fits(need):
			handle, block = c.cut(s, int64(size), need, flags)
			s.unlock()
			account.Process.Notify()
			if zero {
				clear(unsafe.Slice((*byte)(block), size))
			}
			return handle, block, nil
		case s.wasteful(need):
			s.unlock()
			return c.alone(op, size, flags, zero)
		}
		// No lock is held for the call of the heap, which may call package pace.
		n, bytes := s.plan(need)
		s.unlockAndGiveWay()
		next, err := c.newChunk(n, bytes, need)
		if err != nil {
			return nil, nil, c.NoMemory(op, size, err)
		}
		s = c.In.owning.lock()
		if s.destroyed || s.fits(need) {
			c.Heap.Free(next.block) // another goroutine was faster, or this is another P
			continue
		}
		s.beginChunk(next)
	}
}

// A chunk is a block of the heap that blocks are carved from, with what their batch needs.
type chunk struct {
	block    unsafe.Pointer
	bytes    int64
	sentinel *batch.Sentinel
	handles  unsafe.Pointer
	n        uint32 // handles
}

// newChunk returns a chunk of bytes for n blocks, or, if the heap has no memory for that, one
// for a block that takes need bytes. No lock is held.
func (c *Carver) newChunk(n uint32, bytes, need int64) (chunk, error) {
	block, err := c.Heap.TryMalloc(int(bytes))
	if err != nil && bytes > need {
		n, bytes = 1, need
		block, err = c.Heap.TryMalloc(int(bytes))
	}
	if err != nil {
		return chunk{}, err
	}
	sample.SetPool(uintptr(block), c.In.spec.Name)
	t := batch.NewSentinel()
	return chunk{block, bytes, t, c.NewHandles(t, n), n}, nil
}

// beginChunk seals the open batch, and begins that of a chunk.
func (s *shard) beginChunk(c chunk) {
	b := s.newBatch(nil, c.n)
	b.Chunk = uintptr(c.block)
	// The chunk of the open batch is full, so the next batch should be larger. It may have
	// unused entries, which seal would take as a sign of the opposite.
	grow := s.grow
	if s.open != nil {
		grow = min(2*grow, uint32(s.spec.Batch))
	}
	s.seal()
	s.grow = grow
	s.begin(b, c.sentinel)
	s.base, s.At, s.End = b.Chunk, b.Chunk, b.Chunk+uintptr(c.bytes)
	s.handles = c.handles
}

// unlockAndGiveWay unlocks the shard before or after a request for a chunk, and in one of
// 16 calls yields to other goroutines. Dead batches return after the sweeper has found
// them. With all Ps busy, the sweeper would wait for the end of a time slice of 10 ms, and
// a hundred thousand blocks made in that time would take fresh memory.
func (s *shard) unlockAndGiveWay() {
	s.chunks++
	now := s.chunks%16 == 0
	s.mu.Unlock()
	if now {
		runtime.Gosched()
	}
}

// NoMemory returns the error of an operation that found no memory.
func (c *Carver) NoMemory(op string, size int, err error) error {
	return fmt.Errorf("cheap: %s.%s: %d bytes: %w", c.In.spec.Name, op, size, err)
}

// roundHandles returns the number of handles, n or fewer, that fills an object of
// one of Go's size classes. Above 512 bytes an object with pointers has a header.
func roundHandles(n uint32) uint32 {
	if n < 32 {
		return n
	}
	return n&^15 - 1
}

// fits reports whether the open batch has an entry, and its chunk has space, for
// a block that takes need bytes. It sets the shard's limit.
func (s *shard) fits(need int64) bool {
	if s.open == nil {
		return false
	}
	// When all blocks are gone, the chunk is empty: each made room before it
	// counted as gone.
	if gone, _ := s.open.Gone(); uint32(gone) == s.N {
		s.At = s.base
	}
	// A block that fits in the chunk is within the bound on bytes.
	return need <= int64(s.End-s.At) && s.setLimits(0)
}

// cut carves a block that fits.
func (c *Carver) cut(s *shard, size, need int64, flags uint64) (handle, block unsafe.Pointer) {
	// There are as many handles as entries, and s.At is in the chunk.
	handle, block = unsafe.Add(s.handles, uintptr(s.N)*c.Stride), osmem.Pointer(s.At)
	var r batch.Ref // as in the handle
	s.put(&r, s.At, size, flags)
	s.At += uintptr(need)
	return handle, block
}

// wasteful reports whether a block that takes need bytes, for which the open
// batch has no space, should be a block of the heap by itself. The alternative is
// to seal the open batch with most of its chunk unused.
func (s *shard) wasteful(need int64) bool {
	return s.open != nil && need > s.spec.Pinned/4 && s.At-s.base < (s.End-s.base)/2
}

// plan returns the number of entries and of bytes for the next batch, whose
// first block takes need bytes.
func (s *shard) plan(need int64) (n uint32, bytes int64) {
	n, mean := roundHandles(s.grow), s.mean
	if mean == 0 {
		mean = need
		n = min(n, uint32(max(firstChunk/need, 1)))
	}
	bytes = max(min(int64(n)*mean, s.spec.Pinned&^(window.Quantum-1)), need)
	return min(n, uint32(max(bytes/mean, 1))), bytes
}

// uncarve ends the carving of a batch that is being sealed, and computes the mean
// for the next one. n blocks of bytes in all were carved.
func (s *shard) uncarve(n uint32, bytes int64) {
	if n > 0 {
		s.mean = window.Takes(bytes / int64(n))
	}
	s.base, s.handles = 0, nil
}

// alone returns a block that is a block of the heap by itself.
func (c *Carver) alone(op string, size int, flags uint64, zero bool) (handle, block unsafe.Pointer, err error) {
	if zero {
		block = c.Heap.Calloc(1, size) // does not clear memory that is known to be zero
	}
	if block == nil {
		if block, err = c.Heap.TryMalloc(size); err != nil {
			return nil, nil, c.NoMemory(op, size, err)
		}
		if zero {
			clear(unsafe.Slice((*byte)(block), size))
		}
	}
	sample.SetPool(uintptr(block), c.In.spec.Name)
	s := c.In.owning.lock()
	if s.destroyed {
		s.mu.Unlock()
		c.Heap.Free(block)
		return nil, nil, ErrPoolClosed
	}
	b := s.newBatch(nil, 1)
	b.Chunk, b.Whole = uintptr(block), !c.Shared
	t := b.NewSentinels(nil, nil)[0]
	s.alone(b, t, uintptr(block), int64(size), flags)
	handle = c.NewHandles(t, 1)
	s.openWindow()
	s.unlockAndGiveWay()
	account.Process.Notify()
	return handle, block, nil
}

// Closed gives a block back.
func (c *Carver) Closed(b *batch.Batch, i uint32) batch.Outcome {
	s := b.State(i)
	if s&batch.Extra != 0 {
		b.Spec.Release(nil, []uintptr{b.Word(i)})
	}
	size := batch.SizeOf(s)
	// The block makes room before it counts as gone. Once it counts as gone the
	// chunk may be empty, and its space may belong to another block. Before that,
	// the next block is carved no lower than the end of this one, and exactly
	// there only if all blocks above it have made room.
	if !b.Sealed() {
		if window.Possible {
			c.In.owning.MakeRoom(b, i, size)
		} else {
			b.Home.(*shard).makeRoom(b, i, size)
		}
	}
	b.Done(1, size)
	return batch.Outcome{} // a block is the child of nothing
}

// makeRoom is MakeRoom of a window, without windows.
func (s *shard) makeRoom(b *batch.Batch, i uint32, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := b.Word(i); s.open == b && at+uintptr(window.Takes(size)) == s.At {
		s.At = at
	}
}

// Dead releases a dead batch, whose chunk returns to the heap. That does not block,
// and calls no code of the program, so it needs no worker.
func (c *Carver) Dead(j batch.Job) {
	b := j.Batch
	switch {
	case j.Entry&batch.Lost == 0:
		b.Dispose(j.Entry)
	case b.Spec.OnCollect != nil:
		c.Workers.Dead(j)
	case !c.Shared && b.EndWhole():
	default:
		claim := batch.Claim{Job: j}
		p := claim.Step(int(b.Len()))
		p.Release()
		b.Tell(claim.Found)
	}
}
