package inspect

import (
	"flag"
	"math/bits"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

var long = flag.Bool("inspect.long", false, "read 100,000 times in TestScrapes, and allocate more where a profile is compared with the truth")

// TestScrapes reads while goroutines allocate, and looks for what would make them slower: no
// goroutine waits for a lock that a reader holds, and a reader does not stop the world, and does not
// collect.
//
// Nothing that works beside the goroutines asks for the locks: neither the timer that takes idle
// caches, nor what package own does after a collection. They may wait for a reader.
func TestScrapes(t *testing.T) {
	defer cheap.SetDecay(cheap.SetDecay(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	h, memory := scraped(t)
	const reads = 300
	rounds := 1
	if *long {
		rounds = 100_000 / reads
	}
	for range rounds {
		testwait.Collect(t)
		readBeside(t, h, memory, reads)
	}
}

// readBeside reads so often beside goroutines that allocate.
func readBeside(t *testing.T, h *cheap.Heap, memory *own.Memory, reads int) {
	var batches atomic.Int64
	stops, all := stoppedWorlds(), collections()
	waits := waitsOf(func() {
		load(h, memory, func(_ int, mallocs func()) { mallocs(); batches.Add(1) }, func() {
			for range reads {
				for n := batches.Load(); batches.Load() == n; { // each read is beside Mallocs
					runtime.Gosched()
				}
				ReadMetrics()
			}
		})
	})
	for _, w := range waits {
		t.Errorf("goroutines have waited for a reader:\n%s", w)
	}
	// Package own stops it as well, once after a collection: that before may be the last.
	if n := stoppedWorlds() - stops; n > 1 {
		t.Errorf("the world was stopped %d times in %d reads, want once at most", n, reads)
	}
	if n := collections() - all; n > 0 {
		t.Errorf("%d collections were asked for in %d reads", n, reads)
	}
}

// scraped returns a heap and a Memory beside others, all of whose caches and windows are made.
func scraped(t *testing.T) (*cheap.Heap, *own.Memory) {
	h := newHeap(t, "scraped")
	memory := own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "scraped"})
	for range 20 {
		newHeap(t, "beside").Malloc(100)
	}
	for range 3 {
		var batches atomic.Int64
		load(h, memory, func(_ int, mallocs func()) { mallocs(); batches.Add(1) }, func() {
			for batches.Load() < 300 {
				runtime.Gosched()
			}
		})
	}
	return h, memory
}

// load allocates in a goroutine for each P while f runs. batch is called with the number of the
// goroutine and with a function that it calls, which is 1,000 Mallocs.
func load(h *cheap.Heap, memory *own.Memory, batch func(g int, mallocs func()), f func()) {
	var stop atomic.Bool
	var work sync.WaitGroup
	for g := range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			var blocks [1000]unsafe.Pointer
			for i := 0; !stop.Load(); i++ {
				batch(g, func() {
					for j := range blocks {
						blocks[j] = h.Malloc(16 + (i+j)*37%2000)
					}
				})
				for _, p := range blocks {
					h.Free(p)
				}
				if b, err := memory.NewBytes(100); err == nil {
					b.Close()
				}
				runtime.Gosched() // f needs a P, too
			}
		})
	}
	f()
	stop.Store(true)
	work.Wait()
}

// stoppedWorlds returns how often the world was stopped for another reason than a collection.
func stoppedWorlds() (n uint64) {
	m := []metrics.Sample{{Name: "/sched/pauses/total/other:seconds"}}
	metrics.Read(m)
	for _, c := range m[0].Value.Float64Histogram().Counts {
		n += c
	}
	return n
}

// collections returns how many there were.
func collections() uint64 {
	m := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(m)
	return m[0].Value.Uint64()
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
		// A goroutine that finds the shard of its P locked uses another one, which TestOwnBesideAReader
		// of package intake looks at. It may meet the reader there: the reader has the lock for some loads.
		if strings.Contains(text, "(*Intake).Census\n") {
			continue
		}
		// The runtime's own locks are in the profile, too: those of collections.
		if strings.HasPrefix(text, "sync.") && strings.Contains(text, "inspect.ReadMetrics\n") {
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
