package trap

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// Both queues keep the values that were put last. Only one has failed Mallocs.
func TestQueue(t *testing.T) {
	const limit, budget = 8 << 20, 4 << 20
	for _, c := range []struct {
		name   string
		budget int64
		fails  bool
	}{{"budget", budget, false}, {"nil", 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: limit})
			testcall.Must(t, err)
			q := New(heap, c.budget)
			const puts = 20_000
			for n := range puts {
				data := make([]byte, 100+n%1000)
				data[0] = byte(n)
				if !q.Put(data) {
					t.Fatalf("no room for value %d", n)
				}
			}
			t.Logf("%d values, %d failed Mallocs", q.Len(), q.Failed)
			if (q.Failed > 0) != c.fails || q.Len() < budget/2000 || c.budget > 0 && heap.Stats().Bytes > c.budget {
				t.Errorf("%d failed Mallocs, %d values, %d bytes", q.Failed, q.Len(), heap.Stats().Bytes)
			}
			for i, v := range q.values[q.head:] {
				if got, want := *(*byte)(cheap.Pointer(v.addr)), byte(puts-q.Len()+i); got != want {
					t.Fatalf("value %d of %d is of put %d, want %d, modulo 256", i, q.Len(), got, want)
				}
			}
			q.Clear()
			if err := heap.Destroy(); err != nil || q.Len() != 0 || q.used != 0 {
				t.Errorf("after Clear: %d values, %d bytes, Destroy: %v", q.Len(), q.used, err)
			}
		})
	}
}

func TestNoRoom(t *testing.T) {
	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: 1 << 20})
	testcall.Must(t, err)
	q := New(heap, 0)
	if !q.Put(make([]byte, 100)) || q.Put(make([]byte, 2<<20)) {
		t.Error("a value of twice the limit has room")
	}
	if q.Len() != 0 || q.Failed != 2 {
		t.Errorf("%d values, %d failed Mallocs, want 0, 2", q.Len(), q.Failed)
	}
	testcall.Want(t, heap.Destroy())
}
