package measure

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// starved is a row that takes so long for each operation, and cannot be interrupted, but
// for the end of a test that has failed.
func starved(ctx context.Context, name string, op time.Duration) Row {
	return Row{Name: name, N: 1000, Open: func(int) (Work, error) {
		return Work{Run: func(n int) {
			select {
			case <-time.After(time.Duration(n) * op):
			case <-ctx.Done():
			}
		}}, nil
	}}
}

// inTime runs a test with a budget of a second or so. On a machine that is busy with
// something else, that may not be enough for what a run does beside its rounds: the test
// is run again with more. Test returns what is wrong, or "".
func inTime(t *testing.T, budget time.Duration, test func(budget time.Duration) string) {
	t.Helper()
	for try := 1; ; try++ {
		wrong := test(budget)
		if wrong == "" {
			return
		}
		if try == 4 {
			t.Fatalf("with a budget of %v: %s", budget, wrong)
		}
		budget *= 3
	}
}

// TestBudgetHolds starves the rows of a run: each takes longer than all of them may.
// The run ends about in time, and names what is missing. If it does not, the test ends it
// and fails at once: more time would not help.
func TestBudgetHolds(t *testing.T) {
	inTime(t, 2*time.Second, func(budget time.Duration) string {
		var f fake
		late, cancel := context.WithTimeout(t.Context(), 10*budget)
		defer cancel()
		tables := fakeTable(f.row("quick", "", "", time.Microsecond), starved(late, "slow", budget/100),
			starved(late, "slower", budget/50), f.row("small", "", "", time.Microsecond))
		tables = append(tables, fakeTable(starved(late, "a", budget/2), starved(late, "b", budget/2))...)
		tables[1].Name = "others"
		report, err := Run(late, tables, Options{Budget: budget})
		if late.Err() != nil {
			t.Fatalf("a run of %v was not over after %v", budget, 10*budget)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("Left out, because the time of %v was over: fakes: slow, slower, small; all of others.", budget)
		without := strings.Replace(want, ", small", "", 1) // if small was in time
		if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, want) && !strings.Contains(notes, without) {
			return fmt.Sprintf("the notes are\n%s\nwant\n%s", notes, want)
		}
		if len(report.Rows) == 0 || report.Rows[0].Row != "quick" || report.Partial {
			return fmt.Sprintf("rows %+v", report.Rows)
		}
		return ""
	})
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
		r := &run{Options: &Options{Budget: 100 * time.Second}, start: time.Now().Add(-tt.spent), done: tt.done, left: tt.left}
		if got := r.free(g, r.share(g)); got < tt.want-0.01 || got > tt.want+0.01 {
			t.Errorf("after %v of 100 s, with %v of %v groups done: %.3f times its share, want %.3f", tt.spent, tt.done, tt.done+tt.left, got, tt.want)
		}
	}
}

// TestBudgetEndsProcesses ends a row's process that takes too long. The samples of other
// rows stay.
func TestBudgetEndsProcesses(t *testing.T) {
	var f fake
	endless := Row{Name: "endless", NoGC: true, N: 1}
	apart := Row{Name: "apart", Apart: true, N: 1}
	inTime(t, 200*time.Millisecond, func(budget time.Duration) string {
		begin := time.Now()
		report, err := Run(t.Context(), fakeTable(f.row("quick", "", "", time.Microsecond), endless, apart), Options{
			Budget: budget,
			Child: func(ctx context.Context, _ ...string) *exec.Cmd {
				return exec.CommandContext(ctx, "sleep", "60")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			return fmt.Sprintf("it took %v", took)
		}
		if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "fakes: endless, apart.") || len(report.Rows) != 1 {
			return fmt.Sprintf("rows %+v, notes\n%s", report.Rows, notes)
		}
		return ""
	})
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
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
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
	if err != nil {
		t.Fatal(err)
	}
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
