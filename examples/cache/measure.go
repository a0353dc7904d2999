package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/examples/cache/internal/cache"
	"github.com/cheapgo/cheap/examples/cache/internal/trap"
)

// The sizes of values are uniform between these: 600 bytes on average.
const (
	sizeLeast = 100
	sizeMost  = 1100
)

// A variant is a way to keep values.
type variant struct {
	name    string
	title   string
	measure func(values int) (measurement, error)
}

var variants = []variant{
	{"map", "map[uint64][]byte", measureMap},
	{"cache", "cache", measureCache},
	{"budget", "a budget", func(n int) (measurement, error) { return measureTrap(n, true) }},
	{"nil", "a Malloc that returns nil", func(n int) (measurement, error) { return measureTrap(n, false) }},
}

// A measurement has the figures of one variant, from one process. Times are in
// nanoseconds, those of Put, Replace and Get for one operation. The fields that
// end in CPU are the processor time of the whole process.
type measurement struct {
	Collection, CollectionCPU float64
	Put, PutCPU               float64
	Replace, ReplaceCPU       float64
	Get, GetCPU               float64

	Collections float64 // during all of Put, Replace and Get
	Peak        float64 // resident bytes
	Live        float64 // bytes of the Go heap

	Failed float64 // Mallocs
	Values float64
	Full   float64 // usable bytes of the values, in parts of the limit
}

// A store is what measureStore measures.
type store interface {
	Put(key uint64, value []byte) error
	Get(dst []byte, key uint64) ([]byte, bool)
}

func measureMap(values int) (measurement, error) { return measureStore(newShardedMap(), values) }

func measureCache(values int) (measurement, error) {
	c, err := cache.New(cache.Options{Budget: max(2*int64(values)*sizeMost, 1<<24)}) // nothing is evicted
	if err != nil {
		return measurement{}, err
	}
	m, err := measureStore(c, values)
	return m, errors.Join(err, c.Close())
}

// measureStore puts values, replaces as many in random order, and gets as many.
// After that it measures collections, with all values alive.
func measureStore(s store, values int) (m measurement, err error) {
	keys, sizes := newKeys(values), newSizes()
	data, dst := make([]byte, sizeMost), make([]byte, 0, sizeMost)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	i := 0
	m.Put, m.PutCPU = perOperation(values, func() {
		err = errors.Join(err, s.Put(keys.number(i), data[:sizes.next()]))
		i++
	})
	m.Replace, m.ReplaceCPU = perOperation(values, func() {
		err = errors.Join(err, s.Put(keys.random(), data[:sizes.next()]))
	})
	missing := 0
	m.Get, m.GetCPU = perOperation(values, func() {
		var ok bool
		if dst, ok = s.Get(dst[:0], keys.random()); !ok {
			missing++
		}
	})
	if missing > 0 {
		err = errors.Join(err, fmt.Errorf("%d values of %d are missing", missing, values))
	}
	runtime.ReadMemStats(&after)
	m.Collections = float64(after.NumGC - before.NumGC)
	m.Collection, m.CollectionCPU = collection()
	m.Live, m.Peak = liveHeap(), float64(peakResident())
	runtime.KeepAlive(s)
	return m, err
}

// measureTrap puts values into a heap whose limit is the size of a tenth of them.
// Room is made either by a budget, a tenth and 2 MiB below the limit, or when
// Malloc returns nil.
func measureTrap(values int, byBudget bool) (m measurement, err error) {
	limit := max(int64(values)*(sizeLeast+sizeMost)/2/10, 8<<20)
	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: limit})
	if err != nil {
		return m, err
	}
	budget := int64(0)
	if byBudget {
		budget = limit*9/10 - 2<<20
	}
	q := trap.New(heap, budget)
	sizes, data := newSizes(), make([]byte, sizeMost)
	m.Put, m.PutCPU = perOperation(values, func() {
		if !q.Put(data[:sizes.next()]) {
			err = cheap.ErrLimit
		}
	})
	m.Failed, m.Values = float64(q.Failed), float64(q.Len())
	m.Full = float64(heap.Stats().Bytes) / float64(limit)
	q.Clear()
	return m, errors.Join(err, heap.Destroy())
}

// perOperation calls f n times, and returns the time of one call on the clock and
// on processors.
func perOperation(n int, f func()) (clock, cpu float64) {
	start, startCPU := time.Now(), processorTime()
	for range n {
		f()
	}
	return float64(time.Since(start)) / float64(n), float64(processorTime()-startCPU) / float64(n)
}

// collection returns the time of a collection: the median of nine, after two that
// are not counted.
func collection() (clock, cpu float64) {
	var clocks, cpus []float64
	for i := range 11 {
		clock, cpu := perOperation(1, runtime.GC)
		if i >= 2 {
			clocks, cpus = append(clocks, clock), append(cpus, cpu)
		}
	}
	slices.Sort(clocks)
	slices.Sort(cpus)
	return clocks[len(clocks)/2], cpus[len(cpus)/2]
}

// liveHeap returns the bytes that the last collection found reachable.
func liveHeap() float64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// keys are n numbers that are not consecutive.
type keys struct {
	n int
	r *rand.Rand
}

func newKeys(n int) keys { return keys{n, rand.New(rand.NewPCG(1, 2))} }

func (k keys) number(i int) uint64 { return uint64(i+1) * 0xd6e8feb86659fd93 }
func (k keys) random() uint64      { return k.number(k.r.IntN(k.n)) }

// sizes are the sizes of values, the same in each process.
type sizes struct{ r *rand.Rand }

func newSizes() sizes { return sizes{rand.New(rand.NewPCG(3, 4))} }

func (s sizes) next() int { return sizeLeast + s.r.IntN(sizeMost-sizeLeast+1) }

// A shardedMap has slices in the Go heap. It has as many maps and locks as the
// cache has shards.
type shardedMap struct {
	shards [64]struct {
		sync.RWMutex
		values map[uint64][]byte
	}
}

func newShardedMap() *shardedMap {
	m := new(shardedMap)
	for i := range m.shards {
		m.shards[i].values = map[uint64][]byte{}
	}
	return m
}

func (m *shardedMap) Put(key uint64, value []byte) error {
	value = slices.Clone(value)
	s := &m.shards[key%64]
	s.Lock()
	defer s.Unlock()
	s.values[key] = value
	return nil
}

func (m *shardedMap) Get(dst []byte, key uint64) ([]byte, bool) {
	s := &m.shards[key%64]
	s.RLock()
	defer s.RUnlock()
	value, ok := s.values[key]
	return append(dst, value...), ok
}
