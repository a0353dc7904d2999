package measure

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/google/pprof/profile"
)

// computing returns a table of rows that compute, and call nothing: the race detector would add its
// own time, which is more than that of an allocation. The first one has processes of its own.
func computing() Table {
	open := func(int) (Work, error) {
		return Work{Run: func(n int) {
			x := uint64(n)
			for range n {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			computed = x
		}}, nil
	}
	const n = 20_000_000
	return Table{
		Table:    result.Table{Name: "computing"},
		Profiled: true,
		Rows:     []Row{{Name: "apart", NoGC: true, N: n, Open: open}, {Name: "here", N: n, Open: open}},
	}
}

var computed uint64

// TestProfile profiles rows of both kinds, and finds in the file what it is told.
func TestProfile(t *testing.T) {
	var file bytes.Buffer
	report, err := Run(t.Context(), []Table{computing()}, Options{Count: 1, Child: child, Profile: &file, ProfileTime: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		sum, found := 0.0, false
		for _, s := range row.Profile {
			sum += s.Share
			found = found || s.Function == "the loop"
		}
		if !found || math.Abs(sum-1) > 1e-6 {
			t.Errorf("%s: %+v", row.Row, row.Profile)
		}
	}
	p, err := profile.Parse(&file)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, s := range p.Sample {
		rows[s.Label["row"][0]] = true
	}
	if len(rows) != 2 || !rows["computing/here"] || !rows["computing/apart"] {
		t.Errorf("rows in the file: %v", rows)
	}
}

func TestPart(t *testing.T) {
	for _, c := range []struct {
		want  string
		stack []string
	}{
		{"runtime.lock2 and unlock2", []string{"runtime.procyield", "runtime.lock2", "runtime.addspecial", "runtime.SetFinalizer"}},
		{"runtime.specialFindSplicePoint", []string{"runtime.(*mspan).specialFindSplicePoint", "runtime.addspecial"}},
		{"runtime.addspecial", []string{"runtime.addspecial", "runtime.AddCleanup[...]"}},
		{"runtime.AddCleanup", []string{"runtime.AddCleanup[go.shape.*uint8,go.shape.uintptr]"}},
		{"the sweep", []string{"runtime.memclrNoHeapPointers", "runtime.(*sweepLocked).sweep", "runtime.mallocgc"}},
		{"marking", []string{"runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker"}},
		{"runtime.cgocall, C included", []string{"runtime.exitsyscall", "runtime.cgocall", "main._Cfunc_free", "main.main"}},
		{"package own", []string{"github.com/cheapgo/cheap/own.(*Pool).Own", "github.com/cheapgo/cheap/lab/internal/tables.x"}},
		{"package cheap", []string{"github.com/cheapgo/cheap.(*Heap).Malloc"}},
		{"the loop", []string{"github.com/cheapgo/cheap/lab/internal/tables.x", "runtime.goexit"}},
		{"other", []string{"runtime.nobody"}},
		{"other", nil},
	} {
		if got := part(c.stack); got != c.want {
			t.Errorf("%q is %q, want %q", c.stack, got, c.want)
		}
	}
}
