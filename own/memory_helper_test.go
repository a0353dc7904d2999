package own

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// newHeap returns a heap in which nothing is left when the test ends.
func newHeap(t testing.TB) *cheap.Heap {
	t.Helper()
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	return heapUntilEnd(t, h)
}

func heapUntilEnd(t testing.TB, h *cheap.Heap) *cheap.Heap {
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		mustBeEmpty(t, h)
		testcall.Want(t, h.Destroy())
	})
	return h
}

// mustBeEmpty collects until all blocks of the heap are back.
func mustBeEmpty(t testing.TB, h *cheap.Heap) {
	t.Helper()
	collect(t, "the blocks of the heap", func() bool { return h.Stats().Blocks == 0 })
}

func newBytes(t testing.TB, m *Memory, n int) *Bytes {
	t.Helper()
	b, err := m.NewBytes(n)
	testcall.Must(t, err)
	return b
}

func newMem[T any](t testing.TB, m *Memory) *Mem[T] {
	t.Helper()
	x, err := NewMem[T](m)
	testcall.Must(t, err)
	return x
}

// address is where a block lies.
func (o *owner) address() uintptr { return uintptr(o.pointer()) }

// onProcs sets GOMAXPROCS and returns the old value. It collects before, because
// the runtime forgets cleanups that the sweeper has just found on a P that is
// removed, until there is such a P again.
func onProcs(n int) (was int) {
	runtime.GC()
	return runtime.GOMAXPROCS(n)
}

// quietly runs f on one P and without collections, so that it stays in one shard
// and its batch is not sealed.
func quietly(t *testing.T, f func()) {
	t.Helper()
	defer onProcs(onProcs(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	gc(t) // none is under way
	gc(t)
	f()
}

// inLargeBatch has the next block of m on this P begin a batch of more than a
// hundred, with a chunk of about 16 bytes for each. It returns the size of the
// chunk.
func inLargeBatch(t *testing.T, m *Memory) (chunk int) {
	for {
		b := newBytes(t, m, 0)
		if n := int(b.owner.ref.Sentinel().Batch.Size()); n > 100 && int(b.owner.ref.Index) == n-1 {
			return (2*n + 1) * 16 // its batch is full, and the next one has twice as many
		}
	}
}

// heldByPools returns the bytes in the account of all pools.
func heldByPools() int64 {
	all := account.Process.List()
	return all[slices.IndexFunc(all, func(u account.Usage) bool { return u.Name == "own" })].Held
}
