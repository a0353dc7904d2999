package batch

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestEndWhole ends a dead batch of blocks as a whole only if no entry was closed, also not
// by a Close of the pool that has not released it yet, and if none has children.
func TestEndWhole(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the test finds the sentinels itself
	for _, row := range []struct {
		what  string
		do    func(b *Batch)
		whole bool
	}{
		{"nothing was closed", func(*Batch) {}, true},
		{"an entry is gone", func(b *Batch) { b.Shut(3); b.shut = false; b.Done(1, 10) }, false},
		{"CloseWait has closed an entry", func(b *Batch) { b.Shut(3) }, false},
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

// TestHammerSeal seals a batch again and again while a goroutine counts entries as released. What is
// in use then is the one entry that is not, whichever of the two counts an entry.
func TestHammerSeal(t *testing.T) {
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the test keeps the sentinel
	const n = 32
	rounds := int64(1_000_000) // at least one seal in some 100,000 is between the two steps of Done
	if testing.Short() || race.Build {
		rounds = 100_000
	}
	var k Spec
	b := New(&k, nil, nil, n, OneSentinel)
	sentinel := b.NewSentinels(nil, nil)[0]
	var asked, begun, over atomic.Int64
	reached := func(c *atomic.Int64, i int64) {
		for c.Load() < i {
			runtime.Gosched()
		}
	}
	go func() {
		for i := range rounds {
			reached(&asked, i+1)
			begun.Store(i + 1)
			for range n - 1 {
				b.Done(1, 10)
			}
			over.Store(i + 1)
		}
	}()
	for i := range rounds {
		b.gone.Store(0)
		asked.Store(i + 1)
		reached(&begun, i+1)
		b.Seal(sentinel, n, 10*n)
		reached(&over, i+1)
		if owners, bytes := k.Counts.Owners.Load(), k.Counts.Bytes.Load(); owners != i+1 || bytes != 10*(i+1) {
			t.Fatalf("round %d: %d owners of %d bytes are in use", i, owners, bytes)
		}
	}
	k.Count(int(-rounds), -10*rounds)
}

// TestLastChild looks at a closed parent while its last child goes. As soon as the child is gone the
// parent waits for nothing, so a Close of the pool that counts then waits for its release.
func TestLastChild(t *testing.T) {
	defer func(was bool) { Leak = was }(Leak)
	Leak = true // the test keeps the sentinels
	k := Spec{Releaser: direct{}, Release: func(any, []uintptr) error { return nil }}
	var list List
	one := func(f *Family) (*Batch, *Sentinel) {
		b := New(&k, nil, f, 1, OneSentinel)
		sentinel := b.NewSentinels(nil, nil)[0]
		b.Link(&list)
		b.Put(0, 1, 10, 0)
		b.Seal(sentinel, 1, 10)
		return b, sentinel
	}
	parent, parents := one(nil)
	f := parent.Family(0)
	f.Join()
	child, childs := one(f)
	if err := f.SetState(1); err != ErrChildren {
		t.Errorf("SetState of a parent: %v", err)
	}
	parents.Close(0)
	if err := f.SetState(1); err != ErrClosed {
		t.Errorf("SetState of a closed parent: %v", err)
	}
	f.children.mu.Lock() // holds up the end of the child's batch
	over := make(chan bool)
	go func() {
		childs.Close(0)
		close(over)
	}()
	for !child.Ended() {
		runtime.Gosched()
	}
	if inUse, waiting, others := Left([]*Batch{parent}); inUse+waiting != 0 || others != 1 {
		t.Errorf("%d are in use and %d wait for children; %d others, want 1", inUse, waiting, others)
	}
	f.children.mu.Unlock()
	<-over
	if !parent.Ended() {
		t.Error("the parent is not released")
	}
}
