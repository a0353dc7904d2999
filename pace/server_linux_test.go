//go:build cgo && !race && !cheap_gomem

//cheapvet:ignore perobject this is what owners are compared with

package pace

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

var (
	serverTurn   = flag.Duration("pace.turn", 150*time.Millisecond, "how long each way serves in each turn of BenchmarkServer")
	serverTurns  = flag.Int("pace.turns", 1, "number of turns of BenchmarkServer")
	serverBeside = flag.Int("pace.beside", 0, "number of goroutines that compute beside BenchmarkServer")
)

// cBytes counts what is in C: the size of each image is its first word. inUse counts
// the images that a request has made and is not done with.
var cBytes, inUse high

// A high is a number and its largest value.
type high struct{ now, most, sum, samples atomic.Int64 }

func (h *high) add(n int64) {
	now := h.now.Add(n)
	for {
		most := h.most.Load()
		if now <= most || h.most.CompareAndSwap(most, now) {
			return
		}
	}
}

func (h *high) sample() {
	h.sum.Add(h.now.Load())
	h.samples.Add(1)
}

func (h *high) mean() int64 { return h.sum.Load() / max(h.samples.Load(), 1) }

// reset forgets the past.
func (h *high) reset() {
	h.most.Store(h.now.Load())
	h.sum.Store(0)
	h.samples.Store(0)
}

func cMake(size int) unsafe.Pointer {
	p := libc.Allocator{}.Malloc(size)
	if p == nil {
		panic("no memory")
	}
	*(*int)(p) = size
	cBytes.add(int64(size))
	inUse.add(int64(size))
	return p
}

func cFree(p unsafe.Pointer) {
	cBytes.add(-int64(*(*int)(p)))
	libc.Allocator{}.Free(p)
}

// serverImage is the object of a binding.
type serverImage struct {
	owner own.Handle[unsafe.Pointer]
	c     unsafe.Pointer
}

// A way is one of those in which the images of the server are freed.
type way struct {
	name  string
	paced *Options // to be started with, or nil
	make  func(size int) (*serverImage, error)
	done  func(*serverImage) // nil if images are forgotten
}

func serverPool() *own.Pool {
	return own.NewPool(own.Options{Name: "image", Release: func(_ any, resources []uintptr) error {
		for _, r := range resources {
			cFree(cheap.Pointer(r))
		}
		return nil
	}})
}

// serverWays returns the ways. limit is that of the last one.
func serverWays(limit int64) []way {
	pool := serverPool()
	forget := func(size int) (*serverImage, error) {
		m := &serverImage{c: cMake(size)}
		return m, m.owner.Own(pool, m.c, size)
	}
	reserve := func(size int) (*serverImage, error) {
		room, err := pool.Reserve(context.Background(), size)
		if err != nil {
			return nil, err
		}
		m := &serverImage{c: cMake(size)}
		return m, m.owner.OwnWith(pool, m.c, own.With{Room: room})
	}
	return []way{
		{"Close", nil, forget, func(m *serverImage) { m.owner.Close() }},
		{"AddCleanup", nil, func(size int) (*serverImage, error) {
			m := &serverImage{c: cMake(size)}
			runtime.AddCleanup(m, func(p uintptr) { cFree(cheap.Pointer(p)) }, uintptr(m.c))
			return m, nil
		}, nil},
		{"own", nil, forget, nil},
		{"own+pace", &Options{}, forget, nil},
		{"limit", &Options{Limit: limit}, forget, nil},
		{"Reserve", &Options{Limit: limit}, reserve, nil},
	}
}

// handler makes an image, writes it, waits, and forgets it or closes it.
func (w way) handler(refused *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		size := int(64 * kib * math.Exp2(6*rand.Float64())) // up to 4 MiB
		m, err := w.make(size)
		if err != nil {
			refused.Add(1)
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
			return
		}
		paint(unsafe.Slice((*byte)(m.c), size)[8:])
		garbage := make([]byte, 4*kib)
		time.Sleep(time.Millisecond + rand.N(3*time.Millisecond))
		out.Write(garbage[:16])
		inUse.add(-int64(size))
		if w.done != nil {
			w.done(m)
		}
		runtime.KeepAlive(m)
	})
}

// paint writes an image, at about a gigabyte a second.
func paint(b []byte) {
	x := byte(1)
	for i := range b {
		x = x*5 + byte(i)
		b[i] = x
	}
}

// A served is what is measured of one way, in one turn.
type served struct {
	rate, p50, p99   float64 // in a second; in ms
	use, useMean     float64 // bytes, as all others
	c, cMean         float64
	resident, marked float64
	gc               float64 // share of the time of all processors
	waits, refused   float64
}

// serve has the way serve requests for a time, with no network.
func (w way) serve(b *testing.B, concurrency int, d time.Duration) (s served) {
	testwait.Until(b, "the end of what other turns have left", func() bool {
		runtime.GC()
		own.Flush(b.Context())
		return cBytes.now.Load() == 0
	})
	libc.Allocator{}.Trim()
	if w.paced != nil {
		testcall.Must(b, Start(*w.paced))
		defer Stop()
	}
	cBytes.reset()
	inUse.reset()
	var refused atomic.Int64
	h := w.handler(&refused)
	request := httptest.NewRequest("GET", "/", nil)
	took := make([][]time.Duration, concurrency)
	m := measure()
	var r reader
	first, begin := r.read(), time.Now()
	var over atomic.Bool
	var wg, samplers sync.WaitGroup
	samplers.Go(func() {
		for !over.Load() {
			cBytes.sample()
			inUse.sample()
			s.marked = max(s.marked, float64(r.read().live))
			time.Sleep(time.Millisecond)
		}
	})
	for i := range concurrency {
		wg.Go(func() {
			for time.Since(begin) < d {
				asked := time.Now()
				h.ServeHTTP(discard{}, request)
				took[i] = append(took[i], time.Since(asked))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begin)
	over.Store(true)
	samplers.Wait()
	last := r.read()
	o := m.outcome()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	ms := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1000 }
	s.rate, s.p50, s.p99 = float64(len(all))/elapsed.Seconds(), ms(0.5), ms(0.99)
	s.use, s.useMean = float64(inUse.most.Load()), float64(inUse.mean())
	s.c, s.cMean = float64(cBytes.most.Load()), float64(cBytes.mean())
	s.resident = float64(o.Resident)
	s.gc = 100 * float64(last.cpu-first.cpu) / float64(elapsed) / float64(runtime.GOMAXPROCS(0))
	s.refused = float64(refused.Load())
	if w.paced != nil {
		s.waits = float64(ReadStats().Waits) / float64(len(all))
	}
	return s
}

// discard is a response that is not read.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// BenchmarkServer serves requests that each make an image in C of 64 KiB to 4 MiB,
// write it, wait for 1 to 4 ms and forget it, with 4 KiB of garbage in Go. The ways to
// free the images take turns. The metrics are medians of the turns; -v shows a table of
// all ways. The flags say how long it takes: with
//
//	go test ./pace -run=- -bench=Server -benchtime=1x -v -pace.turn=10s -pace.turns=6
//
// each way serves for a minute.
func BenchmarkServer(b *testing.B) {
	const limit = 128 * mib
	var done atomic.Bool
	var beside sync.WaitGroup
	defer beside.Wait()
	defer done.Store(true)
	for range *serverBeside {
		beside.Go(func() {
			for x := uint64(1); !done.Load(); {
				for range 1000 {
					x = x*6364136223846793005 + 1442695040888963407
				}
			}
		})
	}
	ways := serverWays(limit)
	for _, concurrency := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("concurrency=%d", concurrency), func(b *testing.B) {
			turns := map[string][]served{}
			for b.Loop() {
				for turn := range *serverTurns {
					for i := range ways {
						w := ways[(i+turn)%len(ways)]
						turns[w.name] = append(turns[w.name], w.serve(b, concurrency, *serverTurn))
					}
				}
			}
			b.ReportMetric(0, "ns/op") // not the time of anything
			report := func(name string, f func(served) float64, unit string) {
				b.ReportMetric(median(turns[name], f), unit)
			}
			against := func(f func(served) float64, unit string) {
				var ratios []float64
				for i, s := range turns["own+pace"] {
					ratios = append(ratios, f(s)/f(turns["Close"][i]))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], unit)
			}
			against(func(s served) float64 { return s.rate }, "x-Close-requests")
			against(func(s served) float64 { return s.p99 }, "x-Close-p99")
			report("own+pace", func(s served) float64 { return s.c / mib }, "C-MiB")
			report("own+pace", func(s served) float64 { return s.c / (2.5*(s.use+s.marked) + 16*mib) }, "of-bound")
			report("own+pace", func(s served) float64 { return s.gc }, "%-GC")
			report("Reserve", func(s served) float64 { return s.c / mib }, "limit-C-MiB")
			report("Reserve", func(s served) float64 { return s.gc }, "limit-%-GC")
			b.Log(serverTable(ways, turns))
		})
	}
}

func median(all []served, f func(served) float64) float64 {
	var v []float64
	for _, s := range all {
		v = append(v, f(s))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// serverTable has a line for each way.
func serverTable(ways []way, turns map[string][]served) string {
	columns := []struct {
		name string
		f    func(served) float64
	}{
		{"req/s", func(s served) float64 { return s.rate }},
		{"p50 ms", func(s served) float64 { return s.p50 }},
		{"p99 ms", func(s served) float64 { return s.p99 }},
		{"use", func(s served) float64 { return s.use / mib }},
		{"mean", func(s served) float64 { return s.useMean / mib }},
		{"C", func(s served) float64 { return s.c / mib }},
		{"mean", func(s served) float64 { return s.cMean / mib }},
		{"resident", func(s served) float64 { return s.resident / mib }},
		{"Go", func(s served) float64 { return s.marked / mib }},
		{"GC %", func(s served) float64 { return s.gc }},
		{"waits", func(s served) float64 { return s.waits }},
		{"refused", func(s served) float64 { return s.refused }},
	}
	var out strings.Builder
	fmt.Fprintf(&out, "medians; peaks and means in MiB\n%-12s", "")
	for _, c := range columns {
		fmt.Fprintf(&out, "%9s", c.name)
	}
	for _, w := range ways {
		fmt.Fprintf(&out, "\n%-12s", w.name)
		for _, c := range columns {
			fmt.Fprintf(&out, "%9.2f", median(turns[w.name], c.f))
		}
	}
	return out.String()
}
