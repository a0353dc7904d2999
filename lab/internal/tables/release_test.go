//go:build cgo && unix

package tables

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/lab/internal/lifetime"
)

// ways are the rows of release, with a collector and without.
var ways = []string{
	"manual", "manual-object", "defer", "addcleanup", "finalizer", "finalizer-empty", "finalizer-no-c",
	"own-forget", "own-close", "own-memory", "own-group",
}

var coldWays = []string{"addcleanup-cold", "finalizer-cold", "own-forget-cold", "own-memory-cold"}

func TestRelease(t *testing.T) {
	want := slices.Concat(ways, coldWays)
	for _, way := range ways {
		want = append(want, way+"-gc-off")
	}
	table := Release()
	wantNames(t, table, want)
	for _, row := range table.Rows {
		if off := strings.HasSuffix(row.Name, "-gc-off"); off != row.NoGC || row.N == 0 {
			t.Errorf("%s: NoGC is %v, and N is %d", row.Name, row.NoGC, row.N)
		}
		cold := strings.HasSuffix(row.Name, "-cold")
		if row.Steady != (!cold && !row.NoGC) {
			t.Errorf("%s: Steady is %v", row.Name, row.Steady)
		}
		diagnostic := strings.HasPrefix(row.Name, "finalizer-empty") || strings.HasPrefix(row.Name, "finalizer-no-c")
		apart := diagnostic || cold || row.NoGC || row.Name == "own-memory" || row.Name == "own-group"
		if apart != (row.Section != "") || diagnostic != row.Named {
			t.Errorf("%s is in section %q, and Named is %v", row.Name, row.Section, row.Named)
		}
		if !row.NoGC {
			for _, n := range []int{1, 1000} {
				round(t, row, n)
			}
		}
	}
}

// TestReleaseKept runs the ways without a collector. Forgotten objects are kept until
// a collection, and released by it.
func TestReleaseKept(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, r := range releases {
		t.Run(r.name, func(t *testing.T) {
			l, err := r.way()
			if err != nil {
				t.Fatal(err)
			}
			r.way = func() (*lifetime.Lifetime, error) { return l, nil }
			w, err := r.row(true).Open(1)
			if err != nil {
				t.Fatal(err)
			}
			const n = 1600
			w.Run(n)
			if err := w.Check(n); err != nil {
				t.Error(err)
			}
			if r.forgets {
				if err := w.Check(n + 1); err == nil && r.name != "finalizer-no-c" && !strings.HasPrefix(r.name, "own-m") && r.name != "own-group" {
					t.Errorf("%d objects passed for %d", n, n+1)
				}
			}
			if err := l.Settle(); err != nil {
				t.Error(err)
			}
			if err := l.Check(n); err != nil {
				t.Error(err)
			}
			if r.forgets && w.Check(n) == nil {
				t.Error("objects that were released passed for kept")
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReleaseUndone checks that a row which does not do its work is detected.
func TestReleaseUndone(t *testing.T) {
	for _, row := range Release().Rows {
		if row.NoGC {
			continue
		}
		w, err := row.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		w.Run(100)
		if w.Settle != nil {
			if err := w.Settle(); err != nil {
				t.Error(err)
			}
		}
		if err := w.Check(101); err == nil {
			t.Errorf("%s: 100 objects passed for 101", row.Name)
		}
		w.Close()
	}
}

func TestPublishedReleases(t *testing.T) {
	wantPublished(t, Release(), []int{1, 2, 16}, everywhere([]int{1, 2, 16}, map[string][]float64{
		"manual":           {75, 73.4, 94.3},
		"defer":            {75.0, 98.0},
		"addcleanup":       {359.7, 567},
		"finalizer":        {650, 676.9, 1058},
		"manual-gc-off":    {75},
		"finalizer-gc-off": {580},
	}))
}

// everywhere says that figures hold for each number of processors.
func everywhere(procs []int, figures map[string][]float64) []quotation {
	var all []quotation
	for row, ns := range figures {
		for _, p := range procs {
			all = append(all, quotation{row, p, ns})
		}
	}
	return all
}

// TestNoSize checks the note on finalizer-no-c: the runtime ignores the finalizer of
// an object of no size.
func TestNoSize(t *testing.T) {
	ran := make(chan bool, 1)
	done := make(chan bool, 1)
	go func() {
		type object struct{ _ *int }
		runtime.SetFinalizer(new(struct{}), func(*struct{}) { ran <- true })
		runtime.SetFinalizer(new(object), func(*object) { done <- true })
	}()
	if err := lifetime.Collect(func() int { return 1 - len(done) }); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if len(ran) > 0 {
		t.Error("the finalizer of an object without a size ran")
	}
}

func TestLive(t *testing.T) {
	var want []string
	for _, n := range []string{"0", "10000", "100000", "1000000"} {
		for _, kind := range []string{"plain", "finalizer", "addcleanup", "own"} {
			want = append(want, kind+"-"+n)
		}
	}
	table := Live()
	wantNames(t, table, want)
	for _, row := range table.Rows {
		if !strings.HasSuffix(row.Name, "00000") { // more take seconds
			round(t, row, 2)
		}
	}
}

// TestLiveIsThere checks that the objects are in the Go heap during its collections. They take 24
// bytes each. Less than 20 means that a part of them is not there: what else the process has
// dropped, such as objects with finalizers, is collected meanwhile, but that is some kilobytes.
func TestLiveIsThere(t *testing.T) {
	const n = 50_000
	for _, p := range populations {
		population := p.open()
		b, err := population.Measure(n, 2)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		if len(b.Walls) != 2 || len(b.CPUs) != 2 || b.Heap < n*20 || b.Heap > n*64 {
			t.Errorf("%s: %+v for %d objects of 16 bytes, and a pointer to each", p.name, b, n)
		}
		if err := population.Close(); err != nil {
			t.Error(err)
		}
	}
}
