package cache

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A value says where the bytes of a value are, and has all else that a read needs.
// A value and a place contain no pointers: the collector does not look into a map
// or a slice of them, whatever its size.
type value struct {
	addr    uintptr // of the block in the heap
	expires int64   // in the time of Cache.now
	size    uint32  // bytes that were put
	place   uint32  // in the queue
}

// A place is the place of a value in the queue of its shard.
type place struct {
	key   uint64
	newer uint32 // the place of the value that was put next; of an unused place, the next unused place
	older uint32 // the place of the value that was put before
}

// A shard is a part of a cache: an index, and a queue in the order of Put.
//
// The queue is a ring through queue[0], which is the place of no value: its newer
// is the oldest value, and its older is the newest. A read uses the index and the
// bits, but not the queue. In a large cache each access to the index or the queue
// misses the processor's caches: with address and length in the queue, a read of
// one of a million values took a quarter longer.
type shard struct {
	sync.RWMutex // of all fields; a reader may only set bits of visited

	heap    *cheap.Heap
	budget  int64 // usable bytes
	used    int64
	index   map[uint64]value // nil after Close
	queue   []place
	visited []uint32 // a bit for each place: the value was read after the hand passed it; atomic under RLock
	unused  uint32   // the first unused place; 0 means none
	hand    uint32   // the place at which victim begins; 0 means the oldest value's

	evicted, expired int64 // values

	_ [64]byte // so that the locks of two shards are on different cache lines
}

func (s *shard) init(heap *cheap.Heap, budget int64) {
	s.heap, s.budget = heap, budget
	s.index = map[uint64]value{}
	s.queue, s.visited = make([]place, 1), make([]uint32, 1)
}

func (s *shard) closed() bool { return s.index == nil }

// find returns the value of a key, unless it has expired, and sets its bit. The
// caller holds the lock, at least shared.
func (s *shard) find(key uint64, now int64) (value, bool) {
	v, ok := s.index[key]
	if !ok || v.expires <= now {
		return value{}, false
	}
	word, bit := bitOf(v.place)
	if atomic.LoadUint32(&s.visited[word])&bit == 0 {
		atomic.OrUint32(&s.visited[word], bit)
	}
	return v, true
}

func bitOf(place uint32) (word int, bit uint32) { return int(place / 32), 1 << (place % 32) }

// bytes returns the block, which is valid while the caller holds the lock.
func (v value) bytes() []byte {
	return unsafe.Slice((*byte)(cheap.Pointer(v.addr)), v.size)
}

// usable returns the bytes that the budget counts for v.
func (v value) usable() int64 { return int64(cheap.GoodSize(int(v.size))) }

// insert makes a block the value of a key that has none.
func (s *shard) insert(key uint64, block unsafe.Pointer, size int, expires int64) {
	i := s.unused
	if i != 0 {
		s.unused = s.queue[i].newer
	} else {
		i = uint32(len(s.queue))
		s.queue = append(s.queue, place{})
		if i%32 == 0 {
			s.visited = append(s.visited, 0)
		}
	}
	newest := s.queue[0].older
	s.queue[i] = place{key: key, newer: 0, older: newest}
	s.queue[newest].newer = i
	s.queue[0].older = i

	v := value{addr: uintptr(block), expires: expires, size: uint32(size), place: i}
	s.index[key] = v
	s.used += v.usable()
}

// remove frees the value of a key.
func (s *shard) remove(key uint64) {
	v := s.index[key]
	delete(s.index, key)
	s.used -= v.usable()
	s.heap.Free(cheap.Pointer(v.addr))

	p := s.queue[v.place]
	s.queue[p.newer].older = p.older
	s.queue[p.older].newer = p.newer
	if s.hand == v.place {
		s.hand = p.newer
	}
	word, bit := bitOf(v.place)
	s.visited[word] &^= bit
	s.queue[v.place] = place{newer: s.unused}
	s.unused = v.place
}

// evictTo evicts values until at most the given bytes are in use.
func (s *shard) evictTo(used int64) {
	for ; s.used > used; s.evicted++ {
		s.remove(s.victim())
	}
}

// victim returns the key to evict. The shard must have a value. The loop ends in
// the second round at the latest, because the first round clears all bits.
func (s *shard) victim() uint64 {
	for {
		if s.hand == 0 {
			s.hand = s.queue[0].newer
		}
		word, bit := bitOf(s.hand)
		if s.visited[word]&bit == 0 {
			return s.queue[s.hand].key
		}
		s.visited[word] &^= bit
		s.hand = s.queue[s.hand].newer
	}
}

// evictOldest evicts the oldest values, until they have the given bytes.
func (s *shard) evictOldest(bytes int64) {
	for to := s.used - bytes; s.used > to; s.evicted++ {
		s.remove(s.queue[s.queue[0].newer].key)
	}
}

// expire frees the expired values. All values have the same TTL, so the expired
// ones are the oldest.
func (s *shard) expire(now int64) {
	for s.queue[0].newer != 0 {
		oldest := s.queue[s.queue[0].newer].key
		if s.index[oldest].expires > now {
			return
		}
		s.remove(oldest)
		s.expired++
	}
}

// close frees all values.
func (s *shard) close() {
	for key := range s.index {
		s.remove(key)
	}
	s.index, s.queue = nil, make([]place, 1)
}
