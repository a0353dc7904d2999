package testchild

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRun looks whether a child runs, and whether its end is noticed.
func TestRun(t *testing.T) {
	t.Cleanup(func() {
		if Is() {
			t.Error("a child came to the end of the test")
		}
	})
	for _, row := range []struct {
		name   string
		f      func()
		output string
		status int
	}{
		{"returns", func() { os.Stdout.WriteString("here") }, "here", 0},
		{"panics", func() { panic("there") }, "panic: there", 2},
		{"exits (with 7)", func() { os.Exit(7) }, "", 7},
		{"a|b", func() { os.Stderr.WriteString("alternatives") }, "alternatives", 0},
		{"has a variable", func() { os.Stdout.WriteString(os.Getenv("TESTCHILD")) }, "set", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			output, status := Run(t, row.f, "TESTCHILD=set")
			if !strings.HasPrefix(output, row.output) || output == "" && row.output != "" || status != row.status {
				t.Errorf("status %d, output %q", status, output)
			}
		})
	}
}

// TestKilled has a child that does not end before the deadline of the test.
func TestKilled(t *testing.T) {
	defer func(f func(testing.TB) (time.Time, bool)) { deadline = f }(deadline)
	deadline = func(testing.TB) (time.Time, bool) { return time.Now().Add(50 * time.Millisecond), true }
	if output, status := Run(t, func() { time.Sleep(time.Hour) }); status != -1 || output != "" {
		t.Errorf("status %d, output %q", status, output)
	}
}

// TestTest runs parts of tests that pass, fail, are skipped, panic.
func TestTest(t *testing.T) {
	for _, row := range []struct {
		name   string
		f      func(t *testing.T)
		passed bool
		output string
	}{
		{"passes", func(t *testing.T) { t.Log("seen") }, true, "seen"},
		{"fails", func(t *testing.T) { t.Error("wrong") }, false, "wrong"},
		{"is skipped", func(t *testing.T) { t.Skip("not here") }, false, "not here"},
		{"panics", func(t *testing.T) { panic("there") }, false, "panic: there"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			output, passed := Test(t, row.f)
			if !Is() && (passed != row.passed || !strings.Contains(output, row.output)) {
				t.Errorf("passed: %v, output:\n%s", passed, output)
			}
		})
	}
}

// TestCommand starts a child by hand.
func TestCommand(t *testing.T) {
	Main(t, func() {
		os.Stdout.WriteString("to one")
		os.Stderr.WriteString("to the other")
		os.Exit(3)
	})
	cmd := Command(t)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 || string(out) != "to one" || errors.String() != "to the other" {
		t.Errorf("%v, %q, %q", err, out, errors.String())
	}
}
