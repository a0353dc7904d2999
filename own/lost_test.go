package own

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

var long = flag.Bool("own.long", false, "run 1,000 processes for each kind of TestNothingIsLost, and ten million resources in TestHammerExactlyOnce")

// TestNothingIsLost lowers GOMAXPROCS from 7 to 2 while goroutines own and forget, and
// collections run. The runtime may lose cleanups then; see package internal/watch/gcwatch.
// All that was forgotten is released, within five collections at a GOMAXPROCS of 2 if the
// machine is not late; with -own.long, nearly always.
// It is so, too, if a finalizer of the program never returns, and if a cleanup of the
// program never returns: with fewer than eight Ps there is one goroutine for each.
//
// Each process lowers GOMAXPROCS several times and looks once.
func TestNothingIsLost(t *testing.T) {
	processes := 2
	if *long {
		processes = 1000
	}
	for name, block := range map[string]func(){
		"plain":     func() {},
		"finalizer": blockFinalizers,
		"cleanup":   blockCleanups,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost, late := 0, 0
			took := map[int]int{}
			for i := range processes {
				output, passed := testchild.Test(t, func(t *testing.T) {
					block()
					seed, _ := strconv.Atoi(os.Getenv("SEED"))
					loseCleanups(t, uint64(seed))
				}, "SEED="+strconv.Itoa(i), "GOMAXPROCS=7", "GOGC=off")
				if testchild.Is() {
					return
				}
				if n := regexp.MustCompile(`collections: (\d+)`).FindStringSubmatch(output); passed && n != nil {
					k, _ := strconv.Atoi(n[1])
					if took[k]++; k > usualCollections {
						late++
					}
				} else if lost++; lost < 5 {
					t.Error(output)
				}
			}
			t.Logf("%d processes, %d lost something; processes by number of collections: %v", processes, lost, took)
			if *long && late > processes/50 {
				t.Errorf("%d of %d processes took more than %d collections", late, processes, usualCollections)
			}
		})
	}
}

const (
	usualCollections = 5
	mostCollections  = 50 // what is lost is not released by any of them
)

// blockFinalizers has a finalizer that never returns.
func blockFinalizers() {
	var blocked atomic.Bool
	testcall.Aside(func() {
		runtime.SetFinalizer(new([100]byte), func(*[100]byte) { blocked.Store(true); select {} })
	})
	for !blocked.Load() {
		runtime.GC()
	}
}

// blockCleanups has a cleanup that never returns.
func blockCleanups() {
	var blocked atomic.Bool
	testcall.Aside(func() {
		runtime.AddCleanup(new([100]byte), func(int) { blocked.Store(true); select {} }, 0)
	})
	for !blocked.Load() {
		runtime.GC()
	}
}

// loseCleanups owns and forgets in several goroutines, lowers GOMAXPROCS during a
// sweep, and looks how many collections it takes until all is released.
func loseCleanups(t *testing.T, seed uint64) {
	debug.SetGCPercent(100)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var made, released atomic.Int64
	h := newHeap(t)
	m := NewMemory(h, MemoryOptions{})
	release := func(_ any, r []uintptr) error { released.Add(int64(len(r))); return nil }
	p := NewPool(Options{Release: release})
	exact := NewPool(Options{Release: release, Batch: 1})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 7 {
		wg.Go(func() {
			var last [16]*[64]*int // so that the collector has something to do
			for i := 0; !stop.Load(); i++ {
				last[i%len(last)] = new([64]*int)
				if i%16 != 0 {
					continue
				}
				var err error
				switch i / 16 % 4 {
				case 0:
					err = p.own(&new(object).owner, uintptr(i), 100)
					made.Add(1)
				case 1:
					err = exact.own(&new(object).owner, uintptr(i), 100)
					made.Add(1)
				case 2:
					_, err = m.NewBytes(100)
				case 3:
					_, err = m.NewGroup()
				}
				testcall.Want(t, err)
			}
			runtime.KeepAlive(last)
		})
	}
	for range 1 + rnd.IntN(4) {
		runtime.GOMAXPROCS(7)
		enough := made.Load() + 2000 + rnd.Int64N(6000)
		wait(t, "some are made", func() bool { return made.Load() >= enough })
		runtime.GOMAXPROCS(2)
	}
	stop.Store(true)
	wg.Wait()
	debug.SetGCPercent(-1)
	done := func() bool {
		return released.Load() == made.Load() && m.Stats().Live == 0 && h.Stats().Blocks == 0
	}
	for n := range mostCollections + 1 {
		if n > 0 {
			var told atomic.Bool
			gcwatch.Next(func() { told.Store(true) })
			runtime.GC()
			wait(t, "the collection is known", told.Load)
		}
		flush(t)
		if done() {
			fmt.Println("collections:", n)
			return
		}
	}
	t.Errorf("after %d collections %d of %d are not released; pool %+v, exact %+v, memory %+v",
		mostCollections, made.Load()-released.Load(), made.Load(), p.Stats(), exact.Stats(), m.Stats())
}
