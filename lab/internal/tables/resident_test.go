//go:build cgo && unix

package tables

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/libc"
)

// TestResident does short rounds of each row, and looks at what was resident. Nothing is collected
// in a round, except by package pace. How early that is depends on what else the
// machine does, and so does what is resident.
func TestResident(t *testing.T) {
	most := make(map[string]int64)
	for _, row := range Resident().Rows {
		most[row.Name] = heldBy(t, row)
	}
	if most["own"] == 0 { // the system does not say
		return
	}
	if LargeObjects != 512 || LargeBytes != 256<<10 || ResidentLimit != 64<<20 {
		t.Error("the headline says: Forgetting 512 C objects of 256 KiB, and a limit of 64 MiB")
	}
	if most["close"] > 8<<20 {
		t.Errorf("resident with Close: %d bytes", most["close"])
	}
	if most["addcleanup"] < 48<<20 || most["own"] < 48<<20 {
		t.Errorf("resident with cleanups: %d bytes, with own: %d", most["addcleanup"], most["own"])
	}
}

// heldBy returns what a round of 64 MiB had resident.
func heldBy(t *testing.T, row measure.Row) int64 {
	t.Helper()
	goOn := settled(row)
	w, err := row.Open(1)
	testcall.Must(t, err)
	defer w.Close()
	const n = 256
	defer goOn()
	before := collections()
	w.Run(n)
	for row.Name == "own-pace" && collections() == before { // what pace collects for is there, and stays
		time.Sleep(time.Millisecond)
	}
	testcall.Want(t, w.Settle())
	testcall.Want(t, w.Check(n))
	return w.Figures().Resident
}

// settled gives back what was freed before, which is not resident any more then: Go would give it back
// during the round, which hides what the round makes resident. Nothing is collected until goOn is
// called, except in the row of package pace, which does not start without collections.
func settled(row measure.Row) (goOn func()) {
	libc.Allocator{}.Trim()
	debug.FreeOSMemory()
	if row.Name == "own-pace" {
		return func() {}
	}
	percent := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(percent) }
}

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}
