package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A fake is rows that write down what is done with them, and a clock that only they move.
type fake struct {
	log    []string
	closed int
	at     time.Time
}

func (f *fake) clock() time.Time { return f.at }

// row returns a row that takes so long for each operation, by the clock of f.
func (f *fake) row(name, group, versus string, op time.Duration) Row {
	return Row{Name: name, Group: group, Versus: versus, Open: func(procs int) (Work, error) {
		ran := 0
		return Work{
			Run: func(n int) {
				if gc := debug.SetGCPercent(gogc); gc != gogc || runtime.GOMAXPROCS(0) != procs {
					f.log = append(f.log, fmt.Sprintf("GOGC is %d, and GOMAXPROCS %d, not %d", gc, runtime.GOMAXPROCS(0), procs))
				}
				f.log = append(f.log, name)
				ran += n
				f.at = f.at.Add(time.Duration(n) * op)
			},
			Settle: func() error { ran += 0; f.log = append(f.log, "settle"); return nil },
			Check: func(n int) error {
				if ran != n {
					return fmt.Errorf("%d operations, not %d", ran, n)
				}
				ran = 0
				return nil
			},
			Close: func() { f.closed++ },
		}, nil
	}}
}

func fakeTable(rows ...Row) []Table {
	return []Table{{Table: result.Table{Name: "fakes", Title: "Fakes"}, Rows: rows}}
}

func TestRun(t *testing.T) {
	var f fake
	published := func(procs int) []result.Published {
		return []result.Published{{Ns: float64(procs), Source: "nobody"}}
	}
	slow, fast := f.row("slow", "g", "fast", 40*time.Microsecond), f.row("fast", "g", "", 10*time.Microsecond)
	slow.Published, slow.Note, slow.Section, fast.Procs = published, "on purpose", "apart", []int{1, 2}
	machine := result.Machine{CPU: "an abacus"}
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	report, err := Run(t.Context(), fakeTable(slow, fast), Options{Count: 9, Each: Length{Time: time.Millisecond}, Machine: machine, clock: f.clock})
	testcall.Must(t, err)
	if got := debug.SetGCPercent(50); got != 50 {
		t.Errorf("GOGC is %d afterwards", got)
	}
	if len(report.Tables) != 1 || report.Tables[0].Title != "Fakes" || len(report.Rows) != 3 || report.Partial || f.closed != 3 {
		t.Fatalf("%+v, closed %d", report, f.closed)
	}
	a, b := report.Rows[0], report.Rows[1]
	if a.Row != "slow" || b.Row != "fast" || report.Rows[2].Procs != 2 || a.Note != "on purpose" || a.Section != "apart" || a.Machine.CPU != "an abacus" || len(a.Samples) != 9 {
		t.Errorf("%+v", a)
	}
	if !slices.Equal(a.Published, published(1)) || b.Published == nil || len(b.Published) != 0 {
		t.Errorf("published %v and %v", a.Published, b.Published)
	}
	if a.NsPerOp != 40_000 || a.CI95Low != a.NsPerOp || a.CI95High != a.NsPerOp {
		t.Errorf("%v, %v to %v", a.NsPerOp, a.CI95Low, a.CI95High)
	}
	if v := a.Versus; v == nil || v.To != "fast" || v.Ratio != 4 {
		t.Errorf("versus %+v", v)
	}
	if b.Versus != nil {
		t.Errorf("fast is set beside %+v", b.Versus)
	}
	f.checkTurns(t)
}

// checkTurns checks that each run settles, and that no row runs twice in a round.
func (f *fake) checkTurns(t *testing.T) {
	t.Helper()
	rounds := f.log[len(f.log)-9*3*2:]
	for i := 0; i < len(rounds); i += 6 {
		r := rounds[i : i+6]
		names := []string{r[0], r[2], r[4]}
		slices.Sort(names)
		if !slices.Equal(names, []string{"fast", "fast", "slow"}) || r[1] != "settle" || r[3] != "settle" || r[5] != "settle" {
			t.Errorf("round %q", r)
		}
	}
}

// TestRunTime takes the row's word for what it took.
func TestRunTime(t *testing.T) {
	row := Row{Name: "told", N: 10, Open: func(int) (Work, error) {
		return Work{Time: func(n int) (wall, cpu float64, err error) { return float64(n) * 7, float64(n) * 8, nil }}, nil
	}}
	report, err := Run(t.Context(), fakeTable(row), Options{Count: 6})
	testcall.Must(t, err)
	if r := report.Rows[0]; r.NsPerOp != 7 || r.CI95Low != 7 || r.CI95High != 7 || r.CPUNsPerOp != 8 {
		t.Errorf("%+v", r)
	}
}

// TestRunFails leaves out the row that fails, whenever it does.
func TestRunFails(t *testing.T) {
	var f fake
	bad, rounds := f.row("bad", "g", "", 0), 0
	bad.N = 5
	open := bad.Open
	bad.Open = func(procs int) (Work, error) {
		w, err := open(procs)
		w.Check = func(int) error {
			if rounds++; rounds == 3 {
				return errors.New("it did nothing")
			}
			return nil
		}
		return w, err
	}
	closed := Row{Name: "closed", Open: func(int) (Work, error) { return Work{}, errors.New("not today") }}
	report, err := Run(t.Context(), fakeTable(bad, closed, f.row("good", "g", "bad", time.Microsecond)), Options{Count: 6, Each: Length{N: 10}, clock: f.clock})
	if err == nil || err.Error() != "fakes/bad: it did nothing\nfakes/closed: not today" {
		t.Errorf("error %v", err)
	}
	if got := strings.Join(report.Notes, "; "); !strings.HasPrefix(got, "fakes/bad is missing: it did nothing; fakes/closed is missing: not today; 6 rounds") {
		t.Errorf("notes %s", got)
	}
	if len(report.Rows) != 1 || report.Rows[0].Row != "good" || len(report.Rows[0].Samples) != 6 || report.Rows[0].Versus != nil {
		t.Errorf("rows %+v", report.Rows)
	}
}

func TestRunInterrupted(t *testing.T) {
	var f fake
	ctx, cancel := context.WithCancel(t.Context())
	look := func(p Progress) {
		if p.Row == "second" && p.Step == "round 3" {
			cancel()
		}
	}
	rows := fakeTable(f.row("first", "", "", time.Microsecond), f.row("second", "", "", time.Microsecond), f.row("third", "", "", time.Microsecond))
	report, err := Run(ctx, rows, Options{Count: 6, Each: Length{N: 10}, Progress: look, clock: f.clock})
	if !errors.Is(err, context.Canceled) || !report.Partial {
		t.Errorf("error %v, partial %v", err, report.Partial)
	}
	var names []string
	for _, r := range report.Rows {
		names = append(names, fmt.Sprint(r.Row, len(r.Samples)))
	}
	if got := strings.Join(names, " "); got != "first6 second2" {
		t.Errorf("rows %s", got)
	}
}

// TestBudget runs rows of unequal length. What is slow has few rounds, and takes
// nothing away from the others.
func TestBudget(t *testing.T) {
	var f fake
	slow := Row{Name: "slow", N: 1, Open: func(int) (Work, error) {
		return Work{Time: func(int) (wall, cpu float64, err error) {
			f.at = f.at.Add(hours / 5)
			return float64(hours / 5), 0, nil
		}}, nil
	}}
	tables := fakeTable(f.row("a", "", "", time.Microsecond), slow, f.row("b", "", "", time.Microsecond))
	report, err := Run(t.Context(), tables, Options{Budget: hours, clock: f.clock})
	testcall.Must(t, err)
	var rounds []int
	for _, row := range report.Rows {
		rounds = append(rounds, len(row.Samples))
	}
	if !slices.Equal(rounds, []int{mostRounds, fewRounds, mostRounds}) {
		t.Errorf("%v rounds", rounds)
	}
}

func TestAnother(t *testing.T) {
	const share = time.Second
	for _, c := range []struct {
		round int
		one   time.Duration
		want  bool
		first time.Duration // what the preparations took
	}{
		{1, 250 * time.Millisecond, true, time.Minute},
		{1, 260 * time.Millisecond, false, time.Minute},
		{3, 160 * time.Millisecond, true, time.Minute},
		{6, time.Millisecond, false, time.Minute},
		{0, time.Minute, true, 0},
		{1, time.Minute, false, 0},
		{1, 800 * time.Millisecond, true, 0},
		{1, 900 * time.Millisecond, false, 0},
		{3, 400 * time.Millisecond, true, 0},
		{3, 420 * time.Millisecond, false, 0},
		{5, 400 * time.Millisecond, true, 0},
		{6, 100 * time.Millisecond, true, 0},
		{6, 400 * time.Millisecond, false, 0},
		{6, 140 * time.Millisecond, true, 0},
		{12, time.Millisecond, false, 0},
	} {
		r := &run{Options: &Options{}}
		spent := time.Duration(c.round) * c.one
		if got := r.another(c.round, c.first+spent, spent, share, overdraft); got != c.want {
			t.Errorf("after %d rounds of %v: %v", c.round, c.one, got)
		}
	}
}

func TestMore(t *testing.T) {
	for _, c := range []struct {
		n          int
		took, goal float64
		want       int
	}{
		{1, 0, 1e6, 100},
		{100, 1e5, 1e6, 1000},
		{100, 1e4, 1e6, 10_000},
		{100, 0.99e6, 1e6, 101},
		{9e8, 10, 1e6, 1e9},
	} {
		if got := more(c.n, c.took, c.goal); got != c.want {
			t.Errorf("after %d in %v of %v: %d, want %d", c.n, c.took, c.goal, got, c.want)
		}
	}
}

// TestSearch finds how many operations of 1 µs take 1 ms, where rounds have a start
// that takes longer than that, and where some are interrupted.
func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name        string
		start       float64
		interrupted int // the round that takes long, 0 for none
	}{{"plain", 0, 0}, {"a long start", 2e6, 0}, {"the first interrupted", 0, 2}, {"another interrupted", 0, 3}} {
		rounds := 0
		u := &unit{procs: 1, row: new(Row), work: Work{Time: func(n int) (wall, cpu float64, err error) {
			rounds++
			if wall = c.start + float64(n)*1000; rounds == c.interrupted {
				wall += 5e6
			}
			return wall, 0, nil
		}}}
		n, err := u.search(t.Context(), time.Millisecond)
		testcall.Must(t, err)
		if n < 800 || n > 4000 || rounds > 40 {
			t.Errorf("%s: %d operations, after %d rounds", c.name, n, rounds)
		}
	}
}

// TestRunEndedProcess checks that what an interrupt has ended is no failure.
func TestRunEndedProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rounds := 0
	row := Row{Name: "remote", N: 1, Open: func(int) (Work, error) {
		return Work{Time: func(int) (wall, cpu float64, err error) {
			if rounds++; rounds > 3 {
				cancel()
				return 0, 0, errors.New("signal: killed")
			}
			return 1, 1, nil
		}}, nil
	}}
	report, err := Run(ctx, fakeTable(row), Options{Count: 9})
	if err == nil || err.Error() != context.Canceled.Error() || !report.Partial || len(report.Rows) != 1 || len(report.Rows[0].Samples) != 3 {
		t.Errorf("%v, %+v", err, report)
	}
}

// TestTurns checks that each unit begins a round, and that neighbours change.
func TestTurns(t *testing.T) {
	a, b, c := &unit{n: 1}, &unit{n: 2}, &unit{n: 3}
	first, pairs := map[int]bool{}, map[[2]int]bool{}
	for round := range 6 {
		turn := group{a, b, c}.turns(round)
		first[turn[0].n] = true
		for i := range 2 {
			pairs[[2]int{turn[i].n, turn[i+1].n}] = true
		}
	}
	if len(first) != 3 || len(pairs) != 6 {
		t.Errorf("first %v, pairs %v", first, pairs)
	}
}
