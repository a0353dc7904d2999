//go:build cgo && !race && !cheap_gomem && !asan

package pace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
	_ "github.com/cheapgo/cheap/libc/arenas"
	"github.com/cheapgo/cheap/own"
)

// imageSize is the size of the next image, from 64 KiB to 4 MiB.
func imageSize() int { return int(64 * kib * math.Exp2(6*rand.Float64())) }

// forgetImages has goroutines make images in C, declare their sizes times a factor, and forget them.
func forgetImages(goroutines, images int, factor float64, reserve bool) (o outcome) {
	pool := serverPool()
	var left, refused atomic.Int64
	left.Store(int64(images))
	m := measure()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				size := imageSize()
				declared := int(float64(size) * factor)
				h := new(own.Handle[unsafe.Pointer])
				var room own.Room
				if reserve {
					var err error
					if room, err = pool.Reserve(context.Background(), declared); err != nil {
						refused.Add(1)
						continue
					}
				}
				p := cMake(size)
				fillBytes(unsafe.Slice((*byte)(p), size)[unsafe.Sizeof(size):])
				var err error
				if reserve {
					err = h.OwnWith(pool, p, own.With{Room: room})
				} else {
					err = h.Own(pool, p, declared)
				}
				if err != nil {
					panic(err)
				}
				runtime.Gosched()
				runtime.KeepAlive(h)
			}
		})
	}
	wg.Wait()
	o = m.outcome()
	o.Done, o.Failed = images, int(refused.Load())
	return o
}

// TestContainer makes images in a cgroup in which a quarter of them would not fit, with sizes that
// are declared rightly and wrongly. The kernel kills the process if it takes too much.
func TestContainer(t *testing.T) {
	const limit = 128 * mib
	for _, row := range []struct {
		factor  float64
		reserve bool
	}{{1, false}, {1, true}, {5, false}, {0.2, true}, {0, false}} {
		t.Run(fmt.Sprintf("factor=%v/reserve=%v", row.factor, row.reserve), func(t *testing.T) {
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
				return forgetImages(8, scaled(20_000, 500), row.factor, row.reserve)
			}, enter)
			atMost(t, o, limit)
			if o.Failed > 0 || o.Stats.Limit != limit || o.Stats.Arenas != 0 {
				t.Errorf("%d refused, the limit is %d, %d arenas", o.Failed, o.Stats.Limit, o.Stats.Arenas)
			}
		})
	}
}

// TestResidentLimit is TestContainer for a limit that the program has set. Nothing kills it, so more
// may be resident for a moment: what goroutines allocate before they declare it.
func TestResidentLimit(t *testing.T) {
	const limit = 128 * mib
	o := inChild(t, func() outcome {
		byKernel()
		mustPace(Options{Limit: limit})
		return forgetImages(4, scaled(20_000, 500), 1, false)
	})
	atMost(t, o, limit+limit/4)
}

// TestAllInUse keeps all images, until there is no room. Requests fail then, with an error that says
// what is resident, and not many collections are tried for each.
func TestAllInUse(t *testing.T) {
	const limit = 96 * mib
	o := inChild(t, func() (o outcome) {
		byKernel()
		longestMetered.limit = time.Millisecond
		mustPace(Options{Limit: limit})
		pool := serverPool()
		var album []*own.Handle[unsafe.Pointer]
		var e *LimitError
		m := measure()
		for o.Failed < 20 && o.Done < 1000 {
			room, err := pool.Reserve(context.Background(), mib)
			if err != nil {
				if !errors.As(err, &e) || !errors.Is(err, cheap.ErrLimit) || e.Used < limit/2 || e.Used > limit || e.Limit != limit {
					o.Wrong = append(o.Wrong, fmt.Sprintf("%v (%+v)", err, e))
				}
				o.Failed++
				continue
			}
			h, p := new(own.Handle[unsafe.Pointer]), cMake(mib)
			fillBytes(unsafe.Slice((*byte)(p), mib)[unsafe.Sizeof(mib):])
			if err := h.OwnWith(pool, p, own.With{Room: room}); err != nil {
				panic(err)
			}
			album = append(album, h)
			o.Done++
		}
		stats := ReadStats()
		done, failed, wrong := o.Done, o.Failed, o.Wrong
		o = m.outcome()
		o.Done, o.Failed, o.Wrong, o.Stats = done, failed, wrong, stats
		// A smaller limit refuses as well, and a larger one makes room.
		SetLimit(limit / 2)
		if _, err := pool.Reserve(context.Background(), mib); !errors.Is(err, cheap.ErrLimit) {
			o.Wrong = append(o.Wrong, fmt.Sprint("half of the limit: ", err))
		}
		SetLimit(2 * limit)
		if room, err := pool.Reserve(context.Background(), mib); err != nil {
			o.Wrong = append(o.Wrong, fmt.Sprint("twice the limit: ", err))
		} else {
			room.Close()
		}
		for _, h := range album {
			h.Close()
		}
		Stop()
		return o
	})
	atMost(t, o, limit)
	if o.Failed != 20 || o.Done < 30 || o.Stats.Cycles > 400 {
		t.Errorf("%d images, %d refused, after %d collections", o.Done, o.Failed, o.Stats.Cycles)
	}
}

// TestCachesAtLimit keeps images in three caches, whose functions close them: eight times what fits. No request is
// refused, and the limit holds.
func TestCachesAtLimit(t *testing.T) {
	const limit, images = 128 * mib, 1024
	o := inChild(t, func() (o outcome) {
		byKernel()
		mustPace(Options{Limit: limit})
		pool := serverPool()
		var caches [3]struct {
			sync.Mutex
			images []*own.Handle[unsafe.Pointer]
		}
		m := measure()
		for i := range caches {
			c := &caches[i]
			held := func() int64 { c.Lock(); defer c.Unlock(); return int64(len(c.images)) * mib }
			defer OnPressure(fmt.Sprint("cache ", i), Share{Held: held}, func(want int64) (freed int64) {
				c.Lock()
				defer c.Unlock()
				for ; freed < want && len(c.images) > 0; freed += mib {
					c.images[0].Close()
					c.images = c.images[1:]
				}
				return freed
			})()
		}
		var wg sync.WaitGroup
		var refused atomic.Int64
		for i := range caches {
			wg.Go(func() {
				c := &caches[i]
				for range images / len(caches) {
					room, err := pool.Reserve(context.Background(), mib)
					if err != nil {
						refused.Add(1)
						continue
					}
					h, p := new(own.Handle[unsafe.Pointer]), cMake(mib)
					fillBytes(unsafe.Slice((*byte)(p), mib)[unsafe.Sizeof(mib):])
					if err := h.OwnWith(pool, p, own.With{Room: room}); err != nil {
						panic(err)
					}
					c.Lock()
					c.images = append(c.images, h)
					c.Unlock()
				}
			})
		}
		wg.Wait()
		stats := ReadStats()
		o = m.outcome()
		o.Failed, o.Stats = int(refused.Load()), stats
		return o
	})
	atMost(t, o, limit)
	if o.Failed > 0 || len(o.Stats.Caches) != 3 {
		t.Errorf("%d requests were refused", o.Failed)
	}
	for _, c := range o.Stats.Caches {
		t.Logf("%+v", c)
		if c.Freed < images*mib/8 || c.Slow {
			t.Errorf("%+v", c)
		}
	}
}

// TestAllLive keeps all images and does not ask for room, so that more is resident than may be. A
// goroutine waits for one collection, which finds nothing to release, and not for a second of them.
func TestAllLive(t *testing.T) {
	o := inChild(t, func() (o outcome) {
		byKernel()
		mustPace(Options{Limit: 64 * mib})
		pool := serverPool()
		album := make([]own.Handle[unsafe.Pointer], 200)
		m := measure()
		for i := range album {
			p := cMake(mib)
			fillBytes(unsafe.Slice((*byte)(p), mib)[unsafe.Sizeof(mib):])
			if err := album[i].Own(pool, p, mib); err != nil {
				panic(err)
			}
		}
		o = m.outcome()
		for i := range album {
			album[i].Close()
		}
		Stop()
		return o
	})
	if s := o.Stats; s.Waits < 100 || s.Cycles > 3*s.Waits {
		t.Errorf("%d collections in %d waits", s.Cycles, s.Waits)
	}
}

// TestLimitBelowUse has a limit below what the Go heap needs, in a program that owns nothing and does
// nothing. No collection would help, so none begins.
func TestLimitBelowUse(t *testing.T) {
	o := inChild(t, func() (o outcome) {
		byKernel()
		heap := make([]byte, 64*mib)
		clear(heap)
		m := measure()
		p := mustPace(Options{Limit: 32 * mib})
		for range 20 { // as guard does
			p.mu.Lock()
			p.adjust()
			p.launch(false)
			p.mu.Unlock()
		}
		o = m.outcome()
		if begun, _ := p.counts(); begun > 0 {
			o.Wrong = append(o.Wrong, fmt.Sprintf("%d collections have begun", begun))
		}
		// Without the limit nothing of it stays.
		SetLimit(0)
		if n := account.Process.Scale(); n != 1 || p.scarce.Load() {
			o.Wrong = append(o.Wrong, fmt.Sprintf("the scale is %d, scarce %v", n, p.scarce.Load()))
		}
		testwait.Until(t, "guard to end", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return !p.guarding
		})
		runtime.KeepAlive(heap)
		Stop()
		return o
	})
	if o.Stats.Used < 32*mib {
		t.Errorf("%d bytes are used", o.Stats.Used)
	}
}
