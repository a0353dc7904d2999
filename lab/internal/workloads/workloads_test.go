package workloads

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestSame runs each workload on each allocator. What they did must be the same: as
// many blocks and frees, the same bytes, and the same marks in them. Each runs twice,
// because a run must leave its table as it was.
func TestSame(t *testing.T) {
	for _, w := range All() {
		t.Run(w.Name, func(t *testing.T) {
			counts := []int{1, 2, 1001, 20_011}
			switch w.Name {
			case "large":
				counts = []int{1, 2, 11}
			case "larson", "sh6bench":
				counts = append(counts, 250_007) // three threads after each other, three passes
			case "sawtooth":
				counts = append(counts, 400_009) // two teeth
			}
			for _, threads := range []int{1, 2, 3} {
				if threads > 1 && !w.Threads {
					break
				}
				for _, n := range counts {
					w.same(t, n, threads)
				}
			}
		})
	}
}

func (w *Workload) same(t *testing.T, n, threads int) {
	t.Helper()
	var first Tally
	for i, allocator := range w.Allocators() {
		r, err := w.Open(allocator, threads)
		testcall.Must(t, err)
		for run := range 2 {
			got, err := r.Run(n)
			testcall.Must(t, err)
			if got.Blocks != uint64(n) || got.Frees != uint64(n) || got.Bytes < 8*uint64(n) || got.Sum == 0 {
				t.Errorf("%s, %d operations in %d threads: %+v", allocator, n, threads, got)
			}
			if i == 0 && run == 0 {
				first = got
			} else if got != first {
				t.Errorf("%d operations in %d threads: %s did %+v in run %d, and %s did %+v",
					n, threads, allocator, got, run, w.Allocators()[0], first)
			}
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s, %d operations in %d threads: %v", allocator, n, threads, err)
		}
	}
}

// TestAllocators says what must be there: the comparison above would pass for one.
func TestAllocators(t *testing.T) {
	for _, w := range All() {
		want := Heap
		if !w.Threads {
			want += " " + Local
		}
		if missingNative == "" {
			want += " " + Native
		}
		if got := strings.Join(w.Allocators(), " "); got != want {
			t.Errorf("%s runs on %s, want %s", w.Name, got, want)
		}
	}
	w := All()[0]
	if _, err := w.Open("none", 1); err == nil {
		t.Error("an allocator that does not exist was opened")
	}
}
