//go:build !race && !cheap_gomem

package pace

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// A meter samples the resident memory of the process.
type meter struct {
	statm *os.File
	begin time.Time
	gcs   uint32
	start int64
	high  atomic.Int64
	stop  chan bool
	ended chan bool
}

// measure begins to sample, every millisecond if the processors are not busy.
// The kernel knows the maximum between two samples, and is asked at the end.
func measure() *meter {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	m := &meter{statm: f, stop: make(chan bool), ended: make(chan bool)}
	// From here on VmHWM is the peak of the measurement alone.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		panic(err)
	}
	m.start, m.begin, m.gcs = m.read(), time.Now(), collections()
	go func() {
		defer close(m.ended)
		runtime.LockOSThread()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			m.high.Store(max(m.high.Load(), m.read()))
			select {
			case <-tick.C:
			case <-m.stop:
				return
			}
		}
	}()
	return m
}

// read returns the bytes that are resident now.
func (m *meter) read() int64 {
	var text [128]byte
	n, err := m.statm.ReadAt(text[:], 0)
	var size, resident int64
	if _, scan := fmt.Sscan(string(text[:n]), &size, &resident); scan != nil {
		panic(fmt.Sprint(err, scan))
	}
	return resident * int64(os.Getpagesize())
}

// now returns how many bytes more are resident than at the start.
func (m *meter) now() int64 { return m.read() - m.start }

// outcome ends the measurement.
func (m *meter) outcome() outcome {
	o := outcome{Elapsed: time.Since(m.begin), GCs: int64(collections() - m.gcs), Stats: ReadStats()}
	close(m.stop)
	<-m.ended
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	var most int64
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	if _, err := fmt.Sscan(string(rest), &most); err != nil {
		panic(err)
	}
	o.Resident = max(m.high.Load(), most*kib) - m.start
	return o
}

// collections is how many there were.
func collections() uint32 {
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return st.NumGC
}
