package cache

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// newCache returns a cache. At the end of the test it closes the cache, and the
// test fails if a block was not freed.
func newCache(t testing.TB, o Options) *Cache {
	t.Helper()
	c, err := New(o)
	testcall.Must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil && err != ErrClosed {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// put puts a value, and ends the test if that fails.
func put(t testing.TB, c *Cache, key uint64, value []byte) {
	t.Helper()
	if err := c.Put(key, value); err != nil {
		t.Fatalf("Put of %d bytes: %v", len(value), err)
	}
}

// want compares the results of Get and View with a value.
func want(t testing.TB, c *Cache, key uint64, value string, ok bool) {
	t.Helper()
	got, found := c.Get([]byte("before "), key)
	if string(got) != "before "+value || found != ok {
		t.Errorf("Get of key %d: %q, %v, want %q, %v", key, got, found, "before "+value, ok)
	}
	seen := ""
	if found := c.View(key, func(v []byte) { seen = string(v) }); seen != value || found != ok {
		t.Errorf("View of key %d: %q, %v, want %q, %v", key, seen, found, value, ok)
	}
}

// check compares the parts of a cache with each other, and with its heap.
func (c *Cache) check(t testing.TB) {
	t.Helper()
	var blocks, bytes int64
	for n := range c.shards {
		s := &c.shards[n]
		s.Lock()
		ring, handSeen := 0, s.hand == 0
		var used int64
		for i := s.queue[0].newer; i != 0; i = s.queue[i].newer {
			p := s.queue[i]
			v := s.index[p.key]
			ring++
			used += v.usable()
			handSeen = handSeen || s.hand == i
			if v.place != i || s.queue[p.newer].older != i || s.queue[p.older].newer != i {
				t.Fatalf("shard %d: place %d is %+v; the index has %+v", n, i, p, v)
			}
			if p.older != 0 && v.expires < s.index[s.queue[p.older].key].expires {
				t.Fatalf("shard %d: place %d expires before an older one", n, i)
			}
			if c.shard(p.key) != s {
				t.Fatalf("shard %d has key %d, which is of another", n, p.key)
			}
			if got := c.heap.UsableSize(cheap.Pointer(v.addr)); int64(got) != v.usable() {
				t.Fatalf("a value of %d bytes counts as %d, and its block has %d", v.size, v.usable(), got)
			}
		}
		unused := 0
		for i := s.unused; i != 0; i = s.queue[i].newer {
			unused++
		}
		if len(s.visited) != (len(s.queue)+31)/32 {
			t.Fatalf("shard %d: %d words of bits for %d places", n, len(s.visited), len(s.queue))
		}
		if ring != len(s.index) || 1+ring+unused != len(s.queue) || !handSeen {
			t.Fatalf("shard %d: %d in the queue, %d in the index, %d unused, %d places; the hand is at %d",
				n, ring, len(s.index), unused, len(s.queue), s.hand)
		}
		if used != s.used || used > s.budget {
			t.Fatalf("shard %d uses %d bytes, counts %d, may use %d", n, used, s.used, s.budget)
		}
		blocks += int64(ring)
		bytes += used
		s.Unlock()
	}
	if h := c.heap.Stats(); h.Blocks != blocks || h.Bytes != bytes || h.Held > h.Limit {
		t.Fatalf("the heap has %d blocks of %d bytes, holds %d of %d; the cache has %d blocks of %d",
			h.Blocks, h.Bytes, h.Held, h.Limit, blocks, bytes)
	}
}

// budgetFor returns the budget for a number of values of a size.
func budgetFor(values, size int) int64 { return int64(values) * int64(cheap.GoodSize(size)) }
