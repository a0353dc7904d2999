package batch

import (
	"testing"

	"github.com/cheapgo/cheap"
)

// TestEndWhole ends a dead batch of blocks as a whole only if no entry was closed, also not
// by a Destroy that has not released it yet, and if none has children.
func TestEndWhole(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the test finds the sentinels itself
	for _, row := range []struct {
		what  string
		do    func(b *Batch)
		whole bool
	}{
		{"nothing was closed", func(*Batch) {}, true},
		{"an entry is gone", func(b *Batch) { b.Shut(3); b.shut = false; b.Done(1, 10) }, false},
		{"Destroy has closed an entry", func(b *Batch) { b.Shut(3) }, false},
		{"an entry may have children", func(b *Batch) { b.Family(3) }, false},
	} {
		k := Spec{Heap: h}
		b := New(&k, nil, nil, 8, OneSentinel)
		sentinels := b.NewSentinels(nil, nil)
		for i := range 5 {
			b.Put(i, uintptr(1+i), 10, 0)
		}
		b.Seal(sentinels[0], 5, 50)
		row.do(b)
		b.mu.Lock()
		b.dead, b.unreachable = true, true
		b.mu.Unlock()
		before, _ := b.Gone()
		if whole := b.EndWhole(); whole != row.whole {
			t.Errorf("%s: it ends as a whole: %v", row.what, whole)
		}
		want, left, collected := before, 5-before, 0
		if row.whole {
			want, left, collected = 5, 0, 5
		}
		if n, _ := b.Gone(); n != want {
			t.Errorf("%s: %d are gone, want %d", row.what, n, want)
		}
		c := &k.Counts
		if c.Owners.Load() != int64(left) || c.Bytes.Load() != int64(10*left) || c.Collected.Load() != int64(collected) {
			t.Errorf("%s: %d live of %d bytes, %d collected", row.what, c.Owners.Load(), c.Bytes.Load(), c.Collected.Load())
		}
		k.Count(-left, -int64(10*left))
	}
}
