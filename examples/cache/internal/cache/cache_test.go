package cache

import (
	"container/list"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cheapgo/cheap"
)

func TestPutGet(t *testing.T) {
	c := newCache(t, Options{Budget: 1 << 20})
	want(t, c, 1, "", false)
	put(t, c, 1, []byte("one"))
	put(t, c, 2, nil)
	put(t, c, 0, []byte("zero"))
	want(t, c, 1, "one", true)
	want(t, c, 2, "", true)
	want(t, c, 0, "zero", true)
	put(t, c, 1, []byte(strings.Repeat("longer", 100)))
	want(t, c, 1, strings.Repeat("longer", 100), true)
	if !c.Delete(1) || c.Delete(1) {
		t.Error("Delete of a key that was there, and then was not")
	}
	want(t, c, 1, "", false)
	if s := c.Stats(); s.Values != 2 || s.Heap.Blocks != 2 || s.Bytes != s.Heap.Bytes {
		t.Errorf("Stats: %+v, want two values", s)
	}
	c.check(t)
}

// The cache has a copy: a later change of the caller's slice does not change it.
func TestPutCopies(t *testing.T) {
	c := newCache(t, Options{Budget: 1 << 20})
	value := []byte("value")
	put(t, c, 1, value)
	value[0] = 'V'
	want(t, c, 1, "value", true)
	got, _ := c.Get(nil, 1)
	got[0] = 'V'
	want(t, c, 1, "value", true)
}

func TestTooLarge(t *testing.T) {
	c := newCache(t, Options{Budget: 4096, Shards: 1})
	put(t, c, 1, []byte("small"))
	if err := c.Put(1, make([]byte, 4097)); err != ErrTooLarge {
		t.Errorf("Put of more than the budget: %v", err)
	}
	want(t, c, 1, "", false) // and not the old value
	put(t, c, 1, make([]byte, 4096))
	c.check(t)
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {Budget: -1}, {Budget: 63}, {Budget: 1 << 20, Shards: 3}, {Budget: 1 << 20, Shards: -4},
		{Budget: 1 << 20, Limit: 1 << 19}, {Budget: 1 << 20, TTL: -1},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "cache: New: ") {
					t.Errorf("New of %+v: panic %v", o, r)
				}
			}()
			New(o)
		}()
	}
}

func TestClose(t *testing.T) {
	c := newCache(t, Options{Budget: 1 << 20})
	for key := range uint64(1000) {
		put(t, c, key, make([]byte, 300))
	}
	c.check(t)
	if err := c.Close(); err != nil { // it fails if a block was not freed
		t.Fatal(err)
	}
	want(t, c, 1, "", false)
	if err := c.Put(1, nil); err != ErrClosed {
		t.Errorf("Put after Close: %v", err)
	}
	if c.Delete(1) {
		t.Error("Delete after Close")
	}
	c.Expire()
	if s := c.Stats(); s.Values != 0 || s.Bytes != 0 || s.Heap != (cheap.Stats{}) {
		t.Errorf("Stats after Close: %+v", s)
	}
	if err := c.Close(); err != ErrClosed {
		t.Errorf("second Close: %v", err)
	}
}

// The clock of a bubble stands still between calls of Sleep.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, Options{Budget: 1 << 20, TTL: time.Minute, Shards: 1})
		put(t, c, 1, []byte("one"))
		put(t, c, 2, []byte("two"))
		time.Sleep(time.Minute - time.Nanosecond)
		want(t, c, 1, "one", true)
		put(t, c, 2, []byte("two again"))
		time.Sleep(time.Nanosecond)
		want(t, c, 1, "", false)
		want(t, c, 2, "two again", true)
		if s := c.Stats(); s.Values != 2 || s.Expired != 0 {
			t.Errorf("before a Put: %+v", s)
		}
		put(t, c, 3, []byte("three")) // frees the first
		if s := c.Stats(); s.Values != 2 || s.Expired != 1 || s.Evicted != 0 {
			t.Errorf("after it: %+v", s)
		}
		c.check(t)
		time.Sleep(time.Hour)
		if c.Delete(3) {
			t.Error("Delete of what has expired")
		}
		put(t, c, 4, []byte("four"))
		time.Sleep(time.Hour)
		c.Expire()
		if s := c.Stats(); s.Values != 0 || s.Expired != 4 || s.Heap.Blocks != 0 {
			t.Errorf("after Expire: %+v", s)
		}
	})
}

func TestNoTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, Options{Budget: 1 << 20})
		put(t, c, 1, []byte("one"))
		time.Sleep(200 * 365 * 24 * time.Hour)
		c.Expire()
		want(t, c, 1, "one", true)
	})
}

// The heap never holds more than the limit, even if the limit is the budget and
// all sizes change. The cache then evicts more, and works on.
func TestBackstop(t *testing.T) {
	const budget = 16 << 20
	c := newCache(t, Options{Budget: budget, Limit: budget})
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 8192)
	refused, puts := 0, 0
	recent := make([]uint64, 4096) // keys, some of which are read, and survive
	for _, size := range []int{200, 5000, 300, 8000, 700, 150} {
		for range 2 * budget / size {
			key := r.Uint64()
			err := c.Put(key, value[:size])
			if err != nil && !errors.Is(err, cheap.ErrLimit) {
				t.Fatal(err)
			}
			puts++
			if err != nil {
				refused++
			}
			if got, ok := c.Get(nil, key); ok != (err == nil) || ok && len(got) != size {
				t.Fatalf("Get after Put: %d bytes, %v", len(got), ok)
			}
			recent[puts%len(recent)] = key
			c.View(recent[r.IntN(len(recent))], func([]byte) {})
		}
		c.check(t)
		s := c.Stats()
		t.Logf("%d bytes each: %d of %d puts refused, %d values, %d of %d bytes, %d held; relieved %d times",
			size, refused, puts, s.Values, s.Bytes, budget, s.Heap.Held, s.Relieved)
		if s.Bytes < budget*3/4 {
			t.Errorf("after %d values of %d bytes there are %d bytes of %d", 2*budget/size, size, s.Bytes, budget)
		}
	}
	if c.Stats().Relieved == 0 {
		t.Error("the limit was never met")
	}
	if refused > puts/1000 {
		t.Errorf("%d of %d puts were refused", refused, puts)
	}
}

// If several goroutines reach the limit at the same time, one of them evicts.
func TestRelieveOnce(t *testing.T) {
	c := newCache(t, Options{Budget: 1 << 20, Shards: 2})
	for key := range uint64(1600) {
		put(t, c, key, make([]byte, 100))
	}
	before := c.Stats()
	c.relieve(before.Relieved)
	c.relieve(before.Relieved)
	after := c.Stats()
	if n := before.Values - after.Values; after.Relieved != 1 || after.Evicted != int64(n) || n < 100 || n > 102 {
		t.Errorf("from %+v to %+v, want a sixteenth fewer", before, after)
	}
	c.check(t)
}

// Held and Evict leave out a shard whose lock is held, by a Put that waits for room.
func TestEvictDoesNotWait(t *testing.T) {
	c := newCache(t, Options{Budget: 1 << 20, Shards: 2})
	for key := range uint64(100) {
		put(t, c, key, make([]byte, 100))
	}
	all := c.Held()
	c.shards[0].Lock()
	held, freed := c.Held(), c.Evict(1<<20)
	c.shards[0].Unlock()
	if s := c.Stats(); freed == 0 || held != freed || s.Bytes != c.shards[0].used || all != held+s.Bytes {
		t.Errorf("of %d bytes Held says %d, and %d became free: %+v", all, held, freed, s)
	}
	c.check(t)
}

// The collector scans maps and slices whose elements have pointers.
func TestIndexHasNoPointers(t *testing.T) {
	var s shard
	for _, typ := range []reflect.Type{
		reflect.TypeOf(s.index).Key(), reflect.TypeOf(s.index).Elem(), reflect.TypeOf(s.queue).Elem(),
	} {
		fields := []reflect.Type{typ}
		if typ.Kind() == reflect.Struct {
			fields = nil
			for i := range typ.NumField() {
				fields = append(fields, typ.Field(i).Type)
			}
		}
		for _, f := range fields {
			if k := f.Kind(); k < reflect.Bool || k > reflect.Complex128 {
				t.Errorf("%v has a %v", typ, f)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	c := newCache(t, Options{Budget: budgetFor(1000, 600), Shards: 1})
	value, dst := make([]byte, 600), make([]byte, 0, 600)
	for key := range uint64(2000) {
		put(t, c, key, value)
	}
	key := uint64(0)
	if n := testing.AllocsPerRun(1000, func() { dst, _ = c.Get(dst[:0], 1500) }); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { put(t, c, key%3000, value); key++ }); n != 0 {
		t.Errorf("Put allocates %v times", n)
	}
}

// TestSieve counts hits of keys of which a few are requested often. SIEVE has more
// hits than a queue without bits, and here also more than LRU.
func TestSieve(t *testing.T) {
	const keys, requests = 100_000, 300_000
	for _, values := range []int{keys / 100, keys / 10} {
		t.Run(fmt.Sprintf("values=%d", values), func(t *testing.T) {
			c := newCache(t, Options{Budget: budgetFor(values, 100), Shards: 1})
			fifo, lru := newQueue(values, false), newQueue(values, true)
			zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, keys-1)
			value, hits := make([]byte, 100), 0
			for range requests {
				key := zipf.Uint64()
				fifo.request(key)
				lru.request(key)
				if c.View(key, func([]byte) {}) {
					hits++
				} else {
					put(t, c, key, value)
				}
			}
			ratio := func(hits int) float64 { return float64(hits) / requests }
			t.Logf("hit ratio: SIEVE %.3f, LRU %.3f, FIFO %.3f", ratio(hits), ratio(lru.hits), ratio(fifo.hits))
			if hits <= fifo.hits || hits < lru.hits {
				t.Errorf("%d hits; FIFO %d, LRU %d", hits, fifo.hits, lru.hits)
			}
			if s := c.Stats(); s.Values != values {
				t.Errorf("%d values, want %d", s.Values, values)
			}
		})
	}
}

// A queue evicts the oldest key, or the least recently requested one.
type queue struct {
	most, hits int
	lru        bool
	order      *list.List
	index      map[uint64]*list.Element
}

func newQueue(most int, lru bool) *queue {
	return &queue{most: most, lru: lru, order: list.New(), index: map[uint64]*list.Element{}}
}

func (q *queue) request(key uint64) {
	if e, ok := q.index[key]; ok {
		q.hits++
		if q.lru {
			q.order.MoveToFront(e)
		}
		return
	}
	if q.order.Len() == q.most {
		delete(q.index, q.order.Remove(q.order.Back()).(uint64))
	}
	q.index[key] = q.order.PushFront(key)
}
