package tables

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// round does n operations of a row as they are measured, and fails unless they
// did their work.
func round(t *testing.T, row measure.Row, n int) {
	t.Helper()
	w, err := row.Open(1)
	if err != nil {
		t.Fatalf("%s: %v", row.Name, err)
	}
	if w.Close != nil {
		defer w.Close()
	}
	for range 2 { // what one round leaves is not the next one's
		if w.Time != nil {
			if wall, _, err := w.Time(n); err != nil || wall <= 0 {
				t.Errorf("%s: %v ns, %v", row.Name, wall, err)
			}
			continue
		}
		w.Run(n)
		if w.Settle != nil {
			if err := w.Settle(); err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
		}
		if w.Check != nil {
			if err := w.Check(n); err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
		}
	}
}

func TestSize(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, row := range Size().Rows {
		round(t, row, 300)
	}
}

func TestSizeNames(t *testing.T) {
	var want []string
	for size := 8; size <= 4096; size *= 2 {
		for _, kind := range []string{"alloc", "finalizer", "addcleanup", "own"} {
			want = append(want, fmt.Sprintf("%s-%d", kind, size))
		}
	}
	wantNames(t, Size(), want)
	for _, row := range Size().Rows {
		usual := false
		for _, size := range usualSizes {
			usual = usual || strings.HasSuffix(row.Name, fmt.Sprintf("-%d", size))
		}
		if row.Named == usual || row.Steady != !strings.HasPrefix(row.Name, "alloc") {
			t.Errorf("%s: Named is %v, Steady is %v", row.Name, row.Named, row.Steady)
		}
	}
}

// TestSizeAllocates checks that each object is one of its size in the Go heap.
func TestSizeAllocates(t *testing.T) {
	const n = 1000
	for _, row := range Size().Rows {
		var bytes int
		if _, err := fmt.Sscanf(row.Name, "alloc-%d", &bytes); err != nil {
			continue
		}
		w, err := row.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.Run(n)
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		// Objects with a pointer have a header above 512 bytes, and size classes
		// round up: 4,104 bytes to 4,864.
		if low, high := uint64(n*bytes), uint64(n*bytes*5/4+10_000); got < low || got > high {
			t.Errorf("%s: %d bytes for %d objects, want %d to %d", row.Name, got, n, low, high)
		}
	}
}

func TestSizesOfObjects(t *testing.T) {
	if got := unsafe.Sizeof(object[[0]byte]{}); got != 8 {
		t.Errorf("the smallest object has %d bytes, want 8", got)
	}
	for _, row := range Size().Rows {
		if row.Note != "" && row.Name != "own-8" {
			t.Errorf("%s: %s", row.Name, row.Note)
		}
	}
}
