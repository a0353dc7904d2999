package measure

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// forgetful is a row that allocates bytes for each operation, and writes down how
// many operations it was told to do.
func forgetful(name string, bytes int, log *[]int) Row {
	return Row{Name: name, Group: "g", N: 1000, Steady: true, Open: func(int) (Work, error) {
		return Work{Run: func(n int) {
			*log = append(*log, n)
			for range n {
				forgottenBytes = make([]byte, bytes)
			}
			forgottenBytes = nil
		}}, nil
	}}
}

var forgottenBytes []byte

// TestSteady measures a row in a steady state: ten collections in each round, which are
// those of the heap's growth, and a warm-up before it that is not on the clock. A row
// that allocates nothing keeps its rounds.
func TestSteady(t *testing.T) {
	var log, idle []int
	report, err := Run(t.Context(), fakeTable(forgetful("forgets", 512, &log), forgetful("idle", 0, &idle)), Options{Budget: hours, Count: 2, clock: new(fake).clock})
	testcall.Must(t, err)
	row := report.Rows[0]
	if row.Collections < steadyCollections || strings.Contains(row.Note, "fewer") {
		t.Errorf("a round has %v collections, note %q", row.Collections, row.Note)
	}
	// A part of the calibration, all of it, and then pairs of a warm-up and a round.
	if log[0] != 1000/probe || log[1] != 1000 || len(log) < 4 || len(log)%2 != 0 {
		t.Fatalf("operations %v", log)
	}
	for i := 2; i < len(log); i += 2 {
		if n := log[i+1]; n < 50_000 || n%1000 != 0 || log[i] != n/warmPart {
			t.Errorf("round %d: %d operations after %d", i/2, n, log[i])
		}
	}
	if idle[len(idle)-1] != 1000 || report.Rows[1].Collections != 0 {
		t.Errorf("a row that allocates nothing did %v operations, with %v collections", idle, report.Rows[1].Collections)
	}
}

// TestLengthen shares the time among rows. The longest has fewer collections than ten.
func TestLengthen(t *testing.T) {
	steady := func(perOp float64) *unit {
		return &unit{row: &Row{N: 1000, Steady: true}, n: 1000, took: time.Millisecond, tried: sample{N: 1000, Wall: 1000 * perOp, Bytes: 1000 * 32}}
	}
	fast, slow, idle, plain := steady(10), steady(1000), steady(10), steady(10)
	idle.tried.Bytes = 0
	plain.row.Steady = false
	const ten = 1_704_000 // of 32 bytes
	// Six rounds of four tenths of what the slow row wants, and of all that the others do.
	const share = 3500 * 1200 * time.Millisecond / 1000
	if over := (&run{Options: &Options{}}).lengthen(group{fast, slow, idle, plain}, share); over != steadyOverdraft {
		t.Errorf("the group may take %v times its share", over)
	}
	if fast.n != ten || fast.warm != ten/warmPart || idle.n != 1000 || plain.n != 1000 || plain.warm != 0 {
		t.Errorf("%d operations after %d, %d and %d", fast.n, fast.warm, idle.n, plain.n)
	}
	if slow.n < 670_000 || slow.n > 690_000 || slow.took < 700*time.Millisecond || slow.took > 900*time.Millisecond {
		t.Errorf("the slow row has %d operations, in %v", slow.n, slow.took)
	}
	r := &run{Options: &Options{Each: Length{N: 10}}}
	if asked := steady(10); r.lengthen(group{asked}, share) != overdraft || asked.n != 1000 || asked.warm != 0 {
		t.Errorf("with -benchtime a round has %d operations after %d", asked.n, asked.warm)
	}
}

// A row has somewhat shorter rounds before it has three, and three long ones before they
// are much shorter. What other rows take is not theirs.
func TestLengthenRounds(t *testing.T) {
	for _, tt := range []struct {
		rounds float64
		want   int // a thousandth of what ten collections need
	}{{6.5, 1000}, {5.2, 800}, {2, 308}, {1.9, 543}, {1, 286}} {
		const perOp, ten = 100, 1_704_000
		u := &unit{row: &Row{N: 1000, Steady: true}, n: 1000, tried: sample{N: 1000, Wall: 1000 * perOp, Bytes: 1000 * 32}}
		// A row that takes as long as one long round.
		other := &unit{row: &Row{}, took: 1.2 * perOp * ten}
		rounds := 3.5 // with the half of one for the calibration
		if tt.rounds > 1.95 {
			rounds = 6.5
		}
		share := time.Duration((tt.rounds*1.2*perOp*ten + rounds*float64(other.took)) / steadyOverdraft)
		(&run{Options: &Options{}}).lengthen(group{u, other}, share)
		if got := float64(u.n) / ten * 1000; got < float64(tt.want)-2 || got > float64(tt.want)+2 {
			t.Errorf("with time for %v rounds one has %.0f thousandths of its operations, want %d", tt.rounds, got, tt.want)
		}
	}
}

// A row that has fewer than ten collections says why, behind its own note.
func TestFewCollections(t *testing.T) {
	for _, tt := range []struct {
		collections uint32
		bytes       uint64
		n, ten      int
		want        string
	}{
		{3, 32, 5, 10, "own; " + shortTime}, {3, 32, 10, 10, "own; " + growingHeap}, {3, 32, 10, 0, "own; " + shortRound},
		{10, 32, 10, 10, "own"}, {0, 0, 1, 0, "own"},
	} {
		u := &unit{
			table: &Table{}, row: &Row{Steady: true, Note: "own"}, procs: 1, n: tt.n, ten: tt.ten,
			tried: sample{N: 1, Bytes: tt.bytes}, samples: []sample{{N: 1, Wall: 1, Bytes: tt.bytes, Collections: tt.collections}},
		}
		if got := new(run).summarize(u); got.Note != tt.want || got.Collections != float64(tt.collections) {
			t.Errorf("%d collections: %v, note %q", tt.collections, got.Collections, got.Note)
		}
	}
}

// Collections that Settle forces are not counted.
func TestForcedCollections(t *testing.T) {
	u := &unit{work: Work{Run: func(int) {}, Settle: func() error { runtime.GC(); runtime.GC(); return nil }}}
	s, err := u.takeNow(1)
	if err != nil || s.Collections != 0 {
		t.Errorf("%d collections, %v", s.Collections, err)
	}
}

func TestLevel(t *testing.T) {
	for _, tt := range []struct {
		wanted []float64
		total  float64
		want   string
	}{
		{nil, 10, "1e+18"}, {[]float64{3, 4}, 10, "1e+18"}, {[]float64{8, 2}, 8, "6"}, {[]float64{1, 9, 9}, 10, "4.5"}, {[]float64{5, 5}, 0, "0"},
	} {
		if got := fmt.Sprint(level(tt.wanted, tt.total)); got != tt.want {
			t.Errorf("%v in %v: %s, want %s", tt.wanted, tt.total, got, tt.want)
		}
	}
}
