package own

import (
	"cmp"
	"errors"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/pointerfree"
)

// A Memory hands out blocks of a heap that are given back by themselves. What it
// returns, a [Mem], [Bytes], [String] or [Group], is an [Owner], and never a bare
// pointer, slice or string: these keep nothing alive. It is made by
// [NewMemory], and may be used from any goroutine.
//
// The blocks of a batch lie side by side in one block of the heap, at most
// Options.Pinned bytes, and come back together: the memory of one that is
// forgotten or closed is used again when the last of its batch-mates is gone. A
// block that is closed before another is made, on the same P, makes room at
// once. A block that is as large as Options.Pinned, and each where
// Options.Batch is 1, is a block of the heap by itself, and goes back to it at
// once. So whoever keeps many and drops them in no order, as a cache does,
// wants a Batch of 1, or a small one.
//
// The heap counts the blocks, so that its Stats and its Limit are those of the
// Memory as well. It must not be destroyed before the Memory.
type Memory struct {
	blocks, groups carver
}

// ErrCarved says that memory is not the owner's to hand out: a part of one of the
// heap's blocks, or a Group. Copy what is in it.
var ErrCarved = errors.New("cheap: own: the memory is shared with others and cannot be disowned; copy it")

// NewMemory returns a Memory with blocks of h, or of cheap.Default if h is nil.
//
// Of the options it takes Name, Batch, which is 512 if left out, Pinned,
// Unshared, Trace and OnCollect. The others are for resources of other kinds,
// and panic.
func NewMemory(h *cheap.Heap, o Options) *Memory {
	var wrong []string
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"Release", o.Release != nil},
		{"Destructor", o.Destructor != nil},
		{"NoCallback", o.NoCallback},
		{"Construct", o.Construct != nil},
		{"Words", o.Words != 0},
		{"Size", o.Size != 0},
		{"Drain", o.Drain},
		{"MaxQueued", o.MaxQueued != 0},
		{"Parent", o.Parent != nil},
	} {
		if option.set {
			wrong = append(wrong, "Options."+option.name)
		}
	}
	if wrong != nil {
		misuse("own", "NewMemory", "blocks go back to their heap; %s must be left out", strings.Join(wrong, " and "))
	}
	if h == nil {
		h = cheap.Default()
	}
	if o.Name == "" {
		o.Name = "own.Memory"
	}
	if o.Batch == 0 {
		o.Batch = memoryBatch
	}
	m := new(Memory)
	m.blocks.init(h, o)
	m.blocks.stride, m.blocks.newHandle, m.blocks.newHandles = ownerSize, func() *Owner { return new(Owner) }, newOwners
	m.groups.init(h, o)
	m.groups.stride, m.groups.newHandle, m.groups.newHandles = groupSize, func() *Owner { return &new(Group).Owner }, newGroups
	return m
}

// Destroy is [Pool.Destroy] for what is left of the Memory's blocks and groups.
// The heap stays. Blocks that are in Use still come back when the last Use
// returns; all others must not be touched any more.
func (m *Memory) Destroy(wait time.Duration) error {
	deadline := time.Now().Add(wait)
	groups := m.groups.pool.Destroy(wait)
	blocks := m.blocks.pool.Destroy(time.Until(deadline))
	var g, b *DestroyError
	if !errors.As(groups, &g) || !errors.As(blocks, &b) {
		return cmp.Or(blocks, groups)
	}
	b.NeverClosed += g.NeverClosed
	b.InUse += g.InUse
	b.Waiting += g.Waiting
	b.Releasing += g.Releasing
	b.Origins = append(b.Origins, g.Origins...)
	sortOrigins(b.Origins)
	return b
}

// Stats reads the Memory's counters, as [Pool.Stats] does: of blocks and groups
// together. Bytes are those that were asked for, and what groups have taken.
func (m *Memory) Stats() Stats {
	st, g := m.blocks.pool.Stats(), m.groups.pool.Stats()
	st.Live += g.Live
	st.Bytes += g.Bytes + m.groups.chained.Load()
	st.Collected += g.Collected
	return st
}

// A Mem is a T in a block of a [Memory]. It is made by [NewMem].
//
// Its Owner has Close and Closed. Disown works where the block is one of the
// heap's by itself, to be freed there, and returns [ErrCarved] otherwise.
type Mem[T any] struct{ Owner }

// Bytes are a block of a [Memory] of a length that does not change. They are
// made by [Memory.Bytes]. See [Mem] for what their Owner does.
type Bytes struct{ Owner }

// A String is a string in a block of a [Memory], and does not change. It is made
// by [Memory.String]. See [Mem] for what its Owner does.
type String struct{ Owner }

// The handles of a batch lie in one array, as Owners: whoever reaches one keeps
// the array, which refers to nothing but the token that the handle refers to
// anyway. So all kinds of handle are an Owner and nothing else.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Mem[[100]byte]{})-unsafe.Sizeof(Owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Bytes{})-unsafe.Sizeof(Owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(String{})-unsafe.Sizeof(Owner{})]
)

// filled ends the Use that a block begins with: as long as its contents are not
// there, a Destroy must not give it back.
func (o *Owner) filled() { o.token.exit(o.index) }

// NewMem returns a T, all zero, that is given back when the result is closed or
// cannot be reached any more. A T that contains Go pointers panics, as in
// [cheap.New].
//
// The error wraps [cheap.ErrNoMemory] or [cheap.ErrLimit], or is
// [ErrDestroyed].
func NewMem[T any](m *Memory) (*Mem[T], error) {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		checkPointerFree("NewMem", t)
	}
	var zero T
	o, block := m.blocks.carve(int(unsafe.Sizeof(zero)), oneUse)
	if o == nil {
		var err error
		if o, _, err = m.blocks.carveSlow("NewMem", int(unsafe.Sizeof(zero)), oneUse, true); err != nil {
			return nil, err
		}
	} else {
		clear(unsafe.Slice((*byte)(osmem.Pointer(block)), unsafe.Sizeof(zero))) // it has as many
	}
	o.filled()
	return (*Mem[T])(unsafe.Pointer(o)), nil
}

// checkPointerFree takes a nil *T and panics if a T may contain Go pointers.
func checkPointerFree(op string, ptr any) {
	if reason := pointerfree.Check(ptr); reason != "" {
		misuse("own", op, "%s", reason)
	}
}

// Bytes returns n bytes, all zero, that are given back when the result is closed
// or cannot be reached any more. Errors are those of [NewMem]; a negative n
// panics.
func (m *Memory) Bytes(n int) (*Bytes, error) {
	o, block := m.blocks.carve(n, oneUse)
	if o == nil {
		var err error
		if o, _, err = m.blocks.carveSlow("Bytes", n, oneUse, true); err != nil {
			return nil, err
		}
	} else {
		clear(unsafe.Slice((*byte)(osmem.Pointer(block)), n)) // it has as many
	}
	o.filled()
	return (*Bytes)(unsafe.Pointer(o)), nil
}

// String returns a copy of s that is given back when the result is closed or
// cannot be reached any more. Errors are those of [NewMem].
func (m *Memory) String(s string) (*String, error) {
	o, at := m.blocks.carve(len(s), oneUse)
	block := osmem.Pointer(at)
	if o == nil {
		var err error
		if o, block, err = m.blocks.carveSlow("String", len(s), oneUse, false); err != nil {
			return nil, err
		}
	}
	copy(unsafe.Slice((*byte)(block), len(s)), s) // it has as many
	o.filled()
	return (*String)(unsafe.Pointer(o)), nil
}

// Use calls f with the T, which stays where it is until f returns, whoever
// closes it meanwhile; see [Owner.Use]. The pointer is not to be kept beyond f.
// Use panics if the Mem is closed.
func (x *Mem[T]) Use(f func(*T)) {
	t := x.use("Use")
	defer t.unuse(x.index)
	f((*T)(t.ledger.pointer(x.index)))
}

// Get returns a pointer to the T, or nil if the Mem is closed. The pointer keeps
// nothing alive: after its last use there has to be a runtime.KeepAlive(x), or
// the T may be gone before. See [Owner.Resource] for a program that lacks it,
// and [Mem.Use], which needs none.
func (x *Mem[T]) Get() *T { return (*T)(x.Resource()) }

// Use calls f with the bytes, which stay where they are until f returns, whoever
// closes them meanwhile; see [Owner.Use]. The slice is not to be kept beyond f.
// Use panics if the Bytes are closed.
func (b *Bytes) Use(f func([]byte)) {
	t := b.use("Use")
	defer t.unuse(b.index)
	f(t.ledger.bytes(b.index))
}

// Get returns the bytes, or nil if they are closed. The slice keeps nothing
// alive: after its last use there has to be a runtime.KeepAlive(b). See
// [Mem.Get].
func (b *Bytes) Get() []byte {
	t := b.token
	if t == nil || t.ledger.state(b.index)&stateOpen == 0 {
		return nil
	}
	return t.ledger.bytes(b.index)
}

// Len returns how many bytes there are, 0 if they are closed.
func (b *Bytes) Len() int { return b.size() }

// Use calls f with the string, which stays where it is until f returns, whoever
// closes it meanwhile; see [Owner.Use]. The string, and what is sliced off it,
// is not to be kept beyond f. Use panics if the String is closed.
func (s *String) Use(f func(string)) {
	t := s.use("Use")
	defer t.unuse(s.index)
	b := t.ledger.bytes(s.index)
	f(unsafe.String(unsafe.SliceData(b), len(b)))
}

// String returns a copy of the string, in Go memory, which may be kept. It
// panics if the String is closed.
func (s *String) String() string {
	t := s.use("String")
	defer t.unuse(s.index)
	return string(t.ledger.bytes(s.index))
}

// Len returns the length of the string in bytes, 0 if it is closed.
func (s *String) Len() int { return s.size() }

// use begins a Use, which t.unuse ends, and returns the token. It panics if the
// owner is closed.
func (o *Owner) use(op string) (t *token) {
	if t = o.token; t == nil {
		useOfNothing(op)
	}
	switch l := t.ledger; {
	case !l.pool.unshared:
		l.enter(o.index, op)
	case l.state(o.index)&stateOpen == 0:
		l.useAfterClose(op)
	}
	return t
}

// unuse is to be deferred: what was done in between may panic or end its
// goroutine.
func (t *token) unuse(i uint32) {
	if !t.ledger.pool.unshared {
		t.exit(i)
	}
	runtime.KeepAlive(t)
}

// size returns the size of an open owner's resource.
func (o *Owner) size() int {
	if t := o.token; t != nil {
		if s := t.ledger.state(o.index); s&stateOpen != 0 {
			return int(sizeOf(s))
		}
	}
	return 0
}

// bytes returns the block of an entry. Its size does not change.
func (l *ledger) bytes(i uint32) []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(l.words[i])), sizeOf(l.state(i)))
}
