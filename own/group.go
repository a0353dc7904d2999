package own

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/account"
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
// A Group begins with room for 1 KiB in the chunk of its batch, and takes more
// from the heap when that is used up: 2 KiB, and twice as much each time, up to
// 64 KiB; a block that is large for that is taken by itself. What it took goes
// back when the group is closed, its first room with the batch, as blocks of
// the Memory do. A batch whose groups have grown beyond Options.Pinned takes no
// more.
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
}

var _ cheap.AlignedAllocator = (*Group)(nil)

const (
	groupRoom  = 1 << 10  // at first
	firstGrow  = 2 << 10  // the chunk after that
	mostGrow   = 64 << 10 // the largest for many blocks
	groupBlock = groupRoom + int(groupHeaderSize)
)

// A groupHeader begins the block of a group, whose address is the group's
// resource. It is there once the state says so (stateChain), and is written by
// whoever allocates, in Use, so that the group is not released meanwhile.
type groupHeader struct {
	newest uintptr // chunk
	bytes  int     // of all chunks
	grow   int     // how large the next one is to be
}

// A chunkHeader begins each chunk.
type chunkHeader struct {
	next uintptr // the chunk before this one, or 0
}

const (
	groupHeaderSize = (unsafe.Sizeof(groupHeader{}) + quantum - 1) &^ (quantum - 1)
	chunkHeaderSize = (unsafe.Sizeof(chunkHeader{}) + quantum - 1) &^ (quantum - 1)
)

// Groups of a batch lie side by side, behind their token, as Owners do: see
// newOwners. A Group refers to the token, and to the states of the ledger to
// which the token refers: so one of them, still alive, keeps nothing but these.
func newGroups(n uint32) (*token, unsafe.Pointer) {
	all := make([]Group, groupCovers+int(n))
	return (*token)(unsafe.Pointer(&all[0])), unsafe.Pointer(&all[groupCovers])
}

const (
	groupSize   = unsafe.Sizeof(Group{})
	groupCovers = int((unsafe.Sizeof(token{}) + groupSize - 1) / groupSize)
)

// A handle begins with its Owner.
var _ = [1]struct{}{}[unsafe.Offsetof(Group{}.Owner)]

// Group returns a new group. The errors are those of [NewMem].
func (m *Memory) Group() (*Group, error) {
	o, block := m.groups.carve(groupBlock, stateGroup)
	if o == nil {
		var p unsafe.Pointer
		var err error
		if o, p, err = m.groups.carveSlow("Group", groupBlock, stateGroup, false); err != nil {
			return nil, err
		}
		block = uintptr(p)
	}
	g := (*Group)(unsafe.Pointer(o)) // as newGroups has made it
	g.base, g.left = block+groupHeaderSize, groupRoom
	g.state = &o.token.ledger.states[o.index]
	return g, nil
}

// Malloc returns a block of size bytes with undefined contents, or nil when the
// heap has no memory for it. A size of 0 gives a distinct block; a negative size
// panics, and so does a group that is closed.
func (g *Group) Malloc(size int) unsafe.Pointer {
	left := g.left
	if uint(size-1) >= uint(left) || atomic.LoadUint64(g.state)&stateOpen == 0 { // 0 and negative sizes are huge here
		p, _ := g.malloc("Group.Malloc", size, quantum)
		return p
	}
	left = (left - size) &^ (quantum - 1)
	g.left = left
	return osmem.Pointer(g.base + uintptr(left)) // in the chunk
}

// TryMalloc is Malloc with an error instead of nil, which wraps
// [cheap.ErrNoMemory] or [cheap.ErrLimit].
func (g *Group) TryMalloc(size int) (unsafe.Pointer, error) {
	return g.malloc("Group.TryMalloc", size, quantum)
}

// AlignedMalloc is Malloc of a block whose address is a multiple of align, a
// power of two. An align that is not one panics.
func (g *Group) AlignedMalloc(size, align int) unsafe.Pointer {
	if align <= 0 || align&(align-1) != 0 {
		misuse("own.Group", "AlignedMalloc", "the alignment %d is no power of two", align)
	}
	p, _ := g.malloc("Group.AlignedMalloc", size, max(align, quantum))
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
	t := g.use("Group.Use")
	defer t.unuse(g.index)
	f()
}

// Size returns how many bytes the group has taken, 0 if it is closed. It may not
// be called while somebody else allocates or closes.
func (g *Group) Size() int {
	if g.Closed() {
		return 0
	}
	if atomic.LoadUint64(g.state)&stateChain == 0 {
		return groupBlock
	}
	return groupBlock + (*groupHeader)(g.Resource()).bytes
}

// malloc is Malloc where there is something to look at.
func (g *Group) malloc(op string, size, align int) (unsafe.Pointer, error) {
	t := g.token
	if t == nil || t.ledger.pool.carver == nil {
		misuse("own", op, "the group was not made by Memory.Group")
	}
	l, i := t.ledger, g.index
	c := l.pool.carver
	if size < 0 {
		misuse(l.pool.name, op, "the size %d is negative", size)
	}
	defer account.Notify()
	// Nobody releases the group from here on, whatever the program says of Use.
	l.enter(i, op)
	defer t.exit(i)
	size = max(size, 1)
	if p := g.cut(size, align); p != 0 {
		return osmem.Pointer(p), nil // in the chunk
	}
	if int64(size) > min(maxSize, math.MaxInt/2) || align > math.MaxInt/4 {
		return nil, c.noMemory(op, size, cheap.ErrNoMemory)
	}
	h := (*groupHeader)(l.pointer(i)) // not given back while in Use
	if l.state(i)&stateChain == 0 {
		*h = groupHeader{grow: firstGrow}
	}
	chunk, bytes := unsafe.Pointer(nil), h.grow
	alone := int(chunkHeaderSize) + size + align - quantum
	if alone <= bytes/4 {
		chunk = c.heap.Malloc(bytes)
	}
	if chunk == nil {
		var err error
		if chunk, err = c.heap.TryMalloc(alone); err != nil {
			return nil, c.noMemory(op, size, err)
		}
		bytes = alone
	}
	g.link(h, chunk, bytes)
	at := uintptr(chunk) + chunkHeaderSize
	if bytes == alone {
		return osmem.Pointer((at + uintptr(align-1)) &^ uintptr(align-1)), nil // there is room for that
	}
	h.grow = min(2*bytes, mostGrow)
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

// link adds a chunk to the group, which is in Use.
func (g *Group) link(h *groupHeader, chunk unsafe.Pointer, bytes int) {
	l := g.token.ledger
	*(*chunkHeader)(chunk) = chunkHeader{next: h.newest}
	h.newest = uintptr(chunk)
	h.bytes += bytes
	atomic.OrUint64(g.state, stateChain)
	l.pool.carver.chained.Add(int64(bytes))
	account.TakeAuto(int64(bytes))
	if grown := l.chained.Add(int64(bytes)); !l.exact && grown > l.pool.pinned && grown-int64(bytes) <= l.pool.pinned {
		l.retire()
	}
}

// freeChain gives the chunks of a group back.
func (l *ledger) freeChain(i uint32) {
	c := l.pool.carver
	h := *(*groupHeader)(l.pointer(i)) // it is the caller's to release
	for next := h.newest; next != 0; {
		p := osmem.Pointer(next)
		next = (*chunkHeader)(p).next
		c.heap.Free(p)
	}
	c.chained.Add(-int64(h.bytes))
	account.GiveAuto(int64(h.bytes))
}

// A noCopy has vet report copies of what contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
