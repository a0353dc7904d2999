package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
)

// A row that is Apart has one process for all of its rounds, and a row that leaks one for each
// round. The arguments of such a process are the table, the row and the number of processors: see
// [Serve].

// openHereOrApart sets up the work of a row, in a child process if the row is Apart.
func (u *unit) openHereOrApart(ctx context.Context, o *Options) (err error) {
	if !u.row.Apart {
		return u.open()
	}
	u.work, err = Remote(func(int) *exec.Cmd { return u.child(ctx, o) })(u.procs)
	return err
}

// child is the process of a row.
func (u *unit) child(ctx context.Context, o *Options) *exec.Cmd {
	child := o.Child(ctx, u.table.Name, u.row.Name, strconv.Itoa(u.procs))
	if len(u.row.Env) > 0 {
		child.Env = append(child.Environ(), u.row.Env...)
	}
	return child
}

// leak runs a round in a child process.
func (u *unit) leak(ctx context.Context, o *Options, n int) (sample, error) {
	r, err := start(u.child(ctx, o))
	if err != nil {
		return sample{}, err
	}
	defer r.close()
	for _, n := range []int{max(n/100, 1), n} { // the first one warms code and the caches of threads
		if _, _, err = r.time(n); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return sample{}, ctx.Err()
	}
	return r.last, err
}

// ErrArgs says what the arguments of [Child] are.
var ErrArgs = errors.New("the arguments are a table, a row and a number of processors; only lab runs this command")

// Child is the child process of a row.
func Child(ctx context.Context, tables []Table, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 3 {
		return ErrArgs
	}
	procs, err := strconv.Atoi(args[2])
	if err != nil || procs < 1 {
		return ErrArgs
	}
	for _, t := range tables {
		for _, row := range t.Rows {
			if t.Name == args[0] && row.Name == args[1] {
				return Serve(ctx, row, procs, stdin, stdout)
			}
		}
	}
	return fmt.Errorf("no row %s/%s", args[0], args[1])
}
