package own

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// Bytes is a block of a [Memory] as a slice of bytes, whose length does not
// change. It is made by [Memory.NewBytes]. A string is copied to the slice, and the
// slice converted back. Copies refer to the same block. Methods may be called from
// any goroutine.
type Bytes struct{ block }

// NewBytes returns n zeroed bytes, which are freed when the result is closed, or
// after it becomes unreachable. NewBytes panics if n is negative. The errors are
// those of [NewMem].
func (m *Memory) NewBytes(n int) (*Bytes, error) {
	if h, _ := m.blocks.CarveZeroed(n); h != nil {
		return (*Bytes)(h), nil // newOwners has made it as an owner
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
	b := (*Bytes)(h) // newOwners has made it as an owner
	b.owner.filled()
	return b, nil
}

// Owner returns what names b as the parent of resources; see With.Parent.
func (b *Bytes) Owner() Owner { return b.owner.Owner() }

// Use calls f with the bytes, which stay valid until f returns, even if the
// Bytes are closed meanwhile; see [Handle.Use]. f must not keep the slice. Use
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

// KeepAlive marks the last use of a slice of [Bytes.Get]; see [Handle.KeepAlive].
func (b *Bytes) KeepAlive() { b.owner.KeepAlive() }

// Disown returns the bytes, which belong to the caller from now on; see [Mem.Disown].
func (b *Bytes) Disown() ([]byte, error) {
	n := b.Len()
	p, err := b.owner.disownPointer()
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil // Len was n until Disown closed b
}

// Len returns the number of bytes, or 0 if they are closed.
func (b *Bytes) Len() int { return b.owner.size() }

// size returns the size of an open owner's resource.
func (o *owner) size() int {
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
