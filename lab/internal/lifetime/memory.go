//go:build cgo && unix

package lifetime

import (
	"context"
	"errors"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/own"
)

//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var memorySink *own.Mem[[cside.BlockSize]byte]

//lint:ignore U1000 likewise
var groupSink *own.Group

// The number of blocks in a group, and their size.
const (
	GroupBlocks    = 16
	GroupBlockSize = 64
)

// objectsPerSample is how many objects are made between two samples of the heap's size.
const objectsPerSample = 4096

// A memory is a Memory over a separate heap, with counts of its blocks and groups.
type memory struct {
	*own.Memory
	heap *cheap.Heap
	made int
	peak int64
}

func newMemory() (*memory, error) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return nil, err
	}
	return &memory{Memory: own.NewMemory(h, own.MemoryOptions{Name: "bench.memory"}), heap: h}, nil
}

// count notes that the i-th object has been made.
func (m *memory) count(i int) {
	m.made++
	if i%objectsPerSample == 0 {
		m.peak = max(m.peak, m.heap.Stats().Bytes)
	}
}

// waiting returns how many objects are not collected.
func (m *memory) waiting() int { return m.made - int(m.Stats().Collected) }

// lifetime makes a Lifetime of m.
func (m *memory) lifetime(run func(n int)) *Lifetime {
	return &Lifetime{
		Run: run,
		// A collected block is freed first, and counted after that.
		Left:     func() int { return m.waiting() + int(m.heap.Stats().Blocks) },
		Released: func() int { return int(m.Stats().Collected) },
		Peak:     func() int64 { was := m.peak; m.peak = 0; return was },
		Close:    m.close,
	}
}

// close releases everything. That owners were never closed is not an error here.
func (m *memory) close() error {
	dropAll()
	err := m.CloseWait(context.Background())
	if never, ok := errors.AsType[*own.CloseError](err); ok && never.InUse+never.Waiting+never.Releasing+never.Queued == 0 {
		err = nil
	}
	return errors.Join(err, m.heap.Destroy())
}

// Memory forgets blocks of a Memory.
func Memory() (*Lifetime, error) {
	m, err := newMemory()
	if err != nil {
		return nil, err
	}
	return m.lifetime(func(n int) {
		for i := range n {
			x, err := own.NewMem[[cside.BlockSize]byte](m.Memory)
			must(err)
			memorySink = x
			m.count(i)
		}
		memorySink = nil
	}), nil
}

// Group forgets groups of blocks. It makes n blocks; the last group has the rest.
func Group() (*Lifetime, error) {
	m, err := newMemory()
	if err != nil {
		return nil, err
	}
	blocks := 0
	l := m.lifetime(func(n int) {
		blocks += n
		for i := 0; n > 0; i++ {
			g, err := m.NewGroup()
			must(err)
			for range min(n, GroupBlocks) {
				if g.Malloc(GroupBlockSize) == nil {
					panic("there is no memory")
				}
			}
			groupSink = g
			m.count(i)
			n -= GroupBlocks
		}
		groupSink = nil
	})
	l.Released = func() int { return blocks - m.waiting()*GroupBlocks } // none is negative once nothing waits
	return l, nil
}
