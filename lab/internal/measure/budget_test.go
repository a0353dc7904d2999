package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// hours is a budget of tests whose rows move the clock. The timer that ends processes is that of
// the system, and does not come before the test is over.
const hours = 10 * time.Hour

// starved is a row that takes so long for each operation.
func (f *fake) starved(name string, op time.Duration) Row {
	row := f.row(name, "", "", op)
	row.N = 1000
	return row
}

// TestBudgetHolds starves the rows of a run: each takes longer than all of them may.
// The run ends about in time, and names what is missing.
func TestBudgetHolds(t *testing.T) {
	var f fake
	tables := fakeTable(f.row("quick", "", "", time.Microsecond), f.starved("slow", hours/100),
		f.starved("slower", hours/50), f.row("small", "", "", time.Microsecond))
	tables = append(tables, fakeTable(f.starved("a", hours/2), f.starved("b", hours/2))...)
	tables[1].Name = "others"
	report, err := Run(t.Context(), tables, Options{Budget: hours, clock: f.clock})
	testcall.Must(t, err)
	want := "Left out, because the time of 10h0m0s was over: fakes: slow, slower, small; all of others."
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, want) {
		t.Errorf("the notes are\n%s\nwant\n%s", notes, want)
	}
	if len(report.Rows) != 1 || report.Rows[0].Row != "quick" || report.Partial {
		t.Errorf("rows %+v", report.Rows)
	}
	// A twentieth of a round of slow is half of the time, and one of slower is all of it.
	if took := f.at.Sub(time.Time{}); took < hours || took > 2*hours {
		t.Errorf("a run of %v took %v", hours, took)
	}
}

// TestBudgetOfNothing has rows that are too slow for one round: the error says so.
func TestBudgetOfNothing(t *testing.T) {
	var f fake
	report, err := Run(t.Context(), fakeTable(f.starved("slow", hours/100), f.starved("slower", hours/50)), Options{Budget: hours, clock: f.clock})
	if want := "nothing was measured: the time of 10h0m0s was over before the first round"; !errors.Is(err, ErrNothing) || err.Error() != want || len(report.Rows) != 0 {
		t.Errorf("%v, want %s; rows %+v", err, want, report.Rows)
	}
}

// TestBusyMachine measures rows of one group where other programs have the processor most of the
// time: it is this one's for four milliseconds, and then for 96 it is not. No number of operations
// seems to make a round of 25 milliseconds there.
func TestBusyMachine(t *testing.T) {
	var f fake
	const mine, turn = 4 * time.Millisecond, 100 * time.Millisecond
	var worked time.Duration // in the present turn
	busy := func(d time.Duration) {
		worked += d
		f.at = f.at.Add(d + worked/mine*(turn-mine))
		worked %= mine
	}
	var rows []Row
	for i := range 8 {
		rows = append(rows, Row{Name: fmt.Sprint(i), Group: "two", Open: func(int) (Work, error) {
			return Work{Run: func(n int) {
				busy(time.Duration(n) * time.Microsecond)
			}, Settle: func() error { busy(2 * time.Millisecond); return nil }}, nil
		}})
	}
	const budget = 15 * time.Second // of lab -quick
	report, err := Run(t.Context(), fakeTable(rows...), Options{Budget: budget, clock: f.clock})
	if err != nil || len(report.Rows) != len(rows) {
		t.Fatalf("%d rows, %v, %q", len(report.Rows), err, report.Notes)
	}
	for _, row := range report.Rows {
		if len(row.Samples) < fewRounds {
			t.Errorf("%s has %d rounds", row.Row, len(row.Samples))
		}
	}
	if took := f.at.Sub(time.Time{}); took > 2*budget {
		t.Errorf("a run of %v took %v", budget, took)
	}
}

// A group may exceed its share while those after it keep three quarters of theirs.
func TestFree(t *testing.T) {
	g := group{{table: &Table{}, row: &Row{}}} // of weight 1
	for _, tt := range []struct {
		done, left float64
		spent      time.Duration
		want       float64
	}{
		{0, 2, 0, 62.5 / 50},           // half of the time is for the other
		{1, 1, 50 * time.Second, 1},    // the last one: there is nothing to take from
		{1, 1, 20 * time.Second, 1},    // its share is all that is left
		{8, 2, 80 * time.Second, 1.25}, // the last but one
		{8, 2, 85 * time.Second, 1},    // the others took from both
		{0, 10, 0, 32.5 / 10},          // early groups have most
	} {
		f := fake{at: time.Time{}.Add(tt.spent)}
		r := &run{Options: &Options{Budget: 100 * time.Second, clock: f.clock}, done: tt.done, left: tt.left}
		if got := r.free(g, r.share(g)); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("after %v of 100 s, with %v of %v groups done: %.3f times its share, want %.3f", tt.spent, tt.done, tt.done+tt.left, got, tt.want)
		}
	}
}

// TestBudgetEndsProcesses ends a row's process that takes too long. The samples of other
// rows stay.
func TestBudgetEndsProcesses(t *testing.T) {
	var f fake
	const budget = 10 * time.Second
	quick := f.row("quick", "", "", time.Microsecond)
	open := quick.Open
	quick.Open = func(procs int) (Work, error) {
		w, err := open(procs)
		w.Close = func() { f.at = time.Time{}.Add(budget - 1) } // the end is near for the others
		return w, err
	}
	endless := Row{Name: "endless", NoGC: true, N: 1}
	apart := Row{Name: "apart", Apart: true, N: 1}
	var children []*exec.Cmd
	report, err := Run(t.Context(), fakeTable(quick, endless, apart), Options{
		Budget: budget, clock: f.clock,
		Child: func(ctx context.Context, _ ...string) *exec.Cmd {
			child := exec.CommandContext(ctx, "sleep", "3600")
			children = append(children, child)
			return child
		},
	})
	testcall.Must(t, err)
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "fakes: endless, apart.") || len(report.Rows) != 1 {
		t.Errorf("rows %+v, notes\n%s", report.Rows, notes)
	}
	if len(children) != 2 {
		t.Errorf("%d processes, want 2", len(children))
	}
	for _, child := range children {
		if child.ProcessState == nil || child.ProcessState.Success() {
			t.Errorf("%v was not ended: %v", child, child.ProcessState)
		}
	}
}

// With a number of rounds there is no end.
func TestNoBudget(t *testing.T) {
	for _, o := range []Options{{Count: 1}, {Each: Length{N: 1}}} {
		o.Budget = time.Nanosecond
		var f fake
		report, err := Run(t.Context(), fakeTable(f.row("a", "", "", 0), f.row("b", "", "", 0)), o)
		if err != nil || len(report.Rows) != 2 {
			t.Errorf("%+v: %v, %v", o.Each, report.Rows, err)
		}
	}
}

// A row that has failed is not left out, and one that was left out has not failed.
func TestCause(t *testing.T) {
	r := &run{Options: &Options{}}
	real := errors.New("real")
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		ctx, bounded context.Context
		err, want    error
	}{
		{t.Context(), t.Context(), nil, nil},
		{t.Context(), t.Context(), real, real},
		{t.Context(), over, real, errNoTime},
		{t.Context(), over, nil, nil},
		{ended, ended, real, context.Canceled},
	} {
		if got := r.cause(tt.ctx, tt.bounded, tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
	if u := (&unit{err: errNoTime, samples: []sample{{}}}); u.failed() || !u.measured() {
		t.Error("samples are lost where the time was over")
	}
}

// The rows that are to come first are measured first, with their group, and the report
// keeps the order of the table.
func TestFirst(t *testing.T) {
	var f fake
	rows := fakeTable(f.row("a", "", "", 0), f.row("b", "g", "", 0), f.row("c", "", "", 0), f.row("d", "g", "", 0))
	report, err := Run(t.Context(), rows, Options{Count: 1, Each: Length{N: 1}, First: func(table, row string) bool { return table == "fakes" && row == "d" }})
	testcall.Must(t, err)
	var measured, listed string
	for _, name := range f.log {
		if len(name) == 1 && !strings.Contains(measured, name) {
			measured += name
		}
	}
	for _, r := range report.Rows {
		listed += r.Row
	}
	if measured != "bdac" || listed != "abcd" {
		t.Errorf("measured %s, listed %s", measured, listed)
	}
}
