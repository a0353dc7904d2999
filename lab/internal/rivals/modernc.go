package rivals

import (
	"unsafe"

	"modernc.org/memory"

	"github.com/cheapgo/cheap/internal/replay/peers"
)

var moderncInfo = peers.Info{
	Name:  "modernc",
	About: "modernc.org/memory, an allocator in Go for one goroutine",
	Open:  openModernc,
}

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o modernc_loop.go ../../../internal/replay/loop.tmpl package=rivals peers=peers. type=*modernc alloc=p free=a.free(a.hand.begin(table.At(op)))

// modernc replays on modernc.org/memory.
type modernc struct {
	alloc memory.Allocator
	hand  handmade // for alignments: the package has no call for them
}

func openModernc(int) (peers.Peer, error) {
	m := new(modernc)
	m.hand.malloc, m.hand.free = m.Malloc, m.free
	return m, nil
}

// Malloc asks for 1 byte instead of 0, because the answer to 0 is nil.
func (m *modernc) Malloc(size int) unsafe.Pointer {
	ptr, err := m.alloc.UnsafeMalloc(max(size, 1))
	if err != nil {
		return nil
	}
	return ptr
}

func (m *modernc) Calloc(_, size int) unsafe.Pointer {
	ptr, err := m.alloc.UnsafeCalloc(max(size, 1))
	if err != nil {
		return nil
	}
	return ptr
}

func (m *modernc) Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer {
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

func (m *modernc) AlignedMalloc(size, align int) unsafe.Pointer { return m.hand.aligned(size, align) }

// free ignores the error: it is that of unmapping an empty page.
func (m *modernc) free(ptr unsafe.Pointer) { _ = m.alloc.UnsafeFree(ptr) }

func (m *modernc) Trim() error  { return m.alloc.Trim() }
func (m *modernc) Close() error { return m.alloc.Close() }
