package own

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
)

var (
	memSink   *Mem[[100]byte]
	bytesSink *[100]byte
	groupSink *Group
)

// newHeap returns a heap in which nothing is left when the test ends.
func newHeap(t testing.TB) *cheap.Heap {
	t.Helper()
	h, err := cheap.NewHeap(cheap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(longest); h.Stats().Blocks != 0 && time.Now().Before(deadline); {
			runtime.GC()
			Flush(context.Background())
		}
		if err := h.Destroy(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// BenchmarkMemory makes blocks of 100 bytes.
func BenchmarkMemory(b *testing.B) {
	b.Run("end=forget", func(b *testing.B) {
		m := NewMemory(newHeap(b), Options{})
		for b.Loop() {
			x, err := NewMem[[100]byte](m)
			if err != nil {
				b.Fatal(err)
			}
			memSink = x
		}
		memSink = nil
	})
	b.Run("end=close", func(b *testing.B) {
		m := NewMemory(newHeap(b), Options{})
		for b.Loop() {
			x, err := NewMem[[100]byte](m)
			if err != nil {
				b.Fatal(err)
			}
			memSink = x
			x.Close()
		}
		memSink = nil
	})
	b.Run("end=go", func(b *testing.B) { // Go's own
		for b.Loop() {
			bytesSink = new([100]byte)
		}
	})
}

// BenchmarkGroup makes groups of 16 blocks of 64 bytes.
func BenchmarkGroup(b *testing.B) {
	b.Run("end=forget", func(b *testing.B) {
		m := NewMemory(newHeap(b), Options{})
		for b.Loop() {
			g, err := m.Group()
			if err != nil {
				b.Fatal(err)
			}
			for range 16 {
				g.Malloc(64)
			}
			groupSink = g
		}
		groupSink = nil
	})
	b.Run("end=close", func(b *testing.B) {
		m := NewMemory(newHeap(b), Options{})
		for b.Loop() {
			g, err := m.Group()
			if err != nil {
				b.Fatal(err)
			}
			for range 16 {
				g.Malloc(64)
			}
			groupSink = g
			g.Close()
		}
		groupSink = nil
	})
}
