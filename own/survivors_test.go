package own

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// A tallyman counts resources, and knows nothing else of them.
type tallyman struct {
	pool *Pool
	live atomic.Int64
}

func newTallyman(o Options) *tallyman {
	w := new(tallyman)
	o.Release = func(_ any, r []uintptr) error {
		w.live.Add(-int64(len(r)))
		return nil
	}
	w.pool = NewPool(o)
	return w
}

var place byte // the address of all their resources

func (w *tallyman) own(t testing.TB, size int) *object {
	o := new(object)
	w.live.Add(1)
	testcall.Must(t, o.Own(w.pool, unsafe.Pointer(&place), size))
	return o
}

// settle collects until nothing more is released, and returns how many are left. A batch that
// is not split is asked again four collections later.
func (w *tallyman) settle(t testing.TB) int64 {
	for last, same := int64(-1), 0; same < 10; {
		gc(t)
		if n := w.live.Load(); n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
	return w.live.Load()
}

// TestSurvivors forgets owners, but for some. What these hold back is bounded, for
// survivors at random and at a distance that is a power of two.
func TestSurvivors(t *testing.T) {
	for _, row := range []struct {
		size, n int
		one     int // of so many is kept
		dead    int // owners that all die before
		most    float64
	}{
		{100, 3_000_000, 10, 0, 4.5},
		{100, 5_000_000, 100, 0, 14},
		{100, 10_000_000, 1000, 0, 40},
		{100, 5_000_000, 100, 5_000_000, 32},
		{10 << 10, 600_000, 10, 0, 4},
		{10 << 10, 1_000_000, 100, 0, 4},
		{10 << 10, 2_000_000, 1000, 0, 4},
	} {
		if part := 50; !*long {
			if row.size == 100 && row.one > 10 || row.one == 1000 {
				part = 10 // of a few batches that live the pool learns too little: they may be kept whole
			}
			row.n, row.dead = row.n/part, row.dead/part
		}
		for _, at := range []string{"random", "stride"} {
			t.Run(fmt.Sprintf("size=%d/one=%d/dead=%d/at=%s", row.size, row.one, row.dead, at), func(t *testing.T) {
				w := newTallyman(Options{})
				for range row.dead {
					w.own(t, row.size)
				}
				stride := 1
				for 2*stride <= row.one {
					stride *= 2
				}
				var kept []*object
				for i := range row.n {
					o := w.own(t, row.size)
					if at == "stride" && i%stride == 0 || at == "random" && rand.IntN(row.one) == 0 {
						kept = append(kept, o)
					}
				}
				held := float64(w.settle(t)) / float64(len(kept))
				t.Logf("%d owners hold %.1f times what they own", len(kept), held)
				if held > row.most {
					t.Errorf("%d owners hold %.1f times what they own, want %.1f at most", len(kept), held, row.most)
				}
				runtime.KeepAlive(kept)
				clear(kept)
				collectAtMost(t, 2*few, "the survivors", func() bool { return w.live.Load() == 0 })
			})
		}
	}
}

// TestSurvivorsInACache replaces owners at random, without Close. It collects by itself: a pool
// learns from collections whether it pays to split batches, and the runtime starts few of them for
// objects that are so small, at moments that differ from run to run.
func TestSurvivorsInACache(t *testing.T) {
	const most = 1.5 // where four share a sentinel it is 2.08
	n := 20_000
	if *long {
		n = 100_000
	}
	w := newTallyman(Options{})
	cache := make([]*object, n)
	for i := range cache {
		cache[i] = w.own(t, 1<<10)
	}
	for range 15 {
		for range n {
			cache[rand.IntN(n)] = w.own(t, 1<<10)
		}
		gc(t)
	}
	held := float64(w.settle(t)) / float64(n)
	t.Logf("the cache holds %.2f times what it owns", held)
	if held > most {
		t.Errorf("the cache holds %.2f times what it owns, want %.1f at most", held, most)
	}
	runtime.KeepAlive(cache)
}

// TestSurvivorOfClosed closes all owners but one of each batch. It keeps little beyond
// its resource: its page, and the record of the batch with its registration.
func TestSurvivorOfClosed(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	for _, o := range []Options{{}, {Batch: mostBatch}} {
		t.Run(fmt.Sprint("batch=", o.Batch), func(t *testing.T) {
			w := newTallyman(o)
			// 512 outside, and 430 to 700 in Go: what else is on the Go heap counts as well. A
			// word for each owner of the batch would be 4 KiB more.
			const each, most = 512, 2048
			n := 1 << 19
			if *long {
				n = 1 << 20
			}
			var before, after runtime.MemStats
			for range n / 8 { // so that what the pool itself needs is there
				w.own(t, 100).Close()
			}
			w.settle(t)
			runtime.ReadMemStats(&before)
			pages := batch.Outside()
			kept := make([]*object, 0, n/each)
			for i := range n {
				if m := w.own(t, 100); i%each == each/2 {
					kept = append(kept, m)
				} else {
					m.Close()
				}
			}
			w.settle(t)
			runtime.ReadMemStats(&after)
			inGo := (int64(after.HeapAlloc)-int64(before.HeapAlloc))/int64(len(kept)) - int64(unsafe.Sizeof(object{})+unsafe.Sizeof(kept[0]))
			outside := (batch.Outside() - pages) / int64(len(kept))
			t.Logf("each keeps %d bytes of the Go heap, and %d outside", inGo, outside)
			if !race.Build && !osmem.GoBacked && inGo+outside > most { // there objects are larger
				t.Errorf("each of %d owners keeps %d bytes of the Go heap, and %d outside, want %d in all at most", len(kept), inGo, outside, most)
			}
			if n := w.live.Load(); n != int64(len(kept)) {
				t.Errorf("%d are live, and %d were kept", n, len(kept))
			}
			runtime.KeepAlive(kept)
		})
	}
}

// TestHammerSurvivors owns, uses, closes, forgets and replaces in several goroutines, while
// the collector runs all the time and batches are split, and then destroys the pool under
// them. Each resource is destroyed once.
func TestHammerSurvivors(t *testing.T) {
	const rounds, slots, workers = 6, 500, 3
	each := times(40_000)
	w := newWorld(t, rounds*each*workers)
	for round := range rounds {
		o := Options{OnCollect: func(Collected) {}}
		if round%3 == 2 {
			o.Run = new(Queue).Run()
		}
		p := w.pool(o)
		var wg sync.WaitGroup
		stop := testwait.Loop(1, func() { runtime.GC(); drainPool(p, 0) })
		for range workers {
			wg.Go(func() {
				held := make([]*thing, slots)
				for i := range each {
					c := w.create(16)
					m := &thing{cell: c}
					if err := m.Own(p, c.pointer(), 16); err != nil {
						if p.Discard(c.pointer()); err != ErrPoolClosed {
							t.Error(err)
						}
						continue
					}
					at := &held[rand.IntN(slots)]
					switch old := *at; {
					case rand.IntN(4) == 0: // forget m
					case old != nil && i%5 == 0:
						old.Close()
						*at = m
					case old != nil && i%3 == 0:
						old.TryUse(func(r unsafe.Pointer) error {
							if !old.cell.alive() {
								t.Error("in use and destroyed")
							}
							return nil
						})
					default:
						*at = m
					}
				}
				runtime.KeepAlive(held)
			})
		}
		if round%2 == 1 {
			for w.next.Load() < int64(round*each*workers+each) {
				runtime.Gosched()
			}
			p.CloseWait(patient(t)) // its error tells of owners that were never closed
		}
		wg.Wait()
		stop()
		if round%2 == 0 {
			wait(t, "all of the pool are released", func() bool {
				runtime.GC()
				drainPool(p, 0)
				return p.Stats().Live == 0
			})
			mustDestroy(t, p)
		}
		drainPool(p, 0)
	}
	flush(t)
	collectAtMost(t, few, "all resources", func() bool { return w.alive() == 0 })
}
