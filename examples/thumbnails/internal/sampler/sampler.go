// Package sampler reads the resident memory of its own process, on Linux.
package sampler

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
)

// A Sampler reads the resident memory of its own process. It makes no garbage, which
// would make the collector run.
type Sampler struct {
	file   *os.File // /proc/self/statm
	text   [128]byte
	start  time.Time
	points []chart.Point
	err    error
	stop   chan struct{}
	ended  chan struct{}
}

// Start reads a first sample, then one after each every, and one at the end. It
// calls seen with each sample.
func Start(every time.Duration, seen func(resident int64)) (*Sampler, error) {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return nil, err
	}
	s := &Sampler{
		file: f, start: time.Now(), points: make([]chart.Point, 0, 1<<16),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go s.run(every, seen)
	return s, nil
}

func (s *Sampler) run(every time.Duration, seen func(resident int64)) {
	defer close(s.ended)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for last := false; ; {
		resident, err := s.resident()
		if err != nil {
			s.err = err
			return
		}
		s.points = append(s.points, chart.Point{At: time.Since(s.start), Bytes: resident})
		seen(resident)
		if last {
			return
		}
		select {
		case <-ticker.C:
		case <-s.stop:
			last = true
		}
	}
}

// resident reads the second number of statm, which is in pages.
func (s *Sampler) resident() (int64, error) {
	n, err := s.file.ReadAt(s.text[:], 0)
	if n == 0 {
		return 0, err
	}
	_, rest, _ := bytes.Cut(s.text[:n], []byte{' '})
	field, _, _ := bytes.Cut(rest, []byte{' '})
	pages, err := strconv.ParseInt(string(field), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.file.Name(), err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// End reads a last sample, and returns all samples.
func (s *Sampler) End() ([]chart.Point, error) {
	close(s.stop)
	<-s.ended
	s.file.Close()
	return s.points, s.err
}
