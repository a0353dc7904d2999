package own

import (
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var (
	memSink   *Mem[[100]byte]
	bytesSink *[100]byte
	groupSink *Group
)

// BenchmarkMemory makes blocks of 100 bytes.
func BenchmarkMemory(b *testing.B) {
	b.Run("end=forget", func(b *testing.B) {
		m := NewMemory(newHeap(b), MemoryOptions{})
		for b.Loop() {
			x, err := NewMem[[100]byte](m)
			testcall.Must(b, err)
			memSink = x
		}
		memSink = nil
	})
	b.Run("end=close", func(b *testing.B) {
		m := NewMemory(newHeap(b), MemoryOptions{})
		for b.Loop() {
			x, err := NewMem[[100]byte](m)
			testcall.Must(b, err)
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
		m := NewMemory(newHeap(b), MemoryOptions{})
		for b.Loop() {
			g, err := m.NewGroup()
			testcall.Must(b, err)
			for range 16 {
				g.Malloc(64)
			}
			groupSink = g
		}
		groupSink = nil
	})
	b.Run("end=close", func(b *testing.B) {
		m := NewMemory(newHeap(b), MemoryOptions{})
		for b.Loop() {
			g, err := m.NewGroup()
			testcall.Must(b, err)
			for range 16 {
				g.Malloc(64)
			}
			groupSink = g
			g.Close()
		}
		groupSink = nil
	})
}
