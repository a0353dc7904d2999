package measure

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

var sink *[64]byte

// leaking returns a table for child processes: a row that finds the collector
// off, and one that fails.
func leaking() []Table {
	open := func(procs int) (Work, error) {
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		if debug.SetGCPercent(-1) != -1 || runtime.GOMAXPROCS(0) != procs {
			return Work{}, errors.New("the process is not set up")
		}
		check := func(int) error {
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			if after.NumGC != before.NumGC {
				return fmt.Errorf("%d collections", after.NumGC-before.NumGC)
			}
			return nil
		}
		return Work{Check: check, Run: func(n int) {
			for range n {
				sink = new([64]byte)
			}
		}}, nil
	}
	fails := func(int) (Work, error) { return Work{}, errors.New("no such luck") }
	return []Table{{
		Table: result.Table{Name: "leaks"},
		Rows: []Row{
			{Name: "collects-not", NoGC: true, N: 1_000_000, Procs: []int{2}, Open: open},
			{Name: "fails", NoGC: true, N: 10, Open: fails},
			{Name: "endless", NoGC: true, Open: open},
		},
	}}
}

func TestChild(t *testing.T) {
	report, err := Run(t.Context(), leaking(), Options{
		Count: 2, Child: child,
		Keep: func(_, row string) bool { return row == "collects-not" },
	})
	testcall.Must(t, err)
	row := report.Rows[0]
	if len(row.Samples) != 2 || row.NsPerOp <= 0 || row.Procs != 2 {
		t.Errorf("%+v", row)
	}
	if row.AllocsPerOp < 0.99 || row.AllocsPerOp > 1.01 || row.GoBytesPerOp < 63 || row.GoBytesPerOp > 65 {
		t.Errorf("%v allocations, %v bytes", row.AllocsPerOp, row.GoBytesPerOp)
	}
}

// TestChildFails checks that an error of the child is reported.
func TestChildFails(t *testing.T) {
	report, err := Run(t.Context(), leaking(), Options{Count: 1, Child: child})
	if err == nil || !strings.Contains(err.Error(), "leaks/fails: child process: exit status 1: no such luck") ||
		!strings.Contains(err.Error(), "leaks/endless: a row without a collector has no number of operations") {
		t.Errorf("error %v", err)
	}
	if len(report.Rows) != 1 || report.Rows[0].Row != "collects-not" {
		t.Errorf("rows %+v", report.Rows)
	}
}

func TestChildArgs(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"leaks", "collects-not", "0"},
		{"leaks", "collects-not", "many"},
		{"leaks", "other", "1"},
	} {
		if err := Child(t.Context(), leaking(), args, os.Stdin, os.Stdout); err == nil {
			t.Errorf("%q are accepted", args)
		}
	}
}

// keeping returns a table with a row that is Apart, which counts its rounds in its
// process: the fourth fails.
func keeping() Table {
	open := func(procs int) (Work, error) {
		rounds := 0
		return Work{
			Run: func(int) { rounds++ },
			Check: func(int) error {
				if rounds == 4 {
					return fmt.Errorf("round 4 in process %d of %d, on %d processors", os.Getpid(), os.Getppid(), runtime.GOMAXPROCS(0))
				}
				return nil
			},
		}, nil
	}
	return Table{
		Table: result.Table{Name: "keeps"},
		Rows:  []Row{{Name: "apart", Apart: true, N: 1, Procs: []int{2}, Open: open}},
	}
}

// TestApart checks that all rounds of a row run in one other process.
func TestApart(t *testing.T) {
	tables := []Table{keeping()}
	report, err := Run(t.Context(), tables, Options{Count: 2, Child: child})
	if err != nil || len(report.Rows) != 1 || len(report.Rows[0].Samples) != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	_, err = Run(t.Context(), tables, Options{Count: 4, Child: child})
	if want := fmt.Sprintf(" of %d, on 2 processors", os.Getpid()); err == nil || !strings.Contains(err.Error(), "round 4 in process ") || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want round 4 in a process%s", err, want)
	}
}
