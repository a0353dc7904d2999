// Package cache is a cache whose values are outside the Go heap, within a budget
// of bytes.
//
// The values are blocks of a cheap.Heap. The index is in the Go heap, and has
// their addresses as numbers. So the garbage collector follows no pointer for a
// value.
//
//	Cache ─┬─ shard ─┬─ index  map[uint64]value: from a key to an address and a length
//	       │         └─ queue  []place: the next value to evict, the next to expire
//	       ├─ shard …
//	       └─ heap             the values, one block each
//
// # Memory
//
// The budget counts the usable bytes of the blocks, which are at most an eighth
// more than the bytes of values above 128 bytes. Each shard has an equal part of
// the budget, and evicts before it allocates.
//
// The heap has a limit, which is larger than the budget. It is a backstop for the
// bytes that the budget does not count: free blocks in spans that hold values, and
// the heap's caches. If the heap reaches its limit, the cache evicts a part of all
// shards. The index is in addition to both.
//
// # Eviction
//
// Each shard evicts by SIEVE: Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is
// Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for Web Caches",
// NSDI 2024. Values are in a queue in the order of Put. A read sets a bit, and
// moves nothing, so that readers share the lock. To evict, a hand goes over the
// queue from old to new. It clears the bits that are set, and evicts the first
// value whose bit is not set.
package cache

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
)

var (
	// ErrTooLarge is returned by Put for a value that is larger than the budget of
	// a shard.
	ErrTooLarge = errors.New("cache: value is larger than the budget of a shard")

	// ErrClosed is returned by Put after Close, and by a second Close.
	ErrClosed = errors.New("cache: closed")
)

// Options configure a Cache.
type Options struct {
	// Budget bounds the usable bytes of all values. It must be positive.
	Budget int64

	// Limit bounds the bytes that the heap holds from the operating system. The
	// default is Budget and a quarter of it, and 16 MiB.
	Limit int64

	// TTL is the time after Put during which a value can be read. 0 means that
	// values do not expire.
	TTL time.Duration

	// Shards is the number of parts of the cache, a power of two. Each has a lock,
	// and an equal part of Budget, which bounds the size of a value. The default
	// is 64.
	Shards int
}

// A Cache maps keys to values, and evicts values to stay within its budget.
//
// All methods may be called from any number of goroutines at once. A Cache is
// made by New. If it becomes unreachable without Close, its memory is never
// released.
type Cache struct {
	heap   *cheap.Heap
	shards []shard
	shift  uint // leaves as many bits of a hash as number the shards
	ttl    time.Duration
	start  time.Time // expiries are nanoseconds after it

	mu       sync.Mutex   // held by relieve, Stats and Close; locked before a shard
	relieved atomic.Int64 // number of evictions by relieve; written under mu
}

// New returns an empty cache. Its error is that of cheap.NewHeap. New panics if an
// option is wrong.
func New(o Options) (*Cache, error) {
	if o.Shards == 0 {
		o.Shards = 64
	}
	if o.Limit == 0 {
		o.Limit = o.Budget + o.Budget/4 + 16<<20
	}
	if o.Shards < 0 || o.Shards&(o.Shards-1) != 0 || o.Budget < int64(o.Shards) || o.Limit < o.Budget || o.TTL < 0 {
		panic(fmt.Sprintf("cache: New: %+v: Shards is a power of two, Budget at least a byte for each, "+
			"Limit at least Budget, TTL not negative", o))
	}
	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: o.Limit})
	if err != nil {
		return nil, err
	}
	c := &Cache{
		heap:   heap,
		shards: make([]shard, o.Shards),
		shift:  uint(64 - bits.Len(uint(o.Shards-1))),
		ttl:    o.TTL,
		start:  time.Now(),
	}
	for i := range c.shards {
		c.shards[i].init(heap, o.Budget/int64(o.Shards))
	}
	return c, nil
}

// shard returns the shard of a key. The multiplication is Fibonacci hashing, which
// puts consecutive keys into different shards.
func (c *Cache) shard(key uint64) *shard {
	return &c.shards[key*0x9e3779b97f4a7c15>>c.shift]
}

// now returns the time to compare expiries with. Without a TTL it is always 0, and
// reads no clock.
func (c *Cache) now() int64 {
	if c.ttl == 0 {
		return 0
	}
	return int64(time.Since(c.start))
}

// expiry returns the time at which a value that is put now expires.
func (c *Cache) expiry(now int64) int64 {
	if c.ttl == 0 || now > math.MaxInt64-int64(c.ttl) {
		return math.MaxInt64
	}
	return now + int64(c.ttl)
}

// View calls f with the value of a key, and reports whether the key has a value.
// The slice is the block itself, not a copy.
//
// View holds the lock of the shard during the call, so that no goroutine frees the
// block. f must not keep the slice, write to it, or call a method of the cache. It
// should be short: a Put to the same shard waits for it.
func (c *Cache) View(key uint64, f func(value []byte)) bool {
	s := c.shard(key)
	s.RLock()
	defer s.RUnlock()
	v, ok := s.find(key, c.now())
	if ok {
		f(v.bytes())
	}
	return ok
}

// Get appends the value of a key to dst, and reports whether the key has a value.
func (c *Cache) Get(dst []byte, key uint64) ([]byte, bool) {
	s := c.shard(key)
	s.RLock()
	defer s.RUnlock()
	v, ok := s.find(key, c.now())
	if ok {
		dst = append(dst, v.bytes()...)
	}
	return dst, ok
}

// Put copies a value into the cache, and replaces the value that the key has. It
// evicts other values to make room.
//
// If Put returns an error, the key has no value. The error is ErrTooLarge or
// ErrClosed, or wraps cheap.ErrLimit or cheap.ErrNoMemory.
func (c *Cache) Put(key uint64, value []byte) error {
	relieved := c.relieved.Load()
	err := c.put(key, value)
	if errors.Is(err, cheap.ErrLimit) || errors.Is(err, cheap.ErrNoMemory) {
		c.relieve(relieved)
		err = c.put(key, value)
	}
	return err
}

func (c *Cache) put(key uint64, value []byte) error {
	size := int64(cheap.GoodSize(len(value)))
	s := c.shard(key)
	s.Lock()
	defer s.Unlock()
	if s.closed() {
		return ErrClosed
	}
	now := c.now() // under the lock, so that the queue is in the order of expiry
	s.expire(now)
	if _, ok := s.index[key]; ok {
		s.remove(key)
	}
	if size > s.budget || uint64(len(value)) > math.MaxUint32 {
		return ErrTooLarge
	}
	s.evictTo(s.budget - size)
	p, err := s.heap.TryMalloc(len(value))
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*byte)(p), len(value)), value) // p is this goroutine's block of that size
	s.insert(key, p, len(value), c.expiry(now))
	return nil
}

// relieve makes room below the heap's limit, unless another goroutine has done so
// since relieved was read.
//
// The heap needs empty spans, because only these can be used for another size.
// Blocks that were allocated at about the same time are in the same spans. So
// relieve evicts the oldest values, whether they were read or not: a sixteenth of
// each shard, because all shards have blocks in the same spans.
func (c *Cache) relieve(relieved int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.relieved.Load() != relieved {
		return
	}
	c.relieved.Add(1)
	for i := range c.shards {
		s := &c.shards[i]
		s.Lock()
		s.evictOldest(s.used / 16)
		s.Unlock()
	}
}

// Held returns about how many bytes the values have. It and Evict are for pace.OnPressure. A Put that waits for room
// holds the lock of its shard, so both leave out shards that are locked.
func (c *Cache) Held() (bytes int64) {
	for i := range c.shards {
		if s := &c.shards[i]; s.TryRLock() {
			bytes += s.used
			s.RUnlock()
		}
	}
	return bytes
}

// Evict frees about so many bytes of the oldest values, and returns how many. As in relieve, spans become empty, which
// the heap gives back to the system.
func (c *Cache) Evict(bytes int64) (freed int64) {
	for i := range c.shards {
		s := &c.shards[i]
		if !s.TryLock() {
			continue
		}
		was := s.used
		s.evictOldest(min(was, bytes/int64(len(c.shards))+1))
		freed += was - s.used
		s.Unlock()
	}
	return freed
}

// Delete removes the value of a key, and reports whether the key had one.
func (c *Cache) Delete(key uint64) bool {
	s := c.shard(key)
	s.Lock()
	defer s.Unlock()
	s.expire(c.now())
	_, ok := s.index[key]
	if ok {
		s.remove(key)
	}
	return ok
}

// Expire frees all expired values. Put does that for one shard. A program whose
// cache is idle for a long time calls Expire by a timer.
func (c *Cache) Expire() {
	for i := range c.shards {
		s := &c.shards[i]
		s.Lock()
		s.expire(c.now())
		s.Unlock()
	}
}

// Stats are the counts of a Cache.
type Stats struct {
	Values int   // expired ones included, until they are freed
	Bytes  int64 // usable bytes of the values; at most Options.Budget

	Evicted  int64 // values that were freed to make room
	Expired  int64 // values that were freed after their TTL
	Relieved int64 // how often the heap reached its limit, and the cache evicted a part of all shards

	Heap cheap.Stats
}

// Stats returns the counts. Under concurrent use they may not be mutually
// consistent. After Close, Values, Bytes and Heap are zero.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := Stats{Relieved: c.relieved.Load()}
	if !c.shards[0].closed() {
		t.Heap = c.heap.Stats()
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.RLock()
		t.Values += len(s.index)
		t.Bytes += s.used
		t.Evicted += s.evicted
		t.Expired += s.expired
		s.RUnlock()
	}
	return t
}

// Close frees all values and destroys the heap. It waits for calls that hold the
// lock of a shard. After Close the cache is empty, and Put returns ErrClosed.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shards[0].closed() {
		return ErrClosed
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.Lock()
		s.close()
		s.Unlock()
	}
	return c.heap.Destroy()
}
