//go:build cheap_times && cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cheapgo/cheap/cmem/fht"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestTimePriority looks whether the thread of TestPriority sleeps. It takes some 40 ms of
// processor time then, and 33,000 if it spins until the kernel lets the other one run. 2,000 would
// do where the machine does nothing else; the system's share of that time varies.
func TestTimePriority(t *testing.T) {
	withRate(t, 1)
	ms := cwork.Priority(2000)
	if ms < 0 {
		t.Log("the system refuses threads of real-time priority")
	}
	if ms > 20_000 {
		t.Errorf("%d ms of processor time", ms)
	}
}

// TestTimeRecordCut lets nothing read the events of a recording: it is not cut before two seconds.
func TestTimeRecordCut(t *testing.T) {
	if !recording.CompareAndSwap(false, true) {
		t.Fatal("a recording")
	}
	ring, err := traceBegin(traceSize{1 << 14, fullTrace.patience})
	testcall.Must(t, err)
	start := time.Now()
	cwork.Threads(1, 1<<14, 100)
	if d := time.Since(start); d < 2*time.Second {
		t.Errorf("it was cut after %v", d)
	}
	to, err := fht.NewWriter(io.Discard)
	testcall.Must(t, err)
	r := &recorder{ring, to, fht.Read(ring, to.Write)}
	if err := r.stop(); !errors.Is(err, ErrRecordCut) {
		t.Errorf("the error is %v", err)
	}
}
