package tables

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/page/result/resulttest"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

var update = flag.Bool("update", false, "write testdata/rows.txt anew")

// some is a machine on which jemalloc is installed, and none of the others.
func some(name string) (preload.Library, error) {
	if name != "jemalloc" {
		return preload.Library{Name: name}, &preload.MissingError{Name: name, Reason: "there is no such file"}
	}
	return preload.Library{Name: name, Path: "/lib/jemalloc.so"}, nil
}

// all returns the tables as they are on such a machine.
func all() []measure.Table {
	tables := All()
	for i := range tables {
		switch t := &tables[i]; t.Name {
		case "workloads":
			*t = workloadTable(some)
		case "blocks": // which has rows of jemalloc only where it is
			t.Rows = slices.DeleteFunc(t.Rows, func(r measure.Row) bool { return r.Apart })
		case "arenas": // of an experiment
			t.Rows = t.Rows[:1]
		}
	}
	return tables
}

// describe writes what a row is: with whom it takes turns, how long its rounds are, when it is
// measured, and the figures of sources.
func describe(row measure.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: group %q", row.Name, row.Group)
	if row.Versus != "" {
		fmt.Fprintf(&b, ", of %s", row.Versus)
	}
	if len(row.CPUVersus) > 0 {
		fmt.Fprintf(&b, ", CPU of %s", strings.Join(row.CPUVersus, " "))
	}
	if row.N > 0 {
		fmt.Fprintf(&b, ", %d operations", row.N)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"named", row.Named}, {"steady", row.Steady}, {"no collector", row.NoGC}, {"apart", row.Apart}, {"keeps", row.Keeps}, {"waits", row.Waits}} {
		if flag.set {
			b.WriteString(", " + flag.name)
		}
	}
	if row.Section != "" {
		fmt.Fprintf(&b, ", in %q", row.Section)
	}
	last := ""
	for _, procs := range []int{1, 2, 4, 8, 16, 20, 32} {
		figures := ""
		if row.Published != nil {
			for _, p := range row.Published(procs) {
				figures += fmt.Sprintf(" %v (%s)", p.Ns, p.Source)
			}
		}
		if figures != last {
			fmt.Fprintf(&b, "; on %d:%s", procs, figures)
		}
		last = figures
	}
	return b.String()
}

// TestList compares all rows with testdata/rows.txt.
func TestList(t *testing.T) {
	if !HasC {
		return // most rows need C
	}
	var b strings.Builder
	for _, table := range all() {
		fmt.Fprintf(&b, "# %s\n", table.Name)
		for _, row := range table.Rows {
			b.WriteString(describe(row) + "\n")
		}
	}
	resulttest.Golden(t, "testdata/rows.txt", b.String(), *update)
}

// TestRows does short rounds of the rows that need no other process, and checks that a row notices
// if it has not done its work.
func TestRows(t *testing.T) {
	short := map[string][]int{
		"scaling": {1, 1001, 5000}, // fewer than a round has parts, and no multiple of them
		"lists":   {1, 3, 2500},    // fewer and more calls than a list has
		"release": {1, 1000}, "size": {300}, "blocks": {100}, "live": {2}, "resident": {32}, "survivors": {5000},
		"workloads": {1, 11}, "patterns": {10_000}, "tail": {2000}, "traces": nil, "arenas": nil,
	}
	uncounted := func(table string, row measure.Row) bool {
		switch table {
		case "release": // of what is made in advance more is released, and Go arrays are not counted
			return row.NoGC || strings.HasPrefix(row.Name, "own-make") || row.Name == "go-new"
		case "calls", "scaling", "size", "blocks", "survivors", "workloads":
			return false
		}
		return true // some of their rows are not counted, or in parts
	}
	for _, table := range all() {
		sizes, ok := short[table.Name]
		if !ok {
			sizes = []int{1001}
		}
		for _, row := range table.Rows {
			switch {
			case table.Name == "workloads" && strings.HasSuffix(row.Name, "-native"):
				continue // blocks of 25 MiB change what C's malloc gives back; TestSame runs it
			case row.NoGC || table.Name == "server" || strings.HasSuffix(row.Name, "00000"):
				continue // TestReleaseKept and TestServer; a million objects take seconds
			case strings.HasSuffix(row.Name, "-jemalloc"):
				if _, err := row.Open(1); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s/%s in a process whose malloc is another one: %v", table.Name, row.Name, err)
				}
				continue
			case sizes == nil:
				round(t, table.Name, row, 1, row.N, false)
				continue
			}
			for _, n := range sizes {
				for _, procs := range []int{1, 2, 3} {
					if procs == 1 || table.Name == "scaling" || table.Name == "workloads" && procs == 2 {
						round(t, table.Name, row, procs, n, !uncounted(table.Name, row))
					}
				}
			}
		}
	}
}

// round does n operations of a row as they are measured, twice, and fails unless they did their
// work. If they are counted, other n must not pass for n+1.
func round(t *testing.T, table string, row measure.Row, procs, n int, counted bool) {
	t.Helper()
	w, err := row.Open(procs)
	if err != nil {
		t.Fatalf("%s/%s: %v", table, row.Name, err)
	}
	if w.Close != nil {
		defer w.Close()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	for i := range 3 {
		if w.Time != nil {
			if wall, _, err := w.Time(n); err != nil || wall <= 0 {
				t.Errorf("%s/%s: %v ns, %v", table, row.Name, wall, err)
			}
			continue
		}
		w.Run(n)
		if w.Settle != nil {
			if err := w.Settle(); err != nil {
				t.Errorf("%s/%s: %v", table, row.Name, err)
			}
		}
		if w.Check == nil {
			continue
		}
		if i < 2 {
			if err := w.Check(n); err != nil {
				t.Errorf("%s/%s on %d: %v", table, row.Name, procs, err)
			}
		} else if err := w.Check(n + 1); counted && err == nil {
			t.Errorf("%s/%s on %d: %d operations passed for %d", table, row.Name, procs, n, n+1)
		}
	}
}

// TestAll holds every table to what the rest of the command takes for granted, and docs/reference/figures.md to
// the list of tables.
func TestAll(t *testing.T) {
	text, err := os.ReadFile(docs("reference/figures.md"))
	testcall.Must(t, err)
	seen := make(map[string]bool)
	for _, table := range All() {
		if !HasC && len(table.Rows) == 0 {
			continue
		}
		if table.Name == "" || seen[table.Name] || table.Title == "" || table.About == "" || table.Unit == "" || table.Chart == "" {
			t.Errorf("table %q is incomplete or there twice: %+v", table.Name, table.Table)
		}
		seen[table.Name] = true
		if !strings.Contains(string(text), "| `"+table.Name+"` |") {
			t.Errorf("docs/reference/figures.md has nothing about table %s", table.Name)
		}
		groups := make(map[string]string) // of each row
		for _, row := range table.Rows {
			if _, twice := groups[row.Name]; twice || row.Name == "" || strings.ContainsAny(row.Name, " /") {
				t.Errorf("%s: %q is no name of a row, or there twice", table.Name, row.Name)
			}
			groups[row.Name] = row.Group
		}
		for _, row := range table.Rows {
			if group, ok := groups[row.Versus]; row.Versus != "" && (!ok || group != row.Group || row.Versus == row.Name) {
				t.Errorf("%s: row %s is set beside %q, which takes no turns with it", table.Name, row.Name, row.Versus)
			}
		}
	}
	for _, name := range recorded.Names {
		if tr, err := recorded.Read(name); err != nil || recordedOps[name] != len(tr.Ops) {
			t.Errorf("%s has not %d operations, as the table says; %v", name, recordedOps[name], err)
		}
	}
}

// TestNotes names the libraries that are not here.
func TestNotes(t *testing.T) {
	want := "workloads: mimalloc is not measured: there is no such file\nworkloads: tcmalloc is not measured: there is no such file"
	if !HasC {
		want = "workloads: no malloc of C is measured: it needs cgo and a Unix system"
	}
	if got := strings.Join(workloadTable(some).Notes, "\n"); got != want {
		t.Errorf("the notes are\n%s", got)
	}
}

// TestCounted checks that rows which do less than their work are detected.
func TestCounted(t *testing.T) {
	calls := int64(0)
	w := counted(func(n int) error { calls += int64(n) - 2; return nil }, func() int64 { return calls }, 1)
	w.Run(100)
	if err := w.Check(100); err == nil {
		t.Error("98 calls of 100 were enough")
	}
	w = counted(func(int) error { return fmt.Errorf("failed") }, func() int64 { return 100 }, 0)
	w.Run(100)
	if err := w.Check(100); err == nil {
		t.Error("a failure was not reported")
	}
}

// TestWrite checks that each page of a block has a byte, and no byte behind it.
func TestWrite(t *testing.T) {
	for _, size := range []int{1, 64, pageSize, pageSize + 1, 64 << 10} {
		block := make([]byte, size+pageSize)
		write(unsafe.Pointer(unsafe.SliceData(block)), size)
		for i, b := range block {
			if (b != 0) != (i < size && i%pageSize == 0) {
				t.Errorf("a block of %d bytes has %d at %d", size, b, i)
			}
		}
	}
}

// TestSizeAllocates checks that each object is one of its size in the Go heap.
func TestSizeAllocates(t *testing.T) {
	const n = 1000
	if got := unsafe.Sizeof(object[[0]byte]{}); got != 8 {
		t.Errorf("the smallest object has %d bytes, want 8", got)
	}
	for _, row := range Size().Rows {
		if row.Note != "" && row.Name != "own-8" {
			t.Errorf("%s: %s", row.Name, row.Note)
		}
		var bytes int
		if _, err := fmt.Sscanf(row.Name, "alloc-%d", &bytes); err != nil {
			continue
		}
		w, err := row.Open(1)
		testcall.Must(t, err)
		got := uint64(math.MaxUint64)
		for range 10 { // what other goroutines of the process allocate meanwhile adds to it
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w.Run(n)
			runtime.ReadMemStats(&after)
			got = min(got, after.TotalAlloc-before.TotalAlloc)
		}
		// Objects with a pointer have a header above 512 bytes, and size classes
		// round up: 4,104 bytes to 4,864.
		if low, high := uint64(n*bytes), uint64(n*bytes*5/4+10_000); got < low || got > high {
			t.Errorf("%s: %d bytes for %d objects, want %d to %d", row.Name, got, n, low, high)
		}
	}
}

// docs returns the path of a file in the folder docs.
func docs(name string) string { return filepath.Join("..", "..", "..", "docs", name) }
