package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

const peakBytes = 32 << 20

// peakingVariable names a file that is there when the memory of the process has been onSample at.
const peakingVariable = "PEAKING"

// peaking returns rows for child processes: two that have peakBytes resident in their first
// round, until a file in a folder says that this was seen, and one that is not supported here.
func peaking(folder string) Table {
	open := func(int) (Work, error) {
		rounds := 0
		var err error
		return Work{
			Run: func(n int) {
				if rounds++; rounds > 1 {
					return
				}
				for range 1000 * n {
					sink = new([64]byte)
				}
				err = touch(peakBytes, os.Getenv(peakingVariable))
			},
			Check: func(int) error { return err },
		}, nil
	}
	missing := func(int) (Work, error) { return Work{}, fmt.Errorf("%w: no such library", errors.ErrUnsupported) }
	env := func(row string) []string { return []string{peakingVariable + "=" + filepath.Join(folder, row)} }
	return Table{
		Table: result.Table{Name: "peaks"},
		Notes: []string{"a note of the table"},
		Rows: []Row{
			{Name: "touches", Group: "g", Apart: true, Keeps: true, N: 10, Env: env("touches"), CPUVersus: []string{"again", "missing"}, Open: open},
			{Name: "again", Group: "g", Apart: true, Keeps: true, N: 10, Env: env("again"), Open: open},
			{Name: "missing", Group: "g", Apart: true, Keeps: true, N: 10, Env: env("missing"), Open: missing},
		},
	}
}

// touch has bytes resident until another process has onSample, which makes a file. They are not Go
// memory, of which the race detector keeps a shadow.
func touch(bytes int, file string) error {
	if file == "" {
		return errors.New("the process does not have the environment of its row")
	}
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		return err
	}
	block := h.Calloc(1, bytes)
	for i := 0; i < bytes; i += 4096 {
		*(*byte)(unsafe.Add(block, i)) = 1
	}
	for runtime.GOOS == "linux" { // elsewhere nobody can look
		if _, err := os.Stat(file); err == nil {
			break
		}
		time.Sleep(betweenSamples)
	}
	h.Free(block)
	return h.Destroy()
}

// TestPeak checks that memory is measured in a round that is no sample, that the process
// has the environment of the row, and that a row which is not supported is only noted.
func TestPeak(t *testing.T) {
	folder, row := t.TempDir(), ""
	defer func(f func(int64)) { onSample = f }(onSample)
	onSample = func(bytes int64) {
		if bytes < peakBytes {
			return
		}
		testcall.Want(t, os.WriteFile(filepath.Join(folder, row), nil, 0o666))
	}
	report, err := Run(t.Context(), []Table{peaking(folder)}, Options{Count: 1, Child: child, Progress: func(p Progress) { row = p.Row }})
	testcall.Must(t, err)
	if len(report.Rows) != 2 {
		t.Fatalf("%+v", report.Rows)
	}
	for _, row := range report.Rows {
		// With cheap_gomem the race detector has a shadow of the block.
		least, most := float64(peakBytes), float64(peakBytes*5/2)
		if runtime.GOOS != "linux" {
			least, most = 0, 0
		}
		if row.Resident < least || row.Resident > most {
			t.Errorf("%s: %.0f bytes were resident, want %.0f to %.0f", row.Row, row.Resident, least, most)
		}
		// The round that touches memory allocates as well.
		if len(row.Samples) != 1 || row.AllocsPerOp > 100 {
			t.Errorf("%s: %d samples, %v allocations", row.Row, len(row.Samples), row.AllocsPerOp)
		}
	}
	v := report.Rows[0].CPUVersus
	if len(v) != 1 || v[0].To != "again" || len(report.Rows[1].CPUVersus) != 0 {
		t.Errorf("compared with %+v and %+v", v, report.Rows[1].CPUVersus)
	}
	notes := strings.Join(report.Notes, "\n")
	for _, want := range []string{"peaks/missing is missing: unsupported operation: no such library", "a note of the table"} {
		if strings.Count(notes, want) != 1 {
			t.Errorf("the notes have not once %q:\n%s", want, notes)
		}
	}
}

// TestNotesOfTables checks that a table without rows in the report has no notes there.
func TestNotesOfTables(t *testing.T) {
	keep := func(table, _ string) bool { return table != "peaks" }
	report, err := Run(t.Context(), []Table{peaking("")}, Options{Keep: keep, Count: 1, Child: child})
	if err != nil || strings.Contains(strings.Join(report.Notes, "\n"), "note of the table") {
		t.Errorf("%q, %v", report.Notes, err)
	}
}

// TestKeeps counts how often C's malloc is made to release memory.
func TestKeeps(t *testing.T) {
	trims := 0
	defer func(f func()) { trimMalloc = f }(trimMalloc)
	trimMalloc = func() { trims++ }
	for _, keeps := range []bool{false, true} {
		trims = 0
		u := &unit{row: &Row{Keeps: keeps}, procs: 1, work: Work{Run: func(int) {}}}
		if _, err := u.take(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 0}[keeps]; trims != want {
			t.Errorf("with Keeps %v malloc released memory %d times before a round, want %d", keeps, trims, want)
		}
	}
}
