//go:build cgo && unix

package tables

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay/resident"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A request of the table server.
const (
	serverRequests = 300
	leastImage     = 64 << 10
	mostImage      = 1 << 20
	atOnce         = 4 // requests for each processor
)

// Server is the table of a server that forgets large C objects.
func Server() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "server",
			Title: "A server that forgets C objects",
			About: fmt.Sprintf("%d requests, %d at once for each processor. Each makes an image in C of %d KiB to %d MiB, writes all of it, allocates 4 KiB in Go, waits for 1 to 4 ms, and ends: ", serverRequests, atOnce, leastImage>>10, mostImage>>20) +
				"the image is closed, or forgotten, with a cleanup, with an own.Pool, and with an own.Pool and package pace. " +
				"The time is that of all requests divided by their number, p99 that of single ones. " +
				"Resident is the most memory of the process during that, less what it had before. No source has figures.",
			Unit:  "request",
			Chart: result.Bytes,
		},
		Rows:   serverRows(),
		Weight: 4, // a round is a tenth of a second or two
	}
}

// serverRows lists the rows. Each has a process of its own, because resident memory and
// the pacing are those of a process.
func serverRows() []measure.Row {
	var rows []measure.Row
	for _, w := range largeWays {
		row := measure.Row{
			Name: w.name, Group: "server", N: serverRequests, Apart: true, Waits: true,
			Procs: []int{min(max(runtime.NumCPU(), 2), mostWorkers)},
			Open: func(procs int) (measure.Work, error) {
				l, err := w.open()
				if err != nil {
					return measure.Work{}, err
				}
				return (&server{large: l, clients: atOnce * procs}).work()
			},
		}
		if w.name != "addcleanup" {
			row.Versus = "addcleanup"
		}
		rows = append(rows, row)
	}
	return rows
}

// A server makes an image for each request.
type server struct {
	*large
	clients int // requests at once
	memory  *resident.Reader

	most int64   // bytes that were resident in the last round
	p99  float64 // nanoseconds
}

func (s *server) work() (measure.Work, error) {
	memory, err := resident.Self()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return measure.Work{}, err
	}
	s.memory = memory
	// Settle and Check of the tally: what was forgotten is released off the clock.
	rest := s.tally.work(func(int) {})
	return measure.Work{
		Time: func(n int) (wall, cpu float64, err error) {
			wall, cpu = s.serve(n)
			s.made += int64(n)
			return wall, cpu, errors.Join(rest.Settle(), rest.Check(n))
		},
		Figures: func() measure.Figures { return measure.Figures{Resident: s.most, P99: s.p99} },
		Close:   func() { s.end() }, // Check has found that nothing is left
	}, nil
}

// serve serves n requests, and returns the nanoseconds that they took.
func (s *server) serve(n int) (wall, cpu float64) {
	before := s.resident()
	var over atomic.Bool
	var sampling sync.WaitGroup
	most := before
	sampling.Go(func() {
		for !over.Load() {
			most = max(most, s.resident())
			time.Sleep(samplingPeriod)
		}
	})
	took := make([][]time.Duration, s.clients)
	var next atomic.Int64
	var serving sync.WaitGroup
	used, begin := cside.CPUTime(), time.Now()
	for i := range s.clients {
		serving.Go(func() {
			for next.Add(1) <= int64(n) {
				asked := time.Now()
				s.request()
				took[i] = append(took[i], time.Since(asked))
			}
		})
	}
	serving.Wait()
	wall, cpu = float64(time.Since(begin).Nanoseconds()), float64((cside.CPUTime() - used).Nanoseconds())
	over.Store(true)
	sampling.Wait()
	s.most = max(most, s.resident()) - before
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	s.p99 = float64(all[len(all)*99/100].Nanoseconds())
	return wall, cpu
}

// samplingPeriod is the time between two samples of the memory. A sample walks the page tables.
const samplingPeriod = 10 * time.Millisecond

// resident returns what is resident now, 0 if that is unknown.
func (s *server) resident() int64 {
	if s.memory == nil {
		return 0
	}
	bytes, err := s.memory.Bytes()
	if err != nil {
		return 0
	}
	return bytes
}

// garbageSink makes the garbage of requests escape.
//
//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
var garbageSink atomic.Pointer[[4 << 10]byte]

// request makes an image, writes it, and waits, as for a client.
func (s *server) request() {
	size := int(leastImage * math.Pow(float64(mostImage/leastImage), rand.Float64()))
	image := s.make(size)
	paint(unsafe.Slice((*byte)(image.block), size))
	garbageSink.Store(new([4 << 10]byte))
	time.Sleep(time.Millisecond + rand.N(3*time.Millisecond))
	image.done()
}

// paint writes all bytes of an image, about a gigabyte in a second.
func paint(image []byte) {
	x := byte(1)
	for i := range image {
		x = 5*x + byte(i)
		image[i] = x
	}
}
