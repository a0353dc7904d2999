package own

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/pointerfree"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/ledger"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A Memory hands out blocks of a heap that are freed after they become
// unreachable. A block comes as a [Mem], [Bytes], [String] or [Group], each of
// which is an [Owner]. It never comes as a bare pointer, slice or string,
// because these keep nothing alive. A Memory is made by [NewMemory]. Its methods
// may be called from any goroutine.
//
// The blocks of a batch are side by side in one block of the heap, a chunk of at
// most MemoryOptions.Pinned bytes. The chunk returns to the heap when all its blocks
// are closed or collected. Space within it is reused immediately only if the
// most recent block is closed first. A block of MemoryOptions.Pinned bytes or more is
// a block of the heap by itself, and so is every block if MemoryOptions.Batch is 1;
// such a block returns to the heap when it is closed or collected. For
// long-lived blocks that are dropped in arbitrary order, as in a cache, set
// MemoryOptions.Batch to 1 or to a small number.
//
// The heap counts the blocks: its Stats include them, and its limit applies to
// them. The heap must not be destroyed before the Memory.
type Memory struct {
	blocks, groups blocks
}

// blocks are the blocks of a Memory of one kind: those whose handles are Owners and
// nothing else, or groups.
type blocks struct {
	intake.Carver
	pool *Pool

	grown atomic.Int64 // bytes that groups have taken beyond their blocks
}

// memoryBatch is the default of MemoryOptions.Batch. That many blocks of 100
// bytes fill a chunk.
const memoryBatch = 512

// MemoryOptions configure a [Memory]. All fields may be zero.
type MemoryOptions struct {
	// Name is the name of the memory in panics and errors. The default is
	// "own.Memory".
	Name string

	// Batch is the largest number of live blocks that share a registration with the
	// collector and a chunk of the heap. 0 means 512; at most 65,536 are allowed. 1
	// makes each block a block of the heap by itself.
	Batch int

	// Pinned is the largest size of a chunk in bytes. 0 means 64 KiB. One live block
	// can delay the release of at most this many bytes of unreachable blocks. A block
	// of this size or more is a block of the heap by itself.
	Pinned int

	// Unshared makes Use cheaper; see Options.Unshared.
	Unshared bool

	// Trace records the stack that made each block; see Options.Trace.
	Trace bool

	// OnCollect is called when the collector, not Close, caused a release; see
	// Options.OnCollect.
	OnCollect func(Collected)
}

// NewMemory returns a Memory with blocks of h, or of [cheap.Default] if h is
// nil. It panics with a [cheap.MisuseError] if an option is out of range.
func NewMemory(h *cheap.Heap, o MemoryOptions) *Memory {
	if h == nil {
		h = cheap.Default()
	}
	all := Options{
		Name:      cmp.Or(o.Name, "own.Memory"),
		Batch:     cmp.Or(o.Batch, memoryBatch),
		Pinned:    o.Pinned,
		Unshared:  o.Unshared,
		Trace:     o.Trace,
		OnCollect: o.OnCollect,
	}
	m := new(Memory)
	b := &m.blocks
	b.init(h, all)
	b.NewHandles, b.Stride = newOwners, unsafe.Sizeof(Owner{})
	m.initGroups(h, all)
	return m
}

// init makes a pool for blocks of h.
func (b *blocks) init(h *cheap.Heap, o Options) {
	b.pool = newPool(o, func(format string, args ...any) { panicMisuse("own", "NewMemory", format, args...) })
	b.Heap, b.Workers, b.In = h, worker.NewCall(0), &b.pool.intake
	k := &b.pool.kind
	k.Heap, k.Sink = h, b
	k.Release = func(any, []uintptr) error { return nil } // blocks return to the heap with their chunk
	b.In.Init(k, nil, nil)
	b.pool.noteMade()
}

// Destroy is [Pool.Destroy] for the Memory's blocks and groups. The heap itself
// is not destroyed. A block that is in Use is freed when its last Use returns.
// All other blocks are invalid when Destroy returns.
func (m *Memory) Destroy(ctx context.Context) error {
	groups := m.groups.pool.Destroy(ctx)
	blocks := m.blocks.pool.Destroy(ctx)
	var g, b *DestroyError
	if !errors.As(groups, &g) || !errors.As(blocks, &b) {
		return cmp.Or(blocks, groups)
	}
	b.NeverClosed += g.NeverClosed
	b.InUse += g.InUse
	b.Waiting += g.Waiting
	b.Releasing += g.Releasing
	b.cause = cmp.Or(b.cause, g.cause)
	b.Origins = append(b.Origins, g.Origins...)
	sortOrigins(b.Origins)
	return b
}

// Stats returns the Memory's counters, of blocks and groups together. Bytes is
// the sum of the sizes that blocks were requested with and of the bytes that
// groups took from the heap. See [Pool.Stats].
func (m *Memory) Stats() Stats {
	st, g := m.blocks.pool.Stats(), m.groups.pool.Stats()
	st.Live += g.Live
	st.Bytes += g.Bytes + m.groups.grown.Load()
	st.Collected += g.Collected
	return st
}

// A Mem is a T in a block of a [Memory]. It is made by [NewMem].
//
// Its Owner has Close and Closed. Disown succeeds if the block is a block of the
// heap by itself; the caller then frees it there. Otherwise Disown returns
// [ErrCarved].
type Mem[T any] struct{ Owner }

// Bytes is a block of a [Memory] as a slice of bytes, whose length does not
// change. It is made by [Memory.Bytes]. Its Owner is as that of a [Mem].
type Bytes struct{ Owner }

// A String is an unchanging string in a block of a [Memory]. It is made by
// [Memory.String]. Its Owner is as that of a [Mem].
type String struct{ Owner }

// The handles of a batch are in one array of Owners. One reachable handle keeps
// the whole array, which refers to the token only, as each handle does anyway. So
// each kind of handle is an Owner and nothing else.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Mem[[100]byte]{})-unsafe.Sizeof(Owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Bytes{})-unsafe.Sizeof(Owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(String{})-unsafe.Sizeof(Owner{})]
)

// newOwners returns n Owners of a batch.
func newOwners(t *ledger.Token, n uint32) unsafe.Pointer {
	all := make([]Owner, n)
	for i := range all {
		all[i].ref = ledger.RefTo(t, uint32(i))
	}
	return unsafe.Pointer(&all[0])
}

// filled ends the Use that a block begins with. Until the contents are written,
// a Destroy must not free the block.
func (o *Owner) filled() { o.ref.Token().Exit(o.ref.Index) }

// NewMem returns a zeroed T, which is freed when the Mem is closed, or after it
// becomes unreachable. NewMem panics if a T contains Go pointers, as [cheap.New]
// does.
//
// The error wraps [cheap.ErrNoMemory] or [cheap.ErrLimit], or is
// [ErrDestroyed].
func NewMem[T any](m *Memory) (*Mem[T], error) {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		mustBePointerFree("NewMem", t)
	}
	var zero T
	h, block := m.blocks.Carve(int(unsafe.Sizeof(zero)), ledger.OneUse)
	if h == nil {
		var err error
		if h, _, err = m.blocks.CarveSlow("NewMem", int(unsafe.Sizeof(zero)), ledger.OneUse, true); err != nil {
			return nil, err
		}
	} else {
		// The block has that size.
		clear(unsafe.Slice((*byte)(osmem.Pointer(block)), unsafe.Sizeof(zero)))
	}
	x := (*Mem[T])(h) // newOwners has made it as an Owner
	x.filled()
	return x, nil
}

// mustBePointerFree takes a nil *T and panics if a T may contain Go pointers.
func mustBePointerFree(op string, ptr any) {
	if reason := pointerfree.Check(ptr); reason != "" {
		panicMisuse("own", op, "%s", reason)
	}
}

// Bytes returns n zeroed bytes, which are freed when the result is closed, or
// after it becomes unreachable. Bytes panics if n is negative. The errors are
// those of [NewMem].
func (m *Memory) Bytes(n int) (*Bytes, error) {
	h, block := m.blocks.Carve(n, ledger.OneUse)
	if h == nil {
		var err error
		if h, _, err = m.blocks.CarveSlow("Bytes", n, ledger.OneUse, true); err != nil {
			return nil, err
		}
	} else {
		clear(unsafe.Slice((*byte)(osmem.Pointer(block)), n)) // the block has n bytes
	}
	b := (*Bytes)(h) // newOwners has made it as an Owner
	b.filled()
	return b, nil
}

// String returns a copy of s, which is freed when the result is closed, or after
// it becomes unreachable. The errors are those of [NewMem].
func (m *Memory) String(s string) (*String, error) {
	h, at := m.blocks.Carve(len(s), ledger.OneUse)
	block := osmem.Pointer(at)
	if h == nil {
		var err error
		if h, block, err = m.blocks.CarveSlow("String", len(s), ledger.OneUse, false); err != nil {
			return nil, err
		}
	}
	copy(unsafe.Slice((*byte)(block), len(s)), s) // the block has len(s) bytes
	x := (*String)(h)                             // newOwners has made it as an Owner
	x.filled()
	return x, nil
}

// Use calls f with the T, which stays valid until f returns, even if the Mem is
// closed meanwhile; see [Owner.Use]. f must not keep the pointer. Use panics if
// the Mem is closed.
func (x *Mem[T]) Use(f func(*T)) {
	t := x.use("Use")
	defer unuse(t, x.ref.Index)
	f((*T)(t.Ledger.Pointer(x.ref.Index)))
}

// Get returns a pointer to the T, or nil if the Mem is closed. The pointer does
// not keep the Mem alive: without a runtime.KeepAlive(x) after the last use of
// the pointer the T may be freed before. [Owner.Resource] shows such a mistake.
// [Mem.Use] needs no KeepAlive.
func (x *Mem[T]) Get() *T { return (*T)(x.Resource()) }

// Use calls f with the bytes, which stay valid until f returns, even if the
// Bytes are closed meanwhile; see [Owner.Use]. f must not keep the slice. Use
// panics if the Bytes are closed.
func (b *Bytes) Use(f func([]byte)) {
	t := b.use("Use")
	defer unuse(t, b.ref.Index)
	f(bytesOf(t.Ledger, b.ref.Index))
}

// Get returns the bytes, or nil if they are closed. The slice does not keep b
// alive: a runtime.KeepAlive(b) must follow the last use of the slice. See
// [Mem.Get].
func (b *Bytes) Get() []byte {
	t := b.ref.Token()
	if t == nil || t.Ledger.State(b.ref.Index)&ledger.Open == 0 {
		return nil
	}
	return bytesOf(t.Ledger, b.ref.Index)
}

// Len returns the number of bytes, or 0 if they are closed.
func (b *Bytes) Len() int { return b.size() }

// Use calls f with the string, which stays valid until f returns, even if the
// String is closed meanwhile; see [Owner.Use]. f must not keep the string, nor a
// part of it. Use panics if the String is closed.
func (s *String) Use(f func(string)) {
	t := s.use("Use")
	defer unuse(t, s.ref.Index)
	b := bytesOf(t.Ledger, s.ref.Index)
	f(unsafe.String(unsafe.SliceData(b), len(b)))
}

// String returns a copy of the string in Go memory, which the caller may keep.
// It panics if the String is closed.
func (s *String) String() string {
	t := s.use("String")
	defer unuse(t, s.ref.Index)
	return string(bytesOf(t.Ledger, s.ref.Index))
}

// Len returns the length of the string in bytes, or 0 if the String is closed.
func (s *String) Len() int { return s.size() }

// size returns the size of an open owner's resource.
func (o *Owner) size() int {
	if t := o.ref.Token(); t != nil {
		if s := t.Ledger.State(o.ref.Index); s&ledger.Open != 0 {
			return int(ledger.SizeOf(s))
		}
	}
	return 0
}

// bytesOf returns the block of an entry. Its size does not change.
func bytesOf(l *ledger.Ledger, i uint32) []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(l.Words[i])), ledger.SizeOf(l.State(i)))
}
