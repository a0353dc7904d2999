package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// errNoTime says that a round would end after the run.
var errNoTime = errors.New("the time is over")

// ErrNothing is the error of a run whose time was over before the first round.
var ErrNothing = errors.New("nothing was measured")

// grace is the part of the budget for which a process may go on when the time is over.
const grace = 20

// fits returns errNoTime if something that takes so long would end after the run.
func (r *run) fits(took time.Duration) error {
	if !r.end.IsZero() && !r.clock.now().Add(took).Before(r.end) {
		return errNoTime
	}
	return nil
}

// bounded returns a context that is done soon after the end of the run. It ends the
// processes of rows, and waits for what other rows have left.
func (r *run) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.end.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.Budget/grace-r.clock.since(r.end))
}

// cause returns the reason of an error: that of ctx if ctx is done, because err is then
// its consequence, such as that of a process that was ended, and in the same way
// errNoTime.
func (r *run) cause(ctx, bounded context.Context, err error) error {
	if err == nil {
		return nil
	}
	if err := interrupted(ctx, err); ctx.Err() != nil {
		return err
	}
	if bounded.Err() != nil {
		return errNoTime
	}
	return err
}

// leftOut names the rows that did not fit, in the notes of the report. It returns ErrNothing if no
// row did.
func (r *run) leftOut(ctx context.Context) error {
	if ctx.Err() != nil || r.end.IsZero() {
		return nil // the report says that it was interrupted
	}
	var names []string
	for i := 0; i < len(r.units); {
		table := r.units[i].table
		var missing []string
		all := true
		for ; i < len(r.units) && r.units[i].table == table; i++ {
			switch u := r.units[i]; {
			case u.measured():
				all = false
			case errors.Is(u.err, errNoTime):
				missing = append(missing, u.name())
			}
		}
		switch {
		case len(missing) == 0:
		case all && len(missing) > 1:
			names = append(names, "all of "+table.Name)
		default:
			names = append(names, table.Name+": "+strings.Join(missing, ", "))
		}
	}
	if len(names) == 0 {
		return nil
	}
	r.Notes = append(r.Notes, fmt.Sprintf("Left out, because the time of %v was over: %s.", r.Budget, strings.Join(names, "; ")))
	if slices.ContainsFunc(r.units, (*unit).measured) {
		return nil
	}
	return fmt.Errorf("%w: the time of %v was over before the first round", ErrNothing, r.Budget)
}

// name is the row's name, with its number of processors if that is not 1.
func (u *unit) name() string {
	if u.procs == 1 {
		return u.row.Name
	}
	return fmt.Sprintf("%s on %d", u.row.Name, u.procs)
}
