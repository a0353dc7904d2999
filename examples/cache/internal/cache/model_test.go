package cache

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A model is a simple shard: a slice of values, the oldest first.
type model struct {
	budget, evicted, expired int64
	values                   []*item
	hand                     *item // nil means the first
}

type item struct {
	key     uint64
	value   []byte
	put     time.Time
	visited bool
}

func (m *model) find(key uint64) *item {
	for _, v := range m.values {
		if v.key == key {
			return v
		}
	}
	return nil
}

func (m *model) used() (n int64) {
	for _, v := range m.values {
		n += int64(cheap.GoodSize(len(v.value)))
	}
	return n
}

func (m *model) remove(v *item) {
	i := slices.Index(m.values, v)
	m.values = slices.Delete(m.values, i, i+1)
	if m.hand == v {
		m.hand = nil
		if i < len(m.values) {
			m.hand = m.values[i]
		}
	}
}

func (m *model) expire(ttl time.Duration) {
	for _, v := range slices.Clone(m.values) {
		if time.Since(v.put) >= ttl {
			m.remove(v)
			m.expired++
		}
	}
}

func (m *model) evict() {
	for i := max(0, slices.Index(m.values, m.hand)); ; i = (i + 1) % len(m.values) {
		if v := m.values[i]; !v.visited {
			m.hand = v
			m.remove(v)
			m.evicted++
			return
		}
		m.values[i].visited = false
	}
}

// run does the steps that the bytes encode with a cache of one shard and with a
// model. After each step it compares the two: values, their order, bits, the hand.
func run(t *testing.T, steps []byte) {
	const ttl = 10 * time.Second
	c := newCache(t, Options{Budget: 4096, TTL: ttl, Shards: 1})
	m := &model{budget: 4096}
	for len(steps) >= 3 {
		op, key, n := steps[0], uint64(steps[1]%32), int(steps[2])
		steps = steps[3:]
		old := m.find(key)
		switch op % 8 {
		case 0, 1, 2, 3: // put
			value := bytes.Repeat([]byte{byte(n), byte(key), byte(len(steps))}, n*n/64)
			err := c.Put(key, value)
			m.expire(ttl)
			if old := m.find(key); old != nil {
				m.remove(old)
			}
			size := int64(cheap.GoodSize(len(value)))
			if size > m.budget {
				if err != ErrTooLarge {
					t.Fatalf("Put of %d bytes: %v", len(value), err)
				}
				break
			}
			testcall.Must(t, err)
			for m.used()+size > m.budget {
				m.evict()
			}
			m.values = append(m.values, &item{key: key, value: value, put: time.Now()})
		case 4, 5: // get
			got, ok := c.Get(nil, key)
			if found := old != nil && time.Since(old.put) < ttl; ok != found || ok && !bytes.Equal(got, old.value) {
				t.Fatalf("Get of key %d: %v, %v; want %v", key, got, ok, old)
			}
			if ok {
				old.visited = true
			}
		case 6: // delete
			ok := c.Delete(key)
			m.expire(ttl)
			if old := m.find(key); ok != (old != nil) {
				t.Fatalf("Delete of key %d: %v; the model has %v", key, ok, old)
			} else if ok {
				m.remove(old)
			}
		case 7: // time passes
			time.Sleep(time.Duration(n) * ttl / 512)
			if n%16 == 0 {
				c.Expire()
				m.expire(ttl)
			}
		}
		c.check(t)
		m.compare(t, c)
	}
}

func (m *model) compare(t *testing.T, c *Cache) {
	t.Helper()
	s := &c.shards[0]
	i := s.queue[0].newer
	for n, v := range m.values {
		p := s.queue[i]
		word, bit := bitOf(i)
		if i == 0 || p.key != v.key || !bytes.Equal(s.index[p.key].bytes(), v.value) || (s.visited[word]&bit != 0) != v.visited || (s.hand == i) != (m.hand == v) {
			t.Fatalf("value %d of %d is %+v, the hand is at %d; want %+v, hand at it: %v", n, len(m.values), p, s.hand, v, m.hand == v)
		}
		i = p.newer
	}
	if i != 0 || s.used != m.used() || s.evicted != m.evicted || s.expired != m.expired || (s.hand == 0) != (m.hand == nil) {
		t.Fatalf("%d used, %d evicted, %d expired, more than %d values: %v, hand at %d; want %d, %d, %d, the hand at %v",
			s.used, s.evicted, s.expired, len(m.values), i != 0, s.hand, m.used(), m.evicted, m.expired, m.hand)
	}
}

func TestModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		steps := make([]byte, 3*r.IntN(300))
		for i := range steps {
			steps[i] = byte(r.Uint32())
		}
		synctest.Test(t, func(t *testing.T) { run(t, steps) })
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 1, 100, 4, 1, 0, 0, 2, 255, 0, 3, 255, 6, 1, 0})
	f.Add([]byte{0, 1, 10, 7, 0, 255, 0, 1, 10, 7, 0, 255, 4, 1, 0, 7, 0, 240})
	f.Fuzz(func(t *testing.T, steps []byte) {
		synctest.Test(t, func(t *testing.T) { run(t, steps) })
	})
}
