package replay

import (
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A mapper is an allocator that maps each block, touches all of it, and unmaps
// it when it is freed. It keeps what it is told to keep.
type mapper struct {
	keep   bool
	trim   int               // bytes that Trim maps
	blocks map[uint32][]byte // by slot
	freed  [][]byte          // that were kept
}

func (m *mapper) Replay(ops []trace.Op, _ peers.Slots) *trace.Op {
	for i, op := range ops {
		switch op.Kind {
		case trace.Malloc:
			mem, err := syscall.Mmap(-1, 0, op.Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				return &ops[i]
			}
			for at := 0; at < len(mem); at += 4096 {
				mem[at] = 1
			}
			m.blocks[op.Slot] = mem
		case trace.Free:
			if m.keep {
				m.freed = append(m.freed, m.blocks[op.Slot])
			} else {
				syscall.Munmap(m.blocks[op.Slot])
			}
		}
	}
	return nil
}

// Trim maps memory if it is told to.
func (m *mapper) Trim() error {
	if m.trim > 0 {
		m.Replay([]trace.Op{{Kind: trace.Malloc, Slot: 2, Size: m.trim}}, nil)
		m.freed = append(m.freed, m.blocks[2])
	}
	return nil
}

func (m *mapper) Close() error {
	for _, mem := range m.freed {
		syscall.Munmap(mem)
	}
	return nil
}

func TestMeasureMemory(t *testing.T) {
	const block = 8 << 20
	tr := &trace.Trace{Slots: 2, Ops: []trace.Op{
		{Kind: trace.Malloc, Slot: 0, Size: block},
		{Kind: trace.Malloc, Slot: 1, Size: block},
		{Kind: trace.Free, Slot: 0},
		{Kind: trace.Malloc, Slot: 0, Size: 4096}, // the other is freed at the end
	}}
	for _, c := range []struct {
		keep        bool
		trim        int
		peak, final int64
	}{
		{false, 0, 2 * block, 0},
		{true, 0, 2 * block, 2 * block},
		{false, 3 * block, 3 * block, 3 * block},
	} {
		m, err := MeasureMemory(tr, peers.Info{Name: "mapper", Open: func(int) (peers.Peer, error) {
			return &mapper{keep: c.keep, trim: c.trim, blocks: make(map[uint32][]byte)}, nil
		}})
		testcall.Must(t, err)
		const slack = 1 << 20 // the test binary may need a little itself
		if m.Peak < c.peak-slack || m.Peak > c.peak+slack {
			t.Errorf("%+v: the peak is %d", c, m.Peak)
		}
		if m.Final < c.final-slack || m.Final > c.final+slack {
			t.Errorf("%+v: the final is %d", c, m.Final)
		}
	}
}

func TestStretch(t *testing.T) {
	ops := make([]trace.Op, 100)
	ops[70].Size = sampleSize
	var got []int
	for rest := ops; len(rest) > 0; {
		n := stretch(rest, 64)
		got = append(got, n)
		rest = rest[n:]
	}
	if want := []int{64, 7, 29}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("samples follow %v operations, want %v", got, want)
	}
}
