package own

import (
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/osmem"
)

// A Group is an arena with a lifetime: all that is allocated from it lives until
// the Group is closed or cannot be reached any more, and then goes back to the
// heap at once. It is the unit for one request. It is made by [Memory.Group].
//
// A Group is a [cheap.Allocator], so that cheap.New, cheap.MakeSlice and
// cheap.CString allocate from it. Blocks are aligned to 16. One goroutine at a
// time may allocate.
//
// A pointer to a block keeps nothing alive, and this program is wrong:
//
//	func sum(m *own.Memory) int {
//		g, _ := m.Group()
//		numbers := cheap.MakeSlice[int](g, 1000, 1000)
//		read(numbers)
//		return add(numbers)
//	}
//
// g is last used by MakeSlice, so the numbers may be gone before add has seen
// them. It takes a runtime.KeepAlive(g) behind the last use of the blocks, or a
// defer g.Close(), or all of it in [Group.Use], which also protects from a Close
// elsewhere.
//
// The memory is in chunks of 2 KiB and, when that is used up, of twice as much
// as the one before, up to 64 KiB; a block that is large for the next chunk has
// one of its own. Groups share registrations with the collector as all owners
// do: see Options.Batch and Options.Pinned.
//
// A Group must not be copied. A copy of its Owner keeps the blocks alive as the
// Group does.
type Group struct {
	_ noCopy
	Owner

	// Of the current chunk the first left bytes are free: blocks are cut off at
	// their end. Whoever allocates touches these.
	base uintptr
	left int

	// state is the group's entry in its ledger. It keeps the states of its
	// batch, not the batch.
	state *uint64

	memory *Memory
}

var _ cheap.AlignedAllocator = (*Group)(nil)

const (
	groupChunk = 2 << 10  // the first
	mostChunk  = 64 << 10 // of those that are for many blocks
)

// A groupHeader begins the first chunk of a group, whose address is the group's
// resource. It is written by whoever allocates, in Use, so that the group is not
// released meanwhile.
type groupHeader struct {
	chunkHeader
	last  uintptr // the newest chunk, 0 if it is the first
	bytes int     // of all chunks
	grow  int     // how large the next one is to be
}

// A chunkHeader begins each chunk.
type chunkHeader struct {
	next uintptr // the chunk after this one, or 0
}

const (
	groupHeaderSize = (unsafe.Sizeof(groupHeader{}) + quantum - 1) &^ (quantum - 1)
	chunkHeaderSize = (unsafe.Sizeof(chunkHeader{}) + quantum - 1) &^ (quantum - 1)
)

// Group returns a group, which has its first chunk. The errors are those of
// [NewMem].
func (m *Memory) Group() (*Group, error) {
	first := m.heap.Malloc(groupChunk)
	if first == nil {
		var err error
		if first, err = m.heap.TryMalloc(groupChunk); err != nil {
			return nil, m.groupError("Memory.Group", groupChunk, err)
		}
	}
	*(*groupHeader)(first) = groupHeader{bytes: groupChunk, grow: 2 * groupChunk}
	g := &Group{
		base:   uintptr(first) + groupHeaderSize,
		left:   groupChunk - int(groupHeaderSize),
		memory: m,
	}
	if err := m.groups.Own(&g.Owner, first, groupChunk); err != nil {
		m.heap.Free(first)
		return nil, err
	}
	g.state = &g.token.ledger.states[g.index]
	return g, nil
}

func (m *Memory) groupError(op string, size int, err error) error {
	return fmt.Errorf("cheap: own: %s: %d bytes: %w", op, size, err)
}

// Malloc returns a block of size bytes with undefined contents, or nil when the
// heap has no memory for it. A size of 0 gives a distinct block; a negative size
// panics, and so does a group that is closed.
func (g *Group) Malloc(size int) unsafe.Pointer {
	left := g.left
	if uint(size-1) >= uint(left) || atomic.LoadUint64(g.state)&stateOpen == 0 { // 0 and negative sizes are huge here
		p, _ := g.malloc("Malloc", size, quantum)
		return p
	}
	left = (left - size) &^ (quantum - 1)
	g.left = left
	return osmem.Pointer(g.base + uintptr(left)) // in the chunk
}

// TryMalloc is Malloc with an error instead of nil, which wraps
// [cheap.ErrNoMemory] or [cheap.ErrLimit].
func (g *Group) TryMalloc(size int) (unsafe.Pointer, error) {
	return g.malloc("TryMalloc", size, quantum)
}

// AlignedMalloc is Malloc of a block whose address is a multiple of align, a
// power of two. An align that is not one panics.
func (g *Group) AlignedMalloc(size, align int) unsafe.Pointer {
	if bits.OnesCount(uint(align)) != 1 || align < 0 {
		misuse("own.Group", "AlignedMalloc", "the alignment %d is no power of two", align)
	}
	p, _ := g.malloc("AlignedMalloc", size, max(align, quantum))
	return p
}

// Free does nothing: a block lives as long as its group. It is here because an
// Allocator has it.
func (g *Group) Free(ptr unsafe.Pointer) {}

// Destroy is Close, but returns [ErrDestroyed] if the group is closed already.
func (g *Group) Destroy() error {
	if g.Closed() {
		return ErrDestroyed
	}
	return g.Close()
}

// Use calls f. What is allocated from the group, before or by f, stays until f
// returns, whoever closes the group meanwhile; see [Owner.Use]. Use panics if
// the group is closed.
func (g *Group) Use(f func()) {
	t := g.use("Use")
	defer t.unuse(g.index)
	f()
}

// Size returns how many bytes the group has taken from the heap.
func (g *Group) Size() int { return g.size() }

// malloc is Malloc where there is something to look at.
func (g *Group) malloc(op string, size, align int) (unsafe.Pointer, error) {
	t := g.token
	if t == nil {
		misuse("own.Group", op, "the group was not made by Memory.Group")
	}
	if size < 0 {
		misuse("own.Group", op, "the size %d is negative", size)
	}
	// Nobody releases the group from here on, whatever the pool's Uses do.
	l, i := t.ledger, g.index
	l.enter(i, op)
	defer t.exit(i)
	size = max(size, 1)
	if p := g.cut(size, align); p != 0 {
		return osmem.Pointer(p), nil // in the chunk
	}
	if int64(size) > min(maxSize, math.MaxInt/2) || align > math.MaxInt/4 {
		return nil, g.memory.groupError("Group."+op, size, cheap.ErrNoMemory)
	}
	header := (*groupHeader)(osmem.Pointer(l.words[i])) // not released while in Use
	alone := int(chunkHeaderSize) + size + align - quantum
	chunk, bytes := unsafe.Pointer(nil), header.grow
	if alone <= bytes/4 {
		chunk = g.memory.heap.Malloc(bytes)
	}
	if chunk == nil {
		var err error
		if chunk, err = g.memory.heap.TryMalloc(alone); err != nil {
			return nil, g.memory.groupError("Group."+op, size, err)
		}
		bytes = alone
	}
	header.link(chunk, bytes)
	l.resize(i, header.bytes)
	at := uintptr(chunk) + chunkHeaderSize
	if bytes == alone {
		return osmem.Pointer((at + uintptr(align-1)) &^ uintptr(align-1)), nil // there is room for that
	}
	header.grow = min(2*bytes, mostChunk)
	g.base, g.left = at, bytes-int(chunkHeaderSize)
	return osmem.Pointer(g.cut(size, align)), nil // four times that would fit
}

// cut takes a block off the current chunk, or returns 0.
func (g *Group) cut(size, align int) uintptr {
	if size > g.left {
		return 0
	}
	left := g.left - size
	left -= int((g.base + uintptr(left)) & uintptr(align-1))
	if left < 0 {
		return 0
	}
	g.left = left
	return g.base + uintptr(left)
}

// link adds a chunk to the group.
func (h *groupHeader) link(chunk unsafe.Pointer, bytes int) {
	*(*chunkHeader)(chunk) = chunkHeader{}
	last := &h.chunkHeader
	if h.last != 0 {
		last = (*chunkHeader)(osmem.Pointer(h.last)) // as the first one, a chunk of this group
	}
	last.next = uintptr(chunk)
	h.last = uintptr(chunk)
	h.bytes += bytes
}

// freeGroups is the release function of groups: it gives their chunks back.
func freeGroups(h *cheap.Heap, groups []uintptr) {
	for _, chunk := range groups {
		for chunk != 0 {
			p := osmem.Pointer(chunk) // of a group whose release this is
			chunk = (*chunkHeader)(p).next
			h.Free(p)
		}
	}
}

// A noCopy has vet report copies of what contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
