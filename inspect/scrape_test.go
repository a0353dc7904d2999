//go:build unix

package inspect

import (
	"flag"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

var long = flag.Bool("inspect.long", false, "run TestScrapes for ten seconds each way, seven times, and compare times")

// TestScrapes reads a thousand times a second while goroutines allocate. No goroutine that
// allocates waits for a lock that a reader holds. The long form also compares how long a
// thousand calls of Malloc take with how long they take beside a goroutine that uses the same
// processor time and reads nothing.
func TestScrapes(t *testing.T) {
	h := newHeap(t, "scraped")
	memory := own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "scraped"})
	for range 20 {
		newHeap(t, "beside").Malloc(100)
	}
	for range 3 { // all caches and windows are made
		load(h, memory, 100*time.Millisecond, nil)
	}
	cost := costOfRead(500)

	if !*long {
		waits := waitsOf(func() { load(h, memory, time.Second, func() { Read() }) })
		for _, w := range waits {
			t.Errorf("goroutines have waited for a reader:\n%s", w)
		}
		return
	}
	var ratios, scraped, controlled []float64
	reads := 0
	waits := waitsOf(func() {
		for range 7 {
			x := load(h, memory, 10*time.Second, func() { Read(); reads++ })
			y := load(h, memory, 10*time.Second, func() { spin(cost) })
			scraped, controlled, ratios = append(scraped, x), append(controlled, y), append(ratios, x/y)
		}
	})
	for _, w := range waits {
		t.Errorf("goroutines have waited for a reader:\n%s", w)
	}
	slices.Sort(ratios)
	t.Logf("a Read takes %v of processor time; %.0f in a second; p99.9 of 1,000 Mallocs: %.0f µs beside reads, %.0f µs beside the control; the ratios are %.3f",
		cost, float64(reads)/70, scraped, controlled, ratios)
	if ratio := ratios[len(ratios)/2]; ratio > 1.1 {
		t.Errorf("the ratio is %.3f, the bar is 1.1", ratio)
	}
}

// load allocates in a goroutine for each P, and calls beside a thousand times a second, if it is
// not nil. It returns the time in µs that 999 of 1,000 batches of 1,000 Mallocs do not exceed.
func load(h *cheap.Heap, memory *own.Memory, d time.Duration, beside func()) float64 {
	var stop atomic.Bool
	var work sync.WaitGroup
	times := make([][]time.Duration, runtime.GOMAXPROCS(0))
	for g := range times {
		times[g] = make([]time.Duration, 0, 1<<20)
		work.Go(func() {
			var blocks [1000]unsafe.Pointer
			for i := 0; !stop.Load(); i++ {
				begin := time.Now()
				for j := range blocks {
					blocks[j] = h.Malloc(16 + (i+j)*37%2000)
				}
				times[g] = append(times[g], time.Since(begin))
				for _, p := range blocks {
					h.Free(p)
				}
				if b, err := memory.NewBytes(100); err == nil {
					b.Close()
				}
			}
		})
	}
	if beside != nil {
		work.Go(func() {
			for next := time.Now(); !stop.Load(); next = next.Add(time.Millisecond) {
				time.Sleep(time.Until(next))
				beside()
			}
		})
	}
	time.Sleep(d)
	stop.Store(true)
	work.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	return float64(all[len(all)*999/1000].Nanoseconds()) / 1e3
}

// costOfRead returns the processor time of a Read, with that of the collections that it causes.
func costOfRead(n int) time.Duration {
	begin := processorTime()
	for range n {
		Read()
	}
	return (processorTime() - begin) / time.Duration(n)
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // there is no other error than a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func spin(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// waitsOf returns the stacks of the mutex profile of f that are of a reader: it has held a lock
// that another goroutine has waited for.
func waitsOf(f func()) (waits []string) {
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	before := map[[32]uintptr]int64{}
	for _, r := range mutexProfile() {
		before[r.Stack0] = r.Count
	}
	f()
	for _, r := range mutexProfile() {
		if r.Count == before[r.Stack0] {
			continue
		}
		text := ""
		for frames := runtime.CallersFrames(r.Stack()); ; {
			f, more := frames.Next()
			text += f.Function + "\n"
			if !more {
				break
			}
		}
		// On 32-bit systems a reader takes the lock of a class for two loads.
		if bits.UintSize == 32 && strings.Contains(text, "(*class).peek\n") {
			continue
		}
		// The runtime's own locks are in the profile, too: those of collections.
		if strings.HasPrefix(text, "sync.") && strings.Contains(text, "inspect.Read\n") {
			waits = append(waits, text)
		}
	}
	return waits
}

func mutexProfile() []runtime.BlockProfileRecord {
	for n := 100; ; n *= 2 {
		records := make([]runtime.BlockProfileRecord, n)
		if found, ok := runtime.MutexProfile(records); ok {
			return records[:found]
		}
	}
}
