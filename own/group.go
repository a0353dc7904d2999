package own

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/bump"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/watch/sample"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// A Group is an arena with a lifetime. All blocks that are allocated from it
// stay valid until the Group is closed or becomes unreachable, and are then freed
// together. A Group suits one request of a server. It is made by [Memory.NewGroup].
//
// A Group is a [cheap.Allocator], so cheap.New, cheap.MakeSlice and
// cheap.CString can allocate from it. Blocks are aligned to 16 bytes. Only one
// goroutine at a time may allocate.
//
// A pointer to a block does not keep the Group alive. This program is wrong:
//
//	func sum(m *own.Memory) int {
//		g, _ := m.NewGroup()
//		numbers := cheap.MakeSlice[int](g, 1000, 1000)
//		read(numbers)
//		return add(numbers)
//	}
//
// The last use of g is in MakeSlice, so the numbers may be freed before add
// reads them. The remedies are a g.KeepAlive() after the last use of the
// blocks, a defer g.Close(), or [Group.Use] around all of it. Only Use protects
// also against a Close by another goroutine.
//
// A Group begins with 1 KiB in the chunk of its batch. When that is used up, the
// Group takes more from the heap: 2 KiB, then twice as much each time, up to 64
// KiB. A block that is large in comparison is taken separately. All that the
// Group took from the heap returns there when the Group is closed; its first 1
// KiB returns with the batch, as blocks of the Memory do. A batch whose groups
// grow beyond MemoryOptions.Pinned takes no more groups.
//
// A Group must not be copied.
type Group struct {
	_     noCopy
	owner owner

	// The current chunk. Only the goroutine that allocates touches it.
	rest bump.Chunk

	// state is a *uint64, the group's state in its batch. The pointer keeps the
	// states of the batch alive, not the batch. Printers do not follow its type;
	// see batch.Ref.
	state unsafe.Pointer
}

var _ cheap.AlignedAllocator = (*Group)(nil)

const (
	quantum    = 16       // blocks begin at multiples of it
	groupRoom  = 1 << 10  // at first
	firstGrow  = 2 << 10  // the chunk after that
	mostGrow   = 64 << 10 // the largest for many blocks
	groupBlock = groupRoom + int(groupHeaderSize)
)

// A groupHeader is at the beginning of a group's block, whose address is the
// group's resource. It is valid once the state has batch.Extra set. The goroutine
// that allocates writes it, in Use, so that the group is not released meanwhile.
type groupHeader struct {
	newest uintptr // chunk
	bytes  int     // of all chunks
	grow   int     // size of the next one
}

// A chunkHeader is at the beginning of each chunk.
type chunkHeader struct {
	next uintptr // the chunk before this one, or 0
}

const (
	groupHeaderSize = (unsafe.Sizeof(groupHeader{}) + quantum - 1) &^ (quantum - 1)
	chunkHeaderSize = (unsafe.Sizeof(chunkHeader{}) + quantum - 1) &^ (quantum - 1)
)

// newGroups returns n Groups of a batch. A Group refers to the sentinel, and to the
// states of the batch to which the sentinel refers. So one reachable Group keeps only
// these alive.
func newGroups(t *batch.Sentinel, n uint32) unsafe.Pointer {
	all := make([]Group, n)
	for i := range all {
		all[i].owner.ref = batch.RefTo(t, uint32(i))
	}
	return unsafe.Pointer(&all[0])
}

func (m *Memory) initGroups(h *cheap.Heap, o Options) {
	g := &m.groups
	g.init(m, h, o)
	g.NewHandles, g.Stride = newGroups, unsafe.Sizeof(Group{})
	g.Shared, g.pool.spec.Release = true, g.freeChunks
}

// A handle has its owner at its beginning.
var _ = [1]struct{}{}[unsafe.Offsetof(Group{}.owner)]

// NewGroup returns a new Group. The errors are those of [NewMem].
func (m *Memory) NewGroup() (*Group, error) {
	h, block := m.groups.Carve(groupBlock, 0)
	if h == nil {
		var p unsafe.Pointer
		var err error
		if h, p, err = m.groups.CarveSlow("NewGroup", groupBlock, 0, false); err != nil {
			return nil, err
		}
		block = uintptr(p)
	}
	g := (*Group)(h) // newGroups has made it as a Group
	g.rest = bump.Chunk{Base: block + groupHeaderSize, Left: groupRoom}
	g.state = unsafe.Pointer(&g.owner.ref.Sentinel().At(g.owner.ref.Index).State)
	return g, nil
}

// Malloc returns a block of size bytes with undefined contents, or nil if the
// heap has no memory for it; [Group.TryMalloc] says why. A size of 0 returns a distinct block. Malloc panics
// if size is negative or the group is closed.
func (g *Group) Malloc(size int) unsafe.Pointer {
	// A Group that was not made by Memory.NewGroup has no state, and nothing left.
	if p, ok := g.rest.Cut(size); ok && atomic.LoadUint64((*uint64)(g.state))&batch.Open != 0 {
		return osmem.Pointer(p) // in the chunk
	}
	p, _ := g.malloc("Group.Malloc", size, quantum)
	return p
}

// TryMalloc is [Group.Malloc] with the reason: both fail in the same cases, Malloc with nil, and
// TryMalloc with nil and an error. The error wraps [cheap.ErrNoMemory] or [cheap.ErrLimit].
func (g *Group) TryMalloc(size int) (unsafe.Pointer, error) {
	return g.malloc("Group.TryMalloc", size, quantum)
}

// AlignedMalloc is [Group.Malloc] of a block whose address is a multiple of
// align. It panics if align is not a power of two.
func (g *Group) AlignedMalloc(size, align int) unsafe.Pointer {
	if align <= 0 || align&(align-1) != 0 {
		panicMisuse("own.Group", "AlignedMalloc", "the alignment %d is not a power of two", align)
	}
	p, _ := g.malloc("Group.AlignedMalloc", size, max(align, quantum))
	return p
}

// Free does nothing: a block stays valid as long as its group. The method is
// part of [cheap.Allocator].
func (g *Group) Free(ptr unsafe.Pointer) {}

// Close frees all blocks of the group; see [Handle.Close]. The error is always nil.
func (g *Group) Close() error { return g.owner.Close() }

// CloseWait is Close that waits until the blocks are freed; see [Handle.CloseWait].
func (g *Group) CloseWait(ctx context.Context) error { return g.owner.CloseWait(ctx) }

// Closed reports whether the blocks are freed, or will be after the last Use.
func (g *Group) Closed() bool { return g.owner.Closed() }

// Owner returns what names g as the parent of resources; see With.Parent.
func (g *Group) Owner() Owner { return g.owner.Owner() }

// KeepAlive marks the last use of the blocks; see [Handle.KeepAlive].
func (g *Group) KeepAlive() { g.owner.KeepAlive() }

// Use calls f. All blocks of the group, also those that f allocates, stay valid
// until f returns, even if the group is closed meanwhile; see [Handle.Use]. Use
// panics if the group is closed.
func (g *Group) Use(f func()) {
	t := g.owner.use("Group.Use")
	defer unuse(t, g.owner.ref.Index)
	f()
}

// TryUse is [Group.Use] that returns [ErrClosed], without a call of f, if the group is
// closed. Else it returns the error of f.
func (g *Group) TryUse(f func() error) error {
	t := g.owner.tryUse("Group.TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, g.owner.ref.Index)
	return f()
}

// Size returns the number of bytes that the group has taken from its Memory, or
// 0 if it is closed. It must not run at the same time as an allocation from the
// group or its Close.
func (g *Group) Size() int64 {
	if g.Closed() {
		return 0
	}
	if atomic.LoadUint64((*uint64)(g.state))&batch.Extra == 0 {
		return int64(groupBlock)
	}
	n := groupBlock + (*groupHeader)(g.owner.pointer()).bytes
	runtime.KeepAlive(g)
	return int64(n)
}

// malloc is the slow path of Malloc.
func (g *Group) malloc(op string, size, align int) (unsafe.Pointer, error) {
	t := g.owner.ref.Sentinel()
	var b *blockPool
	if t != nil {
		b, _ = t.Batch.Spec.Releaser.(*blockPool)
	}
	if b == nil {
		panicMisuse("own", op, "the group was not made by Memory.NewGroup; the zero Group cannot allocate")
	}
	l, i := t.Batch, g.owner.ref.Index
	if size < 0 {
		panicMisuse(l.Spec.Name, op, "the size %d is negative", size)
	}
	defer func() { account.Process.Notify() }()
	// From here on the group is not released, also in a pool with
	// Options.Unshared.
	if !t.Enter(i, op) {
		l.Spec.PanicClosed(op)
	}
	defer t.Exit(i)
	size = max(size, 1)
	if p, ok := g.rest.CutAligned(size, align); ok {
		return osmem.Pointer(p), nil // in the chunk
	}
	if int64(size) > min(batch.MaxSize, math.MaxInt/2) || align > math.MaxInt/4 {
		return nil, b.NoMemory(op, size, cheap.ErrNoMemory)
	}
	h := (*groupHeader)(t.Pointer(i)) // not freed while in Use
	if l.State(i)&batch.Extra == 0 {
		*h = groupHeader{grow: firstGrow}
	}
	chunk, bytes := unsafe.Pointer(nil), h.grow
	alone := int(chunkHeaderSize) + size + align - quantum
	if alone <= bytes/4 {
		chunk = b.Heap.Malloc(bytes)
	}
	if chunk == nil {
		var err error
		if chunk, err = b.Heap.TryMalloc(alone); err != nil {
			return nil, b.NoMemory(op, size, err)
		}
		bytes = alone
	}
	sample.SetPool(uintptr(chunk), b.pool.spec.Name)
	b.link(l, (*uint64)(g.state), h, chunk, bytes)
	at := uintptr(chunk) + chunkHeaderSize
	if bytes == alone {
		// The chunk has room for that, see alone.
		return osmem.Pointer((at + uintptr(align-1)) &^ uintptr(align-1)), nil
	}
	h.grow = min(2*bytes, mostGrow)
	g.rest = bump.Chunk{Base: at, Left: bytes - int(chunkHeaderSize)}
	p, _ := g.rest.CutAligned(size, align) // four times that would fit
	return osmem.Pointer(p), nil
}

// link adds a chunk to a group, which is in Use.
func (b *blockPool) link(l *batch.Batch, state *uint64, h *groupHeader, chunk unsafe.Pointer, bytes int) {
	*(*chunkHeader)(chunk) = chunkHeader{next: h.newest}
	h.newest = uintptr(chunk)
	h.bytes += bytes
	atomic.OrUint64(state, batch.Extra)
	b.grown.Add(int64(bytes))
	account.Process.ChargeReclaimable(int64(bytes))
	pinned := l.Spec.Pinned
	if grown := l.Grown.Add(int64(bytes)); grown > pinned && grown-int64(bytes) <= pinned {
		intake.Retire(l)
	}
}

// freeChunks is the release function of groups that have chunks.
func (b *blockPool) freeChunks(_ any, resources []uintptr) error {
	for _, r := range resources {
		h := (*groupHeader)(osmem.Pointer(r)) // the caller is the one that releases the group
		b.grown.Add(-int64(h.bytes))
		account.Process.UnchargeReclaimable(int64(h.bytes))
		for next := h.newest; next != 0; {
			p := osmem.Pointer(next)
			next = (*chunkHeader)(p).next
			b.Heap.Free(p)
		}
	}
	return nil
}

// A noCopy makes go vet report copies of a type that contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
