package rivals

import (
	"unsafe"

	"modernc.org/memory"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

var moderncInfo = peers.Info{
	Name:  "modernc",
	About: "modernc.org/memory, an allocator in Go for one goroutine",
	Open:  openModernc,
}

// modernc replays on modernc.org/memory.
type modernc struct {
	alloc memory.Allocator
	hand  handmade // for alignments: the package has no call for them
}

func openModernc(int) (peers.Peer, error) {
	m := new(modernc)
	m.hand.malloc, m.hand.free = m.malloc, m.free
	return m, nil
}

// malloc asks for 1 byte instead of 0, because the answer to 0 is nil.
func (m *modernc) malloc(size int) unsafe.Pointer {
	ptr, err := m.alloc.UnsafeMalloc(max(size, 1))
	if err != nil {
		return nil
	}
	return ptr
}

func (m *modernc) calloc(size int) unsafe.Pointer {
	ptr, err := m.alloc.UnsafeCalloc(max(size, 1))
	if err != nil {
		return nil
	}
	return ptr
}

func (m *modernc) realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
	if begin, ok := m.hand.begins[ptr]; ok {
		behind := int(uintptr(ptr) - uintptr(begin))
		return m.hand.move(ptr, memory.UnsafeUsableSize(begin)-behind, size)
	}
	ptr, err := m.alloc.UnsafeRealloc(ptr, max(size, 1))
	if err != nil {
		return nil
	}
	return ptr
}

// free ignores the error: it is that of unmapping an empty page.
func (m *modernc) free(ptr unsafe.Pointer) { _ = m.alloc.UnsafeFree(ptr) }

func (m *modernc) Replay(ops []trace.Op, slots peers.Slots) *trace.Op {
	table := slots.Table()
	for op, last := peers.Ends(ops); ; op = peers.After(op) {
		var ptr unsafe.Pointer
		switch op.Kind {
		case trace.Malloc:
			ptr = m.malloc(op.Size)
		case trace.Free:
			m.free(m.hand.begin(table.At(op)))
			if op == last {
				return nil
			}
			continue
		case trace.Calloc:
			ptr = m.calloc(op.Size)
		case trace.Realloc:
			ptr = m.realloc(table.At(op), op.Size)
		case trace.Aligned:
			ptr = m.hand.aligned(op.Size, op.Align())
		}
		if !table.Put(op, ptr) {
			return op
		}
		if op == last {
			return nil
		}
	}
}

func (m *modernc) Trim() error  { return m.alloc.Trim() }
func (m *modernc) Close() error { return m.alloc.Close() }
