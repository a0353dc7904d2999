//go:build cgo && unix

package tables

import (
	"errors"
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

var (
	moreWays     = []string{"bulk", "own-inline", "own-make", "own-make-inline", "own-bare", "own-children", "go-new"}
	parallelWays = []string{"manual-object-parallel", "addcleanup-parallel", "own-forget-parallel", "own-inline-parallel"}
	jemallocWays = []string{"manual-object-jemalloc", "own-forget-jemalloc", "own-make-jemalloc", "own-inline-jemalloc"}
)

// isMore reports whether a row is one of those.
func isMore(row string) bool {
	return slices.Contains(slices.Concat(moreWays, parallelWays, jemallocWays), row)
}

func TestRelease(t *testing.T) {
	want := slices.Concat(ways, coldWays, moreWays)
	for _, way := range ways {
		want = append(want, way+"-gc-off")
	}
	want = append(want, parallelWays...)
	want = append(want, jemallocWays...)
	table := Release()
	wantNames(t, table, want)
	for _, row := range table.Rows {
		if off := strings.HasSuffix(row.Name, "-gc-off"); off != row.NoGC || row.N == 0 {
			t.Errorf("%s: NoGC is %v, and N is %d", row.Name, row.NoGC, row.N)
		}
		cold := strings.HasSuffix(row.Name, "-cold")
		if row.Apart != slices.Contains(jemallocWays, row.Name) {
			t.Errorf("%s: Apart is %v", row.Name, row.Apart)
		}
		if row.Apart {
			if _, err := row.Open(1); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s in a process whose malloc is another one: %v", row.Name, err)
			}
			continue
		}
		if row.Steady != (!cold && !row.NoGC) {
			t.Errorf("%s: Steady is %v", row.Name, row.Steady)
		}
		diagnostic := strings.HasPrefix(row.Name, "finalizer-empty") || strings.HasPrefix(row.Name, "finalizer-no-c")
		apart := diagnostic || isMore(row.Name) || cold || row.NoGC || row.Name == "own-memory" || row.Name == "own-group"
		if apart != (row.Section != "") || (diagnostic || isMore(row.Name)) != row.Named {
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
		if r.kind == more { // no row without a collector
			continue
		}
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
		// Of what is made in advance, more is released, and Go arrays are not counted.
		if row.NoGC || row.Apart || strings.HasPrefix(row.Name, "own-make") || row.Name == "go-new" {
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
// bytes each, with the pointer to each, which are no part of the figure.
func TestLiveIsThere(t *testing.T) {
	const n = 50_000
	for _, p := range populations {
		w := openLive(p.open(), n)
		w.Run(2)
		if err := w.Check(2); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		// What else the process has dropped is collected meanwhile, but that is some kilobytes.
		if got := w.Figures().HeapBytes; got < -4 || got > 40 || p.name == "own" && got < 4 {
			t.Errorf("%s: %v bytes of the Go heap for an object beside its own", p.name, got)
		}
		w.Close()
	}
}
