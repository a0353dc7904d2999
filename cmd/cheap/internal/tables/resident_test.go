//go:build cgo && unix

package tables

import (
	"runtime"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
	"github.com/cheapgo/cheap/libc"
)

// TestResident does short rounds of each row, and looks at what was resident. Nothing
// is collected in a round of a few objects, except by package pace. On a machine that is
// busy with something else, what pace releases may come late. What pace allows grows with
// the Go heap, in which other tests have left something.
func TestResident(t *testing.T) {
	table := Resident()
	wantNames(t, table, []string{"close", "addcleanup", "own", "own-pace"})
	most := make(map[string]int64)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	paced := 40<<20 + 2*int64(m.HeapAlloc)
	for _, row := range table.Rows {
		round(t, row, 32)
		most[row.Name] = heldBy(t, row)
		for tries := 0; row.Name == "own-pace" && most[row.Name] > paced && tries < 10; tries++ {
			most[row.Name] = heldBy(t, row)
		}
	}
	if most["own"] == 0 { // the system does not say
		return
	}
	if most["close"] > 8<<20 || most["own-pace"] > paced {
		t.Errorf("resident with Close: %d bytes, with pace: %d, at most %d", most["close"], most["own-pace"], paced)
	}
	if most["addcleanup"] < 24<<20 || most["own"] < 24<<20 {
		t.Errorf("resident with cleanups: %d bytes, with own: %d", most["addcleanup"], most["own"])
	}
}

// heldBy returns what a round of 64 MiB had resident.
func heldBy(t *testing.T, row measure.Row) int64 {
	t.Helper()
	w, err := row.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const n = 256
	libc.Allocator{}.Trim() // what was freed before is not resident any more
	w.Run(n)
	if err := w.Settle(); err != nil {
		t.Error(err)
	}
	if err := w.Check(n); err != nil {
		t.Error(err)
	}
	return w.Resident()
}
