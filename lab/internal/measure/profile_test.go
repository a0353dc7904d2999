package measure

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// TestProfile profiles rows of both kinds, and finds in the file what it is told.
func TestProfile(t *testing.T) {
	// Each cleanup of an object makes the walk to the place of the next one longer.
	cleanups := Row{Name: "cleanups", N: 2_000, Open: func(int) (Work, error) {
		return Work{Run: func(n int) {
			for range n {
				sink = new([64]byte)
				for range 10 {
					runtime.AddCleanup(sink, func(int) {}, 0)
				}
			}
		}}, nil
	}}
	tables := leaking()
	tables[0].Rows = append(tables[0].Rows[:1], cleanups)
	var file bytes.Buffer
	report, err := Run(t.Context(), tables, Options{Count: 1, Child: child, Profile: &file, ProfileTime: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	wants := [][]string{{"Go allocation"}, {"runtime.addspecial", "runtime.specialFindSplicePoint", "runtime.AddCleanup"}}
	for i, row := range report.Rows {
		sum, found := 0.0, false
		for _, s := range row.Profile {
			sum += s.Share
			found = found || slices.Contains(wants[i], s.Function)
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
	if len(rows) != 2 || !rows["leaks/cleanups"] || !rows["leaks/collects-not"] {
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
