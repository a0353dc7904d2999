//go:build !race && !cheap_gomem

package pace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/own"
)

// started returns how many collections a pacer has started.
func started(p *pacer) int64 {
	n, _ := p.counts()
	return n
}

// mustPace is Start in a child.
func mustPace(o Options) *pacer {
	if err := Start(o); err != nil {
		panic(err)
	}
	return current.Load()
}

// report logs what a child has measured.
func report(t *testing.T, o outcome) {
	t.Helper()
	t.Logf("resident %.1f MiB, %d collections, %d of them for pace; %v; %d requests, %d refused, the longest took %v; %+v",
		float64(o.Resident)/mib, o.GCs, o.Stats.Cycles, o.Elapsed.Round(time.Millisecond), o.Done, o.Failed, o.Longest, o.Stats)
}

// atMost fails if more was resident.
func atMost(t *testing.T, o outcome, bytes int64) {
	t.Helper()
	report(t, o)
	if o.Resident > bytes {
		t.Errorf("resident: %.1f MiB more than at the start, want at most %.1f", float64(o.Resident)/mib, float64(bytes)/mib)
	}
}

// within runs f in a child, and fails if more was resident. Goroutines are patient there: on
// a machine that is busy with something else, a collection may wait long for a processor.
func within(t *testing.T, bytes int64, f func() outcome) outcome {
	t.Helper()
	o := inChild(t, func() outcome {
		patient(&longest)
		return f()
	})
	atMost(t, o, bytes)
	return o
}

// TestWithoutPace shows why pace exists: large blocks with a runtime.AddCleanup
// each, once forgotten, are not freed. They are counted: what is resident depends on the
// system, which may take pages away.
func TestWithoutPace(t *testing.T) {
	most, all := scaled(4<<10, 64), 20_000
	o := inChild(t, func() outcome {
		h := cheap.Default()
		var live [8]*image
		var freed atomic.Int64
		m, n := measure(), 0
		for ; n < all && n-int(freed.Load()) < most; n++ {
			p, err := h.TryMalloc(mib)
			if err != nil {
				panic(err)
			}
			fill(p, mib)
			live[n%8] = new(image)
			runtime.AddCleanup(live[n%8], func(p uintptr) { h.Free(cheap.Pointer(p)); freed.Add(1) }, uintptr(p))
		}
		runtime.KeepAlive(live)
		o := m.outcome()
		o.Done = n
		return o
	})
	report(t, o)
	if o.Done == all {
		t.Errorf("of %d blocks of a megabyte never %d were there: the collector has noticed them by itself", all, most)
	}
}

// TestChurn forgets blocks of a Heap, blocks of a Memory, and the groups of requests, of a megabyte each.
func TestChurn(t *testing.T) {
	for name, made := range map[string]func(*buffers, *own.Memory) (any, error){
		"Heap": func(b *buffers, _ *own.Memory) (any, error) { return b.make(mib), nil },
		"Memory": func(_ *buffers, m *own.Memory) (any, error) {
			b, err := m.NewBytes(mib)
			b.Use(fillBytes)
			return b, err
		},
		"Group": func(_ *buffers, m *own.Memory) (any, error) {
			g, _ := m.NewGroup()
			p, err := g.TryMalloc(mib)
			fill(p, mib)
			return g, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, 2*unlimited+48*mib, func() outcome {
				mustPace(Options{})
				b, memory, m := newBuffers(), own.NewMemory(nil, own.MemoryOptions{}), measure()
				var live [8]any
				var err error
				for i := range scaled(20_000, 200) {
					if live[i%8], err = made(b, memory); err != nil {
						panic(err)
					}
				}
				runtime.KeepAlive(live)
				return m.outcome()
			})
		})
	}
}

// TestChurnBesideBusy has goroutines that do nothing but compute, twice as many
// as run at a time.
func TestChurnBesideBusy(t *testing.T) {
	within(t, 2*unlimited+48*mib, func() outcome {
		runtime.GOMAXPROCS(2)
		mustPace(Options{})
		b := newBuffers()
		var done atomic.Bool
		var wg sync.WaitGroup
		defer wg.Wait()
		defer done.Store(true)
		for range 4 {
			wg.Go(func() {
				for x := uint64(1); !done.Load(); {
					for range 1000 {
						x = x*6364136223846793005 + 1442695040888963407
					}
				}
			})
		}
		m := measure()
		b.churn(scaled(4000, 200), mib)
		return m.outcome()
	})
}

// mixedSize draws a size from 64 bytes to 4 MiB, as many below 16 KiB as above.
func mixedSize(r *rand.Rand) int { return int(64 * math.Exp2(16*r.Float64())) }

// TestMixedSizes keeps 32 MiB live in two goroutines, and drops at random.
func TestMixedSizes(t *testing.T) {
	const live, goroutines = 32 * mib, 2
	// Twice the live bytes and 2*unlimited are due to pacing. The rest is idle memory of the heap, of which as
	// much stays as may come until the next collection: when sizes differ by a factor of 65,536, new blocks do
	// not always fit into the space of old ones.
	within(t, 3*live+5*unlimited, func() outcome {
		mustPace(Options{})
		b := newBuffers()
		m := measure()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(g)))
				type entry struct {
					b    *buffer
					size int
				}
				var held []entry
				sum := 0
				for total := 0; total < scaled(20<<10, 400)*mib/goroutines; {
					size := mixedSize(r)
					for sum+size > live/goroutines {
						i := r.IntN(len(held))
						sum -= held[i].size
						held[i] = held[len(held)-1]
						held[len(held)-1] = entry{}
						held = held[:len(held)-1]
					}
					held = append(held, entry{b.make(size), size})
					sum += size
					total += size
				}
				runtime.KeepAlive(held)
			})
		}
		wg.Wait()
		return m.outcome()
	})
}

// TestGrowthToGigabyte grows without anything to free.
func TestGrowthToGigabyte(t *testing.T) {
	for _, size := range []int{mib, 16 * kib} {
		t.Run(fmt.Sprintf("size=%dKiB", size/kib), func(t *testing.T) {
			o := inChild(t, func() outcome {
				mustPace(Options{})
				b := newBuffers()
				m := measure()
				live := b.grow(scaled(1<<10, 128), size)
				o := m.outcome()
				runtime.KeepAlive(live)
				return o
			})
			report(t, o)
			if o.Stats.Cycles == 0 || o.Stats.Cycles > 12 {
				t.Errorf("%d collections were started", o.Stats.Cycles)
			}
			t.Logf("%.2f %% of the time", 100*float64(o.Stats.CPUTime)/float64(o.Elapsed)/float64(runtime.GOMAXPROCS(0)))
		})
	}
}

// goHeap returns live Go objects, all of which are touched, and which the
// collector follows.
func goHeap(bytes int) [][]byte {
	const size = 4 * kib
	live := make([][]byte, bytes/size)
	for i := range live {
		live[i] = make([]byte, size-8) // of its class
		fillBytes(live[i])
	}
	return live
}

// TestLargeGoHeap has little churn beside a large Go heap, with GOGC so low that
// only the heap's size is in the way of more collections.
func TestLargeGoHeap(t *testing.T) {
	heap := scaled(2<<10, 48) * mib
	churned := 4 * heap
	for _, gogc := range []int{25, 100} {
		t.Run(fmt.Sprintf("GOGC=%d", gogc), func(t *testing.T) {
			o := inChild(t, func() outcome {
				live := goHeap(heap)
				debug.SetGCPercent(gogc)
				runtime.GC()
				mustPace(Options{})
				memory := own.NewMemory(nil, own.MemoryOptions{})
				m := measure()
				var held [64]*own.Bytes // 64 MiB
				for i := range churned / mib {
					b, err := memory.NewBytes(mib)
					if err != nil {
						panic(err)
					}
					held[i%len(held)] = b
				}
				o := m.outcome()
				runtime.KeepAlive(held)
				runtime.KeepAlive(live)
				return o
			})
			report(t, o)
			if most := int64(churned / (heap / 3)); o.Stats.Cycles == 0 || o.Stats.Cycles > most {
				t.Errorf("%d collections were started while %d MiB came and went beside %d MiB of Go heap, want at most %d", o.Stats.Cycles, churned/mib, heap/mib, most)
			}
		})
	}
}

// underLimit is a load that fits within limit: a Go heap of two fifths of it, a
// quarter live outside, and many forgotten bytes, of Go and outside. A request waits for as
// long as it takes.
func underLimit(limit int64, requests int) outcome {
	const goroutines = 2
	longest.limit = time.Hour
	memory := own.NewMemory(nil, own.MemoryOptions{Batch: 1})
	m := measure()
	heap := goHeap(int(limit / mib * 100 / 256 * mib))
	var done, failed atomic.Int64
	var slowest atomic.Int64
	var wrong atomic.Pointer[string]
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(g)))
			var held []*own.Bytes
			var garbage []byte
			sum := 0
			for range requests / goroutines {
				size := r.IntN(2 * mib)
				for sum+size > int(limit)/4/goroutines {
					i := r.IntN(len(held))
					sum -= held[i].Len()
					held[i] = held[len(held)-1]
					held = held[:len(held)-1]
				}
				asked := time.Now()
				b, err := memory.NewBytes(size)
				slowest.Store(max(slowest.Load(), int64(time.Since(asked))))
				if err != nil {
					text := err.Error()
					wrong.Store(&text)
					failed.Add(1)
					continue
				}
				done.Add(1)
				b.Use(fillBytes)
				held = append(held, b)
				sum += size
				if r.IntN(4) == 0 {
					garbage = make([]byte, r.IntN(256*kib))
					fillBytes(garbage)
				}
			}
			runtime.KeepAlive(held)
			runtime.KeepAlive(garbage)
		})
	}
	wg.Wait()
	o := m.outcome()
	runtime.KeepAlive(heap)
	o.Done, o.Failed, o.Longest = int(done.Load()), int(failed.Load()), time.Duration(slowest.Load())
	if text := wrong.Load(); text != nil {
		o.Wrong = append(o.Wrong, fmt.Sprintf("%d of %d requests that fit were refused: %s", o.Failed, o.Done+o.Failed, *text))
	}
	return o
}

func TestLimitHolds(t *testing.T) {
	limit := int64(scaled(256, 128)) * mib
	within(t, limit+limit/10, func() outcome {
		mustPace(Options{Limit: limit})
		return underLimit(limit, scaled(10_000, 250))
	})
}

// TestLimitTooSmall requests more than the limit, in each way, until it is
// refused, and goes on with less.
func TestLimitTooSmall(t *testing.T) {
	const limit = 64 * mib
	for name, door := range map[string]func() (get func() (any, error)){
		"Heap": func() func() (any, error) {
			b := newBuffers()
			return func() (any, error) {
				p, err := b.heap.TryMalloc(mib)
				if err != nil {
					return nil, err
				}
				m := new(image)
				runtime.AddCleanup(m, func(p uintptr) { b.heap.Free(cheap.Pointer(p)) }, uintptr(p))
				return m, nil
			}
		},
		"Memory": func() func() (any, error) {
			memory := own.NewMemory(nil, own.MemoryOptions{})
			return func() (any, error) { return memory.NewBytes(mib) }
		},
		"Pool": func() func() (any, error) {
			pool := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
			return func() (any, error) {
				room, err := pool.Reserve(context.Background(), mib)
				if err != nil {
					return nil, err
				}
				b := new(own.Number[int])
				return b, b.OwnWith(pool, 1, own.With{Room: room})
			}
		},
		"Account": func() func() (any, error) {
			a := NewAccount(AccountOptions{})
			return func() (any, error) { return newImage(a, mib) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := inChild(t, func() (o outcome) {
				p := mustPace(Options{Limit: limit})
				get := door()
				complain := func(format string, args ...any) { o.Wrong = append(o.Wrong, fmt.Sprintf(format, args...)) }
				for round := range 3 {
					var held []any
					for o.Failed == round {
						begin, before := time.Now(), started(p)
						x, err := get()
						o.Longest = max(o.Longest, time.Since(begin))
						o.Cycles = max(o.Cycles, started(p)-before)
						switch e := (*LimitError)(nil); {
						case err == nil:
							held = append(held, x)
							o.Done++
						case !errors.Is(err, cheap.ErrLimit) || !errors.As(err, &e) || e.Limit != limit || e.Wanted < mib || e.Held > limit:
							complain("round %d: after %d MiB: %v", round, len(held), err)
							return
						default:
							o.Failed++
						}
						if len(held) > limit/mib {
							complain("round %d: %d MiB were handed out", round, len(held))
							return
						}
					}
					if len(held) < limit/mib/2 {
						complain("round %d: refused after %d MiB", round, len(held))
					}
					runtime.KeepAlive(held)
				}
				o.Stats = ReadStats()
				return o
			})
			report(t, o)
			if o.Cycles > 10 { // a heap asks for them one by one
				t.Errorf("%d collections were started for one request", o.Cycles)
			}
		})
	}
}

// TestLockHeld allocates with a lock held that the release function takes, which
// is wrong, and still comes to an end.
func TestLockHeld(t *testing.T) {
	for _, limit := range []int64{0, 24 * mib} {
		t.Run(fmt.Sprintf("limit=%dMiB", limit/mib), func(t *testing.T) {
			o := inChild(t, func() (o outcome) {
				longest = usual
				mustPace(Options{Limit: limit})
				var mu sync.Mutex
				released := 0
				h, err := cheap.NewHeap(cheap.HeapOptions{})
				if err != nil {
					panic(err)
				}
				pool := own.NewPool(own.Options{Release: func(_ any, resources []uintptr) error {
					mu.Lock()
					defer mu.Unlock()
					for _, r := range resources {
						h.Free(cheap.Pointer(r))
						released++
					}
					return nil
				}})
				var held [2]*buffer
				for i := 0; o.Done < scaled(300, 30); i++ {
					mu.Lock()
					start := time.Now()
					p, err := h.TryMalloc(mib)
					if err == nil {
						b := new(buffer)
						if err = b.h.Own(pool, p, mib); err == nil {
							held[i%2] = b
						} else {
							h.Free(p)
						}
					}
					o.Longest = max(o.Longest, time.Since(start))
					mu.Unlock()
					switch {
					case err == nil:
						o.Done++
					case errors.Is(err, cheap.ErrLimit):
						o.Failed++
					default:
						o.Wrong = append(o.Wrong, err.Error())
					}
				}
				runtime.KeepAlive(held)
				for { // of those that were forgotten
					mu.Lock()
					n := released
					mu.Unlock()
					if n > 0 {
						break
					}
					runtime.GC()
				}
				o.Stats = ReadStats()
				return o
			})
			report(t, o)
		})
	}
}

// TestCgroup runs a load in a cgroup whose memory is too small for it without a
// limit. On a machine where a test cannot make a cgroup, TestCgroupLimit is the
// only test of this.
func TestCgroup(t *testing.T) {
	testenv.Skip(t, "asan emulator", "the memory of the sanitizer and of the emulator counts, too")
	const limit = 256 * mib
	var enter func(*exec.Cmd)
	if !testchild.Is() {
		var err error
		if enter, err = testchild.Cgroup(t, limit); err != nil {
			t.Logf("no cgroup can be made here: %v", err)
			return
		}
	}
	o := inChild(t, func() outcome {
		byKernel()
		mustPace(Options{LimitFromEnvironment: true})
		return underLimit(200*mib, scaled(10_000, 200))
	}, enter)
	atMost(t, o, limit)
	if o.Stats.Limit != limit || o.Stats.Used <= 0 || o.Stats.Used > limit {
		t.Errorf("the limit is %d, want %d; %d bytes count", o.Stats.Limit, limit, o.Stats.Used)
	}
}
