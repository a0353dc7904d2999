package cache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A value begins with its key and a number, and all other bytes follow from the
// number. So checkValue detects a mixture of two values.
func appendValue(b []byte, key, number uint64, size int) []byte {
	b = binary.LittleEndian.AppendUint64(b, key)
	b = binary.LittleEndian.AppendUint64(b, number)
	for len(b) < size {
		b = append(b, byte(number)+byte(len(b)))
	}
	return b
}

func checkValue(key uint64, b []byte) error {
	if got := binary.LittleEndian.Uint64(b); got != key {
		return fmt.Errorf("key %d has a value of key %d", key, got)
	}
	number := binary.LittleEndian.Uint64(b[8:])
	for i, x := range b[16:] {
		if x != byte(number)+byte(i+16) {
			return fmt.Errorf("key %d: byte %d of %d is %d, want %d", key, i+16, len(b), x, byte(number)+byte(i+16))
		}
	}
	return nil
}

// TestHammer reads, writes and deletes in several goroutines: once with a budget
// for a part of the values, and once with a budget for all and a short TTL.
func TestHammer(t *testing.T) {
	t.Run("evict", func(t *testing.T) {
		if s := hammer(t, Options{Budget: 256 << 10, Shards: 4}); s.Evicted == 0 || s.Expired != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("expire", func(t *testing.T) {
		if s := hammer(t, Options{Budget: 64 << 20, Shards: 4, TTL: time.Millisecond}); s.Evicted != 0 || s.Expired == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func hammer(t *testing.T, o Options) Stats {
	const (
		goroutines = 8
		steps      = 20_000
		keys       = 2000
	)
	c := newCache(t, o)
	var wg sync.WaitGroup
	var hits atomic.Int64
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			var buf, dst []byte
			for step := range steps {
				if step%500 == 0 { // the other methods, at the same time
					s := c.Stats()
					if s.Bytes > o.Budget || s.Heap.Held > s.Heap.Limit {
						t.Errorf("over the budget of %d: %+v", o.Budget, s)
						return
					}
					c.Expire()
				}
				key := r.Uint64N(keys)
				if r.IntN(2) == 0 {
					key %= 100 // some are used more often
				}
				switch r.IntN(10) {
				case 0, 1, 2, 3:
					buf = appendValue(buf[:0], key, r.Uint64(), 16+r.IntN(1000))
					if err := c.Put(key, buf); err != nil {
						t.Error(err)
						return
					}
				case 4, 5, 6:
					var ok bool
					if dst, ok = c.Get(dst[:0], key); ok {
						hits.Add(1)
						if err := checkValue(key, dst); err != nil {
							t.Error(err)
							return
						}
					}
				case 7, 8:
					var err error
					if c.View(key, func(v []byte) { err = checkValue(key, v) }) {
						hits.Add(1)
					}
					if err != nil {
						t.Error(err)
						return
					}
				case 9:
					c.Delete(key)
				}
			}
		})
	}
	wg.Wait()
	c.check(t)
	s := c.Stats()
	t.Logf("%d hits; %+v", hits.Load(), s)
	if hits.Load() == 0 {
		t.Error("no hits")
	}
	return s
}

// TestHammerClose closes a cache while it is in use.
func TestHammerClose(t *testing.T) {
	for range 50 {
		c := newCache(t, Options{Budget: 64 << 10, Shards: 4})
		var wg sync.WaitGroup
		var begun sync.WaitGroup
		for g := range uint64(4) {
			begun.Add(1)
			wg.Go(func() {
				begun.Done()
				var buf []byte
				for n := uint64(0); ; n++ {
					key := n % 100
					buf = appendValue(buf[:0], key, g, 200)
					if err := c.Put(key, buf); err == ErrClosed {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					c.View(key, func(v []byte) {
						testcall.Want(t, checkValue(key, v))
					})
					c.Stats()
				}
			})
		}
		begun.Wait()
		testcall.Want(t, c.Close())
		wg.Wait()
	}
}

// In TestHammerBackstop several goroutines reach the heap's limit at the same time.
func TestHammerBackstop(t *testing.T) {
	const budget = 16 << 20
	c := newCache(t, Options{Budget: budget, Limit: budget, Shards: 4})
	var wg sync.WaitGroup
	var refused atomic.Int64
	for g := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 2))
			var buf []byte
			for n := range 20_000 {
				key := r.Uint64N(10_000)
				buf = appendValue(buf[:0], key, r.Uint64(), 100+n/4000*700+r.IntN(300))
				if err := c.Put(key, buf); err != nil {
					refused.Add(1)
				}
				key = r.Uint64N(10_000)
				c.View(key, func(v []byte) {
					testcall.Want(t, checkValue(key, v))
				})
			}
		})
	}
	wg.Wait()
	c.check(t)
	s := c.Stats()
	t.Logf("%d of 80000 puts refused; %+v", refused.Load(), s)
	if s.Relieved == 0 || refused.Load() > 800 {
		t.Errorf("relieved %d times; %d puts refused", s.Relieved, refused.Load())
	}
}
