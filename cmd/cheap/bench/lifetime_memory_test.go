//go:build cgo && unix

package bench

import (
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
	"github.com/cheapgo/cheap/own"
)

var (
	memorySink *own.Mem[[cside.BlockSize]byte]
	groupSink  *own.Group
)

// newMemory returns a Memory over a heap of its own, and what a lifetime has to
// know about that. Both end with the test.
func newMemory(tb testing.TB) (*own.Memory, *lifetime, func()) {
	h, err := cheap.NewHeap(cheap.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	m := own.NewMemory(h, own.Options{Name: "bench.memory"})
	tb.Cleanup(func() {
		memorySink, groupSink = nil, nil
		if err := m.Destroy(time.Minute); err != nil {
			tb.Log(err) // what a last collection would have found
		}
		if err := h.Destroy(); err != nil {
			tb.Error(err)
		}
	})
	peak := int64(0)
	look := func() { peak = max(peak, h.Stats().Bytes) }
	return m, &lifetime{
		left: func() int { return int(h.Stats().Blocks) },
		peak: func() int64 { was := peak; peak = 0; return was },
	}, look
}

// looks is how many objects are made between two looks at the heap.
const looks = 4096

// byMemory forgets blocks of a Memory.
func byMemory(tb testing.TB) *lifetime {
	m, l, look := newMemory(tb)
	l.run = func(n int) {
		for i := range n {
			x, err := own.NewMem[[cside.BlockSize]byte](m)
			if err != nil {
				tb.Fatal(err)
			}
			memorySink = x
			if i%looks == 0 {
				look()
			}
		}
		memorySink = nil
	}
	return l
}

// byGroup forgets groups of sixteen blocks of 64 bytes. n is a number of blocks.
func byGroup(tb testing.TB) *lifetime {
	m, l, look := newMemory(tb)
	l.run = func(n int) {
		for i := range n / 16 {
			g, err := m.Group()
			if err != nil {
				tb.Fatal(err)
			}
			for range 16 {
				if g.Malloc(64) == nil {
					tb.Fatal("there is no memory")
				}
			}
			groupSink = g
			if i%looks == 0 {
				look()
			}
		}
		groupSink = nil
	}
	return l
}
