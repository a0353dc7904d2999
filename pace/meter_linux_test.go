//go:build !race && !cheap_gomem

package pace

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// A meter samples the resident memory of the process.
type meter struct {
	begin time.Time
	gcs   uint32
	start int64
	high  atomic.Int64
	stop  chan bool
	ended chan bool

	mu     sync.Mutex
	status *os.File
	text   [4 * kib]byte // of status, as it was last
}

// measure begins to sample, every millisecond if the processors are not busy.
// The kernel knows the maximum between two samples, and is asked at the end.
func measure() *meter {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		panic(err)
	}
	m := &meter{status: f, stop: make(chan bool), ended: make(chan bool)}
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
func (m *meter) read() int64 { return m.field("VmRSS") }

// field returns a number of bytes that the kernel gives in kibibytes. The numbers of
// /proc/self/statm are in pages, and under qemu-user a page of the kernel that counts
// is not a page of the program.
func (m *meter) field(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.status.ReadAt(m.text[:], 0)
	size, ok := procfs.Bytes(m.text[:n], name)
	if !ok {
		panic(fmt.Sprintf("no %s in %s: %v", name, m.status.Name(), err))
	}
	return size
}

// outcome ends the measurement.
func (m *meter) outcome() outcome {
	o := outcome{Elapsed: time.Since(m.begin), GCs: int64(collections() - m.gcs), Stats: ReadStats()}
	close(m.stop)
	<-m.ended
	o.Resident = max(m.high.Load(), m.field("VmHWM")) - m.start
	return o
}

// collections is how many there were.
func collections() uint32 {
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	return st.NumGC
}
