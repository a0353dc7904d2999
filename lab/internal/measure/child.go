package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
)

// Each round of a row that leaks runs in a child process. Its arguments are the
// table, the row, the numbers of processors and of operations, and a file for a
// profile or "". It prints the sample.

// apart runs a round in a child process.
func (u *unit) apart(ctx context.Context, o *Options, n int, profile string) (sample, error) {
	var stdout, stderr bytes.Buffer
	child := o.Child(ctx, u.table.Name, u.row.Name, strconv.Itoa(u.procs), strconv.Itoa(n), profile)
	child.Stdout, child.Stderr = &stdout, &stderr
	err := child.Run()
	if ctx.Err() != nil {
		return sample{}, ctx.Err()
	}
	if err != nil {
		return sample{}, fmt.Errorf("child process: %w: %s", err, firstLine(stderr.String()))
	}
	var s sample
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		return sample{}, fmt.Errorf("output of the child process: %w", err)
	}
	if s.N != n {
		return sample{}, fmt.Errorf("the child process did %d operations, not %d", s.N, n)
	}
	return s, nil
}

// firstLine returns the line with the error: a stack may follow it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// ErrArgs says what the arguments of [Child] are.
var ErrArgs = errors.New("the arguments are a table, a row, numbers of processors and of operations, and a file; only cheap bench runs this command")

// All rounds of a row that is Apart run in one child process. Its arguments are the
// table, the row and the number of processors: see [Serve].

// openHereOrApart sets up the work of a row, in a child process if the row is Apart.
func (u *unit) openHereOrApart(ctx context.Context, o *Options) (err error) {
	if !u.row.Apart {
		return u.open()
	}
	u.work, err = Remote(func(procs int) *exec.Cmd {
		child := o.Child(ctx, u.table.Name, u.row.Name, strconv.Itoa(procs))
		if len(u.row.Env) > 0 {
			child.Env = append(child.Environ(), u.row.Env...)
		}
		return child
	})(u.procs)
	return err
}

// Child is the child process of one round of a row that leaks, or of all rounds of
// a row that is Apart.
func Child(ctx context.Context, tables []Table, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 3 {
		u, _, err := childUnit(tables, append(args, "1", ""))
		if err != nil {
			return err
		}
		return Serve(ctx, *u.row, u.procs, stdin, stdout)
	}
	u, n, err := childUnit(tables, args)
	if err != nil {
		return err
	}
	setProcs(u.procs)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(noLimit)
	if u.work, err = u.row.Open(u.procs); err != nil {
		return err
	}
	// The collector is off from here on, between the rounds as well.
	if _, err := u.takeNow(max(n/100, 1)); err != nil { // warms code and the caches of threads
		return err
	}
	var s sample
	run := func() error {
		s, err = u.takeNow(n)
		return err
	}
	if file := args[4]; file != "" {
		err = profileTo(file, run)
	} else {
		err = run()
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(s)
}

// childUnit finds the row that the arguments name.
func childUnit(tables []Table, args []string) (*unit, int, error) {
	if len(args) != 5 {
		return nil, 0, ErrArgs
	}
	procs, err := strconv.Atoi(args[2])
	n, err2 := strconv.Atoi(args[3])
	if err != nil || err2 != nil || procs < 1 || n < 1 {
		return nil, 0, ErrArgs
	}
	for i := range tables {
		t := &tables[i]
		for j := range t.Rows {
			if t.Name == args[0] && t.Rows[j].Name == args[1] {
				return &unit{table: t, row: &t.Rows[j], procs: procs}, n, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("no row %s/%s", args[0], args[1])
}

// profileTo profiles run into a file.
func profileTo(file string, run func() error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(underProfile(f, run), f.Close())
}
