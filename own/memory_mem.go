package own

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/pointerfree"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// A Mem is a T in a block of a [Memory]. It is made by [NewMem]. Copies refer to the
// same block. Methods may be called from any goroutine.
type Mem[T any] struct {
	_ [0]*T // no conversion to a Mem of another type, which may be larger
	block
}

// NewMem returns a zeroed T, which is freed when the Mem is closed, or after it
// becomes unreachable. NewMem panics if a T contains Go pointers, as [cheap.New]
// does.
//
// The error wraps [cheap.ErrNoMemory] or [cheap.ErrLimit], or is
// [ErrPoolClosed].
func NewMem[T any](m *Memory) (*Mem[T], error) {
	if t := any((*T)(nil)); !pointerfree.Known(t) {
		mustBePointerFree("NewMem", t)
	}
	var zero T
	if unsafe.Sizeof(zero) <= intake.MostZeroed {
		if h, _ := m.blocks.CarveZeroed(int(unsafe.Sizeof(zero))); h != nil {
			return (*Mem[T])(h), nil // newOwners has made it as an owner
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
	x := (*Mem[T])(h) // newOwners has made it as an owner
	x.owner.filled()
	return x, nil
}

// mustBePointerFree takes a nil *T and panics if a T may contain Go pointers.
func mustBePointerFree(op string, ptr any) {
	if reason := pointerfree.Check(ptr); reason != "" {
		panicMisuse("own", op, "%s", reason)
	}
}

// Owner returns what names x as the parent of resources; see With.Parent.
func (x *Mem[T]) Owner() Owner { return x.owner.Owner() }

// Use calls f with the T, which stays valid until f returns, even if the Mem is
// closed meanwhile; see [Handle.Use]. f must not keep the pointer. Use panics if
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

// Get returns a pointer to the T, or nil if the Mem is closed. The pointer does not
// keep the Mem alive: an x.KeepAlive() must follow the last use of the pointer, or
// the T may be freed before that use. [Handle.Pointer] shows such a mistake.
// [Mem.Use] needs no KeepAlive.
func (x *Mem[T]) Get() *T { return (*T)(x.owner.pointer()) }

// KeepAlive marks the last use of a pointer of [Mem.Get]; see [Handle.KeepAlive].
func (x *Mem[T]) KeepAlive() { x.owner.KeepAlive() }

// Disown returns the T, which belongs to the caller from now on, and is freed by the
// Free of the Memory's heap. It returns [ErrShared] if the block shares a block of the
// heap with others. A block of MemoryOptions.Pinned bytes or more shares none, and
// with MemoryOptions.Batch 1 no block does. Other errors are those of [Handle.Disown].
func (x *Mem[T]) Disown() (*T, error) {
	p, err := x.owner.disownPointer()
	return (*T)(p), err
}
