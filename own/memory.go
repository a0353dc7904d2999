package own

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/pointerfree"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A Memory hands out blocks of a heap that are freed after they become
// unreachable. A block comes as a [Mem], [Bytes], [String] or [Group], each of
// which has an [Owner] inside. It never comes as a bare pointer, slice or string,
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
	b.init(m, h, all)
	b.NewHandles, b.Stride = newOwners, unsafe.Sizeof(Owner{})
	m.initGroups(h, all)
	return m
}

// init makes a pool for blocks of h, which is a part of m.
func (b *blocks) init(m *Memory, h *cheap.Heap, o Options) {
	b.pool = newPool(o, func(format string, args ...any) { panicMisuse("own", "NewMemory", format, args...) })
	b.Heap, b.Workers, b.In = h, worker.NewDispatcher(0, false), &b.pool.intake
	k := &b.pool.spec
	k.Heap, k.Holder, k.Releaser = h, nil, b
	k.Release = func(any, []uintptr) error { return nil } // blocks return to the heap with their chunk
	b.In.Init(k, nil, nil)
	b.pool.noteMade(m)
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
	b.Labels = append(b.Labels, g.Labels...)
	slices.Sort(b.Labels)
	b.Labels = slices.Compact(b.Labels)
	return b
}

// Stats returns the Memory's counters, of blocks and groups together. Bytes is
// the sum of the sizes that blocks were requested with and of the bytes that
// groups took from the heap. See [Pool.Stats].
func (m *Memory) Stats() Stats {
	return m.blocks.pool.Stats().plus(m.groups.pool.Stats())
}

// A Mem is a T in a block of a [Memory]. It is made by [NewMem]. Copies refer to the
// same block. Methods may be called from any goroutine.
type Mem[T any] struct{ owner Owner }

// Bytes is a block of a [Memory] as a slice of bytes, whose length does not
// change. It is made by [Memory.NewBytes]. Copies refer to the same block. Methods may
// be called from any goroutine.
type Bytes struct{ owner Owner }

// A String is an unchanging string in a block of a [Memory]. It is made by
// [Memory.NewString]. Copies refer to the same block. Methods may be called from any
// goroutine.
type String struct{ owner Owner }

// The handles of a batch are in one array of Owners. One reachable handle keeps
// the whole array, which refers to the sentinel only, as each handle does anyway. So
// each kind of handle is an Owner and nothing else.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Mem[[100]byte]{})-unsafe.Sizeof(Owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Bytes{})-unsafe.Sizeof(Owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(String{})-unsafe.Sizeof(Owner{})]
)

// newOwners returns n Owners of a batch.
func newOwners(t *batch.Sentinel, n uint32) unsafe.Pointer {
	all := make([]Owner, n)
	for i := range all {
		all[i].ref = batch.RefTo(t, uint32(i))
	}
	return unsafe.Pointer(&all[0])
}

// filled ends the Use that a block begins with. Until the contents are written,
// a Destroy must not free the block.
func (o *Owner) filled() { o.ref.Sentinel().Exit(o.ref.Index) }

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
	if unsafe.Sizeof(zero) <= intake.MostZeroed {
		if h, _ := m.blocks.CarveZeroed(int(unsafe.Sizeof(zero))); h != nil {
			return (*Mem[T])(h), nil // newOwners has made it as an Owner
		}
	}
	h, block := m.blocks.Carve(int(unsafe.Sizeof(zero)), batch.OneUse)
	if h == nil {
		var err error
		if h, _, err = m.blocks.CarveSlow("NewMem", int(unsafe.Sizeof(zero)), batch.OneUse, true); err != nil {
			return nil, err
		}
	} else {
		// The block has that size.
		clear(unsafe.Slice((*byte)(osmem.Pointer(block)), unsafe.Sizeof(zero)))
	}
	x := (*Mem[T])(h) // newOwners has made it as an Owner
	x.owner.filled()
	return x, nil
}

// mustBePointerFree takes a nil *T and panics if a T may contain Go pointers.
func mustBePointerFree(op string, ptr any) {
	if reason := pointerfree.Check(ptr); reason != "" {
		panicMisuse("own", op, "%s", reason)
	}
}

// NewBytes returns n zeroed bytes, which are freed when the result is closed, or
// after it becomes unreachable. NewBytes panics if n is negative. The errors are
// those of [NewMem].
func (m *Memory) NewBytes(n int) (*Bytes, error) {
	if h, _ := m.blocks.CarveZeroed(n); h != nil {
		return (*Bytes)(h), nil // newOwners has made it as an Owner
	}
	h, block := m.blocks.Carve(n, batch.OneUse)
	if h == nil {
		var err error
		if h, _, err = m.blocks.CarveSlow("NewBytes", n, batch.OneUse, true); err != nil {
			return nil, err
		}
	} else {
		clear(unsafe.Slice((*byte)(osmem.Pointer(block)), n)) // the block has n bytes
	}
	b := (*Bytes)(h) // newOwners has made it as an Owner
	b.owner.filled()
	return b, nil
}

// NewString returns a copy of s, which is freed when the result is closed, or after
// it becomes unreachable. The errors are those of [NewMem].
func (m *Memory) NewString(s string) (*String, error) {
	h, at := m.blocks.Carve(len(s), batch.OneUse)
	block := osmem.Pointer(at)
	if h == nil {
		var err error
		if h, block, err = m.blocks.CarveSlow("NewString", len(s), batch.OneUse, false); err != nil {
			return nil, err
		}
	}
	copy(unsafe.Slice((*byte)(block), len(s)), s) // the block has len(s) bytes
	x := (*String)(h)                             // newOwners has made it as an Owner
	x.owner.filled()
	return x, nil
}

// Close frees the block; see [Owner.Close]. The error is always nil.
func (x *Mem[T]) Close() error { return x.owner.Close() }

// Closed reports whether the block is freed, or will be after its last Use.
func (x *Mem[T]) Closed() bool { return x.owner.Closed() }

// Owner returns the Owner in x, as a parent of resources: see [Pool.OwnUnder].
func (x *Mem[T]) Owner() *Owner { return &x.owner }

// Use calls f with the T, which stays valid until f returns, even if the Mem is
// closed meanwhile; see [Owner.Use]. f must not keep the pointer. Use panics if
// the Mem is closed.
func (x *Mem[T]) Use(f func(*T)) {
	t := x.owner.use("Use")
	defer unuse(t, x.owner.ref.Index)
	f((*T)(t.Pointer(x.owner.ref.Index)))
}

// TryUse is [Mem.Use] that returns [ErrClosed], without a call of f, if the Mem is
// closed. Else it returns the error of f.
func (x *Mem[T]) TryUse(f func(*T) error) error {
	t := x.owner.tryUse("TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, x.owner.ref.Index)
	return f((*T)(t.Pointer(x.owner.ref.Index)))
}

// Get returns a pointer to the T, or nil if the Mem is closed. The pointer does
// not keep the Mem alive: without an x.KeepAlive() after the last use of
// the pointer the T may be freed before. [Owner.Resource] shows such a mistake.
// [Mem.Use] needs no KeepAlive.
func (x *Mem[T]) Get() *T { return (*T)(x.owner.Resource()) }

// KeepAlive marks the last use of a pointer of [Mem.Get]; see [Owner.KeepAlive].
func (x *Mem[T]) KeepAlive() { x.owner.KeepAlive() }

// Disown returns the T, which belongs to the caller from now on, and is freed by the
// Free of the Memory's heap. It returns [ErrShared] if the block shares a block of the
// heap with others, which is so for all but those of MemoryOptions.Pinned bytes or
// more, unless MemoryOptions.Batch is 1. Other errors are those of [Owner.Disown].
func (x *Mem[T]) Disown() (*T, error) {
	p, err := x.owner.Disown()
	return (*T)(p), err
}

// Close frees the block; see [Owner.Close]. The error is always nil.
func (b *Bytes) Close() error { return b.owner.Close() }

// Closed reports whether the block is freed, or will be after its last Use.
func (b *Bytes) Closed() bool { return b.owner.Closed() }

// Owner returns the Owner in b, as a parent of resources: see [Pool.OwnUnder].
func (b *Bytes) Owner() *Owner { return &b.owner }

// Use calls f with the bytes, which stay valid until f returns, even if the
// Bytes are closed meanwhile; see [Owner.Use]. f must not keep the slice. Use
// panics if the Bytes are closed.
func (b *Bytes) Use(f func([]byte)) {
	t := b.owner.use("Use")
	defer unuse(t, b.owner.ref.Index)
	f(bytesOf(t.Batch, b.owner.ref.Index))
}

// TryUse is [Bytes.Use] that returns [ErrClosed], without a call of f, if the Bytes are
// closed. Else it returns the error of f.
func (b *Bytes) TryUse(f func([]byte) error) error {
	t := b.owner.tryUse("TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, b.owner.ref.Index)
	return f(bytesOf(t.Batch, b.owner.ref.Index))
}

// Get returns the bytes, or nil if they are closed. The slice does not keep b
// alive: a b.KeepAlive() must follow the last use of the slice. See [Mem.Get].
func (b *Bytes) Get() []byte {
	t := b.owner.open()
	if t == nil {
		return nil
	}
	return bytesOf(t.Batch, b.owner.ref.Index)
}

// KeepAlive marks the last use of a slice of [Bytes.Get]; see [Owner.KeepAlive].
func (b *Bytes) KeepAlive() { b.owner.KeepAlive() }

// Disown returns the bytes, which belong to the caller from now on; see [Mem.Disown].
func (b *Bytes) Disown() ([]byte, error) {
	n := b.Len()
	p, err := b.owner.Disown()
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil // Len was n until Disown closed b
}

// Len returns the number of bytes, or 0 if they are closed.
func (b *Bytes) Len() int { return b.owner.size() }

// Close frees the block; see [Owner.Close]. The error is always nil.
func (s *String) Close() error { return s.owner.Close() }

// Closed reports whether the block is freed, or will be after its last Use.
func (s *String) Closed() bool { return s.owner.Closed() }

// Use calls f with the string, which stays valid until f returns, even if the
// String is closed meanwhile; see [Owner.Use]. f must not keep the string, nor a
// part of it. Use panics if the String is closed.
func (s *String) Use(f func(string)) {
	t := s.owner.use("Use")
	defer unuse(t, s.owner.ref.Index)
	f(stringOf(t.Batch, s.owner.ref.Index))
}

// TryUse is [String.Use] that returns [ErrClosed], without a call of f, if the String is
// closed. Else it returns the error of f.
func (s *String) TryUse(f func(string) error) error {
	t := s.owner.tryUse("TryUse")
	if t == nil {
		return ErrClosed
	}
	defer unuse(t, s.owner.ref.Index)
	return f(stringOf(t.Batch, s.owner.ref.Index))
}

// String returns a copy of the string in Go memory, which the caller may keep, or ""
// if the String is closed.
func (s *String) String() (text string) {
	s.TryUse(func(t string) error { // the error says that it is closed
		text = strings.Clone(t)
		return nil
	})
	return text
}

// Len returns the length of the string in bytes, or 0 if the String is closed.
func (s *String) Len() int { return s.owner.size() }

// size returns the size of an open owner's resource.
func (o *Owner) size() int {
	if t := o.ref.Sentinel(); t != nil {
		if s := t.Batch.State(o.ref.Index); s&batch.Open != 0 {
			return int(batch.SizeOf(s))
		}
	}
	return 0
}

// bytesOf returns the block of an entry. Its size does not change.
func bytesOf(b *batch.Batch, i uint32) []byte {
	return unsafe.Slice((*byte)(osmem.Pointer(b.Word(i))), batch.SizeOf(b.State(i)))
}

func stringOf(l *batch.Batch, i uint32) string {
	b := bytesOf(l, i)
	return unsafe.String(unsafe.SliceData(b), len(b))
}
