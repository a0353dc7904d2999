package replay

import (
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// A fake allocator allocates from one piece of Go memory, from its start on, and
// never reuses it. It makes the given mistake.
type fake struct {
	mem     []byte
	next    int
	sizes   []int
	mistake string
	log     *[]string // what was called, by name
	name    string
}

// info returns a fake of some bytes under a name.
func (f fake) info() peers.Info {
	mem := make([]byte, 1<<16)
	for i := range mem {
		mem[i] = 0xff
	}
	align := -uintptr(unsafe.Pointer(&mem[0])) & 4095
	return peers.Info{Name: f.name, Open: func(slots int) (peers.Peer, error) {
		p := f
		p.mem = mem[align : align+1<<15]
		p.sizes = make([]int, slots)
		return &p, nil
	}}
}

func (f *fake) take(size, align int) []byte {
	if f.mistake != "misaligned" {
		f.next = (f.next + align - 1) &^ (align - 1)
	}
	begin := f.next
	if f.next += size; f.next > len(f.mem) {
		return nil
	}
	if f.mistake == "overlap" {
		f.next--
	}
	return f.mem[begin : begin+size]
}

func (f *fake) Replay(ops []trace.Op, slots peers.Slots) *trace.Op {
	if f.log != nil {
		*f.log = append(*f.log, f.name)
	}
	for i, op := range ops {
		if op.Kind == trace.Free {
			continue
		}
		align := 16
		if op.Kind == trace.Aligned && f.mistake != "unaligned" {
			align = op.Align()
		}
		block := f.take(op.Size, align)
		if block == nil {
			return &ops[i]
		}
		switch {
		case op.Kind == trace.Calloc && f.mistake != "dirty":
			clear(block)
		case op.Kind == trace.Realloc:
			n := min(op.Size, f.sizes[op.Slot])
			if f.mistake == "lossy" {
				n--
			}
			offset := slots[op.Slot] - uintptr(unsafe.Pointer(&f.mem[0]))
			copy(block, f.mem[offset:][:n])
		}
		slots[op.Slot] = uintptr(unsafe.Pointer(unsafe.SliceData(block)))
		f.sizes[op.Slot] = op.Size
	}
	return nil
}

func (f *fake) Trim() error { return nil }

func (f *fake) Close() error {
	if f.log != nil {
		*f.log = append(*f.log, "close "+f.name)
	}
	return nil
}
