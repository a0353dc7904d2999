package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cheapgo/cheap/internal/page/result"
)

const (
	gogc    = 100           // for all rows except those without a collector; the environment has no effect
	noLimit = math.MaxInt64 // of the Go heap, in the same way
)

// A run is one Run.
type run struct {
	*Options
	start time.Time
	end   time.Time // nothing begins after it; zero if the run takes as long as it takes
	done  float64   // weight of the groups that have been measured
	left  float64   // weight of the others
	units []*unit
}

// Run measures the tables. When ctx is done, it returns a partial report of what
// was measured until then, and the error of ctx. A row that fails is missing in the
// report, and the error names the row and the reason. The error is [ErrNothing] if the budget is
// used up before a row has a sample.
func Run(ctx context.Context, tables []Table, o Options) (*result.Report, error) {
	defer setProcs(runtime.GOMAXPROCS(0))
	defer debug.SetGCPercent(debug.SetGCPercent(gogc))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(noLimit))

	r := &run{Options: &o, start: o.clock.now(), units: units(tables, &o)}
	if o.Count == 0 && o.Each == (Length{}) {
		r.end = r.start.Add(o.Budget)
	}
	all := groups(r.units)
	slices.SortStableFunc(all, func(a, b group) int { return b.first(&o) - a.first(&o) })
	for _, g := range all {
		r.left += g.weight()
	}
	for _, g := range all {
		r.group(ctx, g)
		r.done += g.weight()
		r.left -= g.weight()
	}
	errs := append(r.failures(), r.leftOut(ctx))
	errs = append(errs, ctx.Err())
	return r.report(tables, ctx.Err() != nil), errors.Join(errs...)
}

// failures returns the errors of rows, and adds them to the notes of the report. What
// this machine does not have is in the notes only.
func (r *run) failures() (errs []error) {
	for _, u := range r.units {
		if u.failed() {
			if !u.unsupported() {
				errs = append(errs, fmt.Errorf("%v: %w", u, u.err))
			}
			r.Notes = append(r.Notes, fmt.Sprintf("%v is missing: %v", u, u.err))
		}
	}
	return errs
}

// group measures the units of a group, which take turns.
func (r *run) group(ctx context.Context, g group) {
	if ctx.Err() != nil {
		return
	}
	begin := r.clock.now()
	share := r.share(g)
	free := r.free(g, share)
	bounded, cancel := r.bounded(ctx)
	defer cancel()
	for _, u := range g {
		defer u.close()
		if u.err = r.fits(0); u.err == nil {
			u.err = r.cause(ctx, bounded, u.openHereOrApart(bounded, r.Options))
		}
	}
	each := r.each(g, share)
	for _, u := range g.alive() {
		r.tell(u, "calibrating")
		if u.err = r.fits(0); u.err == nil {
			u.err = r.cause(ctx, bounded, u.calibrate(bounded, each, r.Each.N, r.fits))
		}
	}
	over := min(r.lengthen(g.alive(), share), free)
	rounds := r.clock.now()
	for round := 0; r.another(round, r.clock.since(begin), r.clock.since(rounds), share, over); round++ {
		for _, u := range g.alive().turns(round) {
			if ctx.Err() != nil {
				return
			}
			if u.err = r.fits(u.took); u.err != nil {
				continue
			}
			r.tell(u, fmt.Sprintf("round %d", round+1))
			r.round(ctx, bounded, u)
		}
	}
}

// round adds a sample.
func (r *run) round(ctx, bounded context.Context, u *unit) {
	var s sample
	begin := r.clock.now()
	if u.row.NoGC {
		s, u.err = u.leak(bounded, r.Options, u.n)
	} else {
		s, u.err = u.take(bounded, u.n)
	}
	u.took = r.clock.since(begin)
	u.err = r.cause(ctx, bounded, u.err)
	if u.err == nil {
		u.samples = append(u.samples, s)
	}
}

// interrupted returns the error of ctx if ctx is done, because err is then its
// consequence, such as that of a process that was ended.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// share returns a group's part of the remaining time. If a group takes more or less
// than its part, the groups after it share the difference.
func (r *run) share(g group) time.Duration {
	left := max(r.Budget-r.clock.since(r.start), 0)
	least := time.Duration(r.Budget.Seconds() / (r.done + r.left) * g.weight() / 4 * float64(time.Second))
	return max(time.Duration(float64(left)*g.weight()/r.left), min(least, left))
}

// If the preparations of a group, such as a million objects, have taken all of its share, the
// group may take one part in cheapRounds of the share for more rounds.
const cheapRounds = 2

// If a group takes longer than its share, the groups after it keep this part of theirs.
const keptShare = 0.75

// free returns by which factor a group may exceed its share, at most; see keptShare.
func (r *run) free(g group, share time.Duration) float64 {
	after := keptShare * float64(r.Budget) * (r.left - g.weight()) / (r.done + r.left)
	return max((float64(r.Budget-r.clock.since(r.start))-after)/max(float64(share), 1), 1)
}

// each returns the length of one round of one unit.
func (r *run) each(g group, share time.Duration) time.Duration {
	if r.Each.Time > 0 {
		return r.Each.Time
	}
	t := share/time.Duration(len(g)*(aimedAtRounds+calibrationRounds)) - betweenRounds
	return min(max(t, shortestRound), longestRound)
}

// another reports whether one more round follows after round rounds. The rounds
// took rounds, and with the calibration spent of the share, which may be exceeded by the
// factor over.
func (r *run) another(round int, spent, rounds, share time.Duration, over float64) bool {
	if r.Count > 0 {
		return round < r.Count
	}
	if round == 0 {
		return true
	}
	one := rounds / time.Duration(round)
	for _, goal := range []int{fewRounds, enoughRounds} {
		if round < goal {
			rest := one * time.Duration(goal-round)
			return float64(spent+rest) <= over*float64(share) || rest <= share/cheapRounds
		}
	}
	return round < mostRounds && spent+one <= share
}

// tell reports what comes next.
func (r *run) tell(u *unit, step string) {
	if r.Progress == nil {
		return
	}
	spent := r.clock.since(r.start)
	left := r.Budget - spent
	if r.Count > 0 || r.Each != (Length{}) || left < 0 {
		left = 0
		if r.done > 0 {
			left = time.Duration(float64(spent) / r.done * r.left)
		}
	}
	r.Progress(Progress{Table: u.table.Name, Row: u.row.Name, Procs: u.procs, Step: step, Left: left})
}

// calibrate sets the number of operations in a round: to n if that is given, else to
// the number that takes about each. It runs them once, so that caches are warm.
//
// A row with a number of operations of its own may be too long for the time that is
// left. calibrate times a small part of them, and fits decides.
func (u *unit) calibrate(ctx context.Context, each time.Duration, n int, fits func(time.Duration) error) error {
	switch {
	case u.row.NoGC && u.row.N == 0:
		return errors.New("a row without a collector has no number of operations")
	case u.row.NoGC:
		u.n = u.row.N // its process warms up by itself
		return nil
	case u.row.Keeps:
		var err error
		u.n = u.row.N
		begin := u.clock.now()
		u.resident, err = u.work.Resident(u.n)
		u.took = u.clock.since(begin)
		return err
	case u.row.N > 0:
		u.n = u.row.N
	case n > 0:
		u.n = n
	default:
		var err error
		u.n, err = u.search(ctx, each)
		return err
	}
	if u.work.Time != nil {
		return nil // its preparations for a round are new each time, and may be long
	}
	begin := u.clock.now()
	if _, err := u.take(ctx, max(u.n/probe, 1)); err != nil {
		return err
	}
	if err := fits(u.clock.since(begin) * time.Duration(min(probe, u.n))); err != nil {
		return err
	}
	begin = u.clock.now()
	var err error
	u.tried, err = u.take(ctx, u.n)
	u.took = u.clock.since(begin)
	return err
}

// search runs more and more operations until a round takes long enough. A round of
// few operations is long as well if the system has interrupted it, or if starting
// goroutines takes long. Then twice as many operations do not take longer. On a busy machine that
// may be so for any number: after searchRounds the last one is taken.
func (u *unit) search(ctx context.Context, each time.Duration) (int, error) {
	if _, err := u.take(ctx, 1); err != nil { // without garbage of the previous row
		return 0, err
	}
	enough := 0.8 * float64(each)
	begin := u.clock.now()
	for n := 1; ; {
		wall, err := u.wall(ctx, n)
		if err != nil {
			return 0, err
		}
		if wall < enough && n < mostOperations {
			n = more(n, wall, float64(each))
			continue
		}
		again, err := u.wall(ctx, n)
		if err != nil || n > mostOperations/2 {
			return n, err
		}
		twice, err := u.wall(ctx, 2*n)
		if err != nil {
			return 0, err
		}
		if wall = min(wall, again); wall >= enough && twice >= 1.5*wall || u.clock.since(begin) > searchRounds*each {
			return n, nil
		}
		n = max(more(n, min(wall, twice), float64(each)), 2*n)
	}
}

// wall returns about how long n operations take. There is no collection before them.
func (u *unit) wall(ctx context.Context, n int) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s, err := u.takeNow(n)
	return s.Wall, err
}

// more returns how many operations to try after n: as many as the goal needs, but
// more than n, and at most 100 times as many.
func more(n int, took, goal float64) int {
	next := float64(n) * goal / max(took, 1)
	return int(min(max(next, float64(n+1)), 100*float64(n), mostOperations))
}

// report makes a report of what has been measured.
func (r *run) report(tables []Table, partial bool) *result.Report {
	out := &result.Report{Machine: r.Machine, Notes: slices.Clone(r.Notes), Partial: partial}
	for i := range tables {
		t := &tables[i]
		rows := len(out.Rows)
		for _, u := range r.units {
			if u.table == t && u.measured() {
				out.Rows = append(out.Rows, r.summarize(u))
			}
		}
		if len(out.Rows) > rows {
			out.Tables = append(out.Tables, t.Table)
			out.Notes = append(out.Notes, t.Notes...)
		}
	}
	for i := range out.Rows {
		out.Rows[i].Machine = &out.Machine
	}
	out.Notes = append(out.Notes, r.rounds())
	return out
}

// beside returns the unit of a row on procs processors that takes turns with u, nil if it was not
// measured.
func (r *run) beside(u *unit, row string, procs int) *unit {
	i := slices.IndexFunc(r.units, func(v *unit) bool {
		return row == v.row.Name && u.table == v.table && v.procs == procs && u.row.Group == v.row.Group
	})
	if i < 0 || !r.units[i].measured() {
		return nil
	}
	return r.units[i]
}

// rounds describes how many rounds there were.
func (r *run) rounds() string {
	least, most := math.MaxInt, 0
	for _, u := range r.units {
		if u.measured() {
			least, most = min(least, len(u.samples)), max(most, len(u.samples))
		}
	}
	took := r.clock.since(r.start).Round(time.Millisecond)
	if took > time.Second {
		took = took.Round(time.Second / 10)
	}
	switch {
	case most == 0:
		return "nothing was measured"
	case most == 1:
		return fmt.Sprintf("1 round, in %v", took)
	case least == most:
		return fmt.Sprintf("%d rounds, in %v", most, took)
	}
	return fmt.Sprintf("%d to %d rounds, in %v", least, most, took)
}
