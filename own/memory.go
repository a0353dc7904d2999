package own

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// A Memory hands out blocks of a heap that are freed after they become
// unreachable. A block comes as a [Mem], [Bytes] or [Group], each of
// which has an owner inside. It never comes as a bare pointer, slice or string,
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
	blocks, groups blockPool
}

// A blockPool makes the groups of a Memory, or its other blocks, whose handles are Owners
// and nothing else.
type blockPool struct {
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
	b.NewHandles, b.Stride = newOwners, unsafe.Sizeof(owner{})
	m.initGroups(h, all)
	return m
}

// init makes a pool for blocks of h, which is a part of m.
func (b *blockPool) init(m *Memory, h *cheap.Heap, o Options) {
	b.pool = newPool(o, func(format string, args ...any) { panicMisuse("own", "NewMemory", format, args...) })
	b.Heap, b.Workers, b.In = h, worker.NewDispatcher(0, false), &b.pool.intake
	k := &b.pool.spec
	k.Heap, k.Holder, k.Releaser = h, nil, b
	k.Release = func(any, []uintptr) error { return nil } // blocks return to the heap with their chunk
	b.In.Init(k, nil, nil)
	b.pool.noteMade(m)
}

// Close is [Memory.CloseWait] that does not wait.
func (m *Memory) Close() error { return m.close("Close", noWait) }

// CloseWait is [Pool.CloseWait] for the Memory's blocks and groups. The heap itself
// is not destroyed. A block that is in Use is freed when its last Use returns.
// All other blocks are invalid when CloseWait returns.
func (m *Memory) CloseWait(ctx context.Context) error { return m.close("CloseWait", ctx) }

func (m *Memory) close(op string, ctx context.Context) error {
	groups := m.groups.pool.close(op, ctx)
	blocks := m.blocks.pool.close(op, ctx)
	var g, b *CloseError
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

// A block is what a [Mem] and [Bytes] have in common.
type block struct{ owner owner }

// Close frees the block; see [Handle.Close]. The error is always nil.
func (b *block) Close() error { return b.owner.Close() }

// Closed reports whether the block is freed, or will be after its last Use.
func (b *block) Closed() bool { return b.owner.Closed() }

// The handles of a batch are in one array of owners. One reachable handle keeps
// the whole array, which refers to the sentinel only, as each handle does anyway. So
// each kind of handle is an owner and nothing else.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Mem[[100]byte]{})-unsafe.Sizeof(owner{})]
	_ = [1]struct{}{}[unsafe.Sizeof(Bytes{})-unsafe.Sizeof(owner{})]
)

// newOwners returns n owners of a batch.
func newOwners(t *batch.Sentinel, n uint32) unsafe.Pointer {
	all := make([]owner, n)
	for i := range all {
		all[i].ref = batch.RefTo(t, uint32(i))
	}
	return unsafe.Pointer(&all[0])
}

// filled ends the Use that a block begins with. Until the contents are written,
// a Close of the Memory must not free the block.
func (o *owner) filled() { o.ref.Sentinel().Exit(o.ref.Index) }
