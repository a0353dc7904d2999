package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// A tested is what became of a suite, in the project as it is and with our files.
type tested struct {
	Suite  string   `json:"suite"`
	Both   int      `json:"both"`   // tests that pass with and without our files
	Failed []string `json:"failed"` // those that fail without
	Lost   []string `json:"lost"`   // those that pass only without
}

// test runs the suites.
func (c *checkout) test(ctx context.Context, f *figures) error {
	for i := range c.suites {
		s := &c.suites[i]
		before, err := c.results(ctx, s, &c.ways[0])
		if err != nil {
			return err
		}
		after, err := c.results(ctx, s, c.ours())
		if err != nil {
			return err
		}
		t := compare(before, after)
		t.Suite = s.name
		if t.Both == 0 {
			return fmt.Errorf("%s: no test passes", s.name)
		}
		f.Tests = append(f.Tests, t)
	}
	return nil
}

// compare sets the results of the same tests side by side. A test that passed before must pass after:
// it is lost as well if its program ended before it.
func compare(before, after map[string]bool) (t tested) {
	t.Failed, t.Lost = []string{}, []string{} // not null in JSON
	for name, passed := range before {
		switch {
		case passed && after[name]:
			if !strings.HasSuffix(name, ":") {
				t.Both++
			}
		case passed:
			t.Lost = append(t.Lost, name)
		default:
			t.Failed = append(t.Failed, name)
		}
	}
	for name, passed := range after {
		if _, ok := before[name]; !ok && !passed {
			t.Lost = append(t.Lost, name)
		}
	}
	slices.Sort(t.Failed)
	slices.Sort(t.Lost)
	return t
}

// results runs a suite in a way, and returns which tests passed: tests, not their subtests, by the
// package and the name, and packages, by a name that ends with a colon. What is skipped is neither.
func (c *checkout) results(ctx context.Context, s *suite, w *way) (map[string]bool, error) {
	fmt.Fprintf(c.progress, "tests of %s, %s\n", s.name, w.name)
	build, err := c.build(ctx, w, s.forget && w.tree != "")
	if err != nil {
		return nil, err
	}
	args := slices.Concat([]string{"test", "-json", "-vet=off", "-count=1", "-exec=" + strings.Join(c.limited(), " ")}, build, s.args, s.packages)
	if len(s.program) > 0 {
		args = append(append(args, "-args"), s.program...)
	}
	cmd := c.goCommand(ctx, c.dirs[s.module], w.env, args...)
	cmd.Stderr = c.progress
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results, err := decode(out)
	if err != nil {
		cmd.Cancel()
	}
	var exit *exec.ExitError
	if err2 := cmd.Wait(); err == nil && !errors.As(err2, &exit) { // tests that fail are results
		err = err2
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return results, err
}

// decode reads what go test -json prints.
func decode(r io.Reader) (map[string]bool, error) {
	results := map[string]bool{}
	for d := json.NewDecoder(r); ; {
		var e struct{ Action, Package, Test string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return results, nil
		} else if err != nil {
			return nil, err
		}
		if e.Package != "" && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
			results[e.Package+":"+e.Test] = e.Action == "pass"
		}
	}
}
