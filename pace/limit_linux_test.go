//go:build !race && !cheap_gomem

package pace

import (
	"runtime"
	"testing"
	"time"

	"github.com/cheapgo/cheap/own"
)

// TestLimitBesideGoHeap has a Go heap that takes most of the limit, and owners of 256 KiB that
// are forgotten in what is left: each collection marks much, and frees little. Requests
// share the collections, so there are few, and none fails.
func TestLimitBesideGoHeap(t *testing.T) {
	heapSize, limit, owners := scaled(512, 64)*mib, int64(scaled(800, 100))*mib, scaled(20_000, 1000)
	o := inChild(t, func() outcome {
		patient(&longest)
		longest.limit = time.Hour
		heap := goHeap(heapSize)
		mustPace(Options{Limit: limit})
		memory := own.NewMemory(nil, own.MemoryOptions{Batch: 1})
		m := measure()
		var o outcome
		var r reader
		before := r.read().cpu
		for range owners {
			asked := time.Now()
			b, err := memory.NewBytes(256 * kib)
			o.Longest = max(o.Longest, time.Since(asked))
			if err != nil {
				o.Failed++
				continue
			}
			o.Done++
			b.Use(fillBytes)
		}
		share := float64(r.read().cpu-before) / float64(time.Since(m.begin)) / float64(runtime.GOMAXPROCS(0))
		is := m.outcome()
		runtime.KeepAlive(heap)
		is.Done, is.Failed, is.Longest, is.Share = o.Done, o.Failed, o.Longest, share
		return is
	})
	report(t, o)
	t.Logf("%.1f %% of the time in collections; %.0f owners a second", 100*o.Share, float64(o.Done)/o.Elapsed.Seconds())
	if o.Failed > 0 || o.Stats.Cycles > int64(owners)/10 {
		t.Errorf("%d owners, %d refused; %d collections", o.Done, o.Failed, o.Stats.Cycles)
	}
}
