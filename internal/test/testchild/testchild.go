// Package testchild runs a part of a test in a child process, for what must not
// happen in the process of the other tests: a crash, a deadlock, a first use, a
// setting for the whole process. The child is the test binary again, told to run
// the calling test alone. It comes to the same call, and there it does its part.
//
// Only tests import it.
package testchild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testwait"
)

// variable is set in a child, to the name of the test that it is to run.
const variable = "CHEAP_TEST_CHILD"

// under names a command with arguments, parted by spaces, that runs a test binary: the
// one that go test was told with -exec, such as qemu-aarch64.
const under = "CHEAP_TEST_EXEC"

// deadline is replaced by a test.
var deadline = testwait.Deadline

// Is reports whether this process is a child.
func Is() bool { return os.Getenv(variable) != "" }

// Run runs f in a child. It returns what the child printed, and its exit status: 0
// if f returned, -1 if the child was killed, which happens shortly before the deadline
// of the test binary. In the child Run does not return; see [Main]. env are variables for
// the child, such as "NAME=value".
func Run(t *testing.T, f func(), env ...string) (output string, status int) {
	t.Helper()
	Main(t, f)
	output, err := combined(Command(t), env)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return output, 0
	case errors.Is(err, context.DeadlineExceeded):
		return output, -1
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	return output, exit.ExitCode()
}

// Test runs f as a part of the calling test in a child. It returns what the child
// printed, and whether the test passed there. In the child Test returns as well, so
// what follows runs in both processes. The deadline of the child comes before that of
// the test binary.
func Test(t *testing.T, f func(t *testing.T), env ...string) (output string, passed bool) {
	t.Helper()
	if isFor(t) {
		f(t)
		return "", true
	}
	args := []string{"-test.v"}
	if at, limited := deadline(t); limited {
		args = append(args, fmt.Sprint("-test.timeout=", max(time.Until(at)-time.Second, time.Second)))
	}
	output, err := combined(Command(t, args...), env)
	if err != nil {
		output += err.Error() + "\n"
	}
	return output, err == nil && strings.Contains(output, "--- PASS: "+t.Name()+" ")
}

// MustPass is Test, and fails the calling test if the part does not pass.
func MustPass(t *testing.T, f func(t *testing.T), env ...string) {
	t.Helper()
	if output, passed := Test(t, f, env...); !passed {
		t.Error(output)
	}
}

func combined(cmd *exec.Cmd, env []string) (output string, err error) {
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Main does nothing if this process is no child. In the child of the calling test
// it runs f and ends the process. f runs on a goroutine of its own, so that a panic
// ends the child as it would end any program, not as a failed test.
func Main(t *testing.T, f func()) {
	t.Helper()
	if isFor(t) {
		go func() {
			f()
			os.Exit(0)
		}()
		select {}
	}
}

// isFor reports whether this process is the child of the test. In the child of
// another one, such as another subtest, it skips the test.
func isFor(t *testing.T) bool {
	t.Helper()
	if Is() && os.Getenv(variable) != t.Name() {
		t.SkipNow()
	}
	return Is()
}

// Command returns a command that runs the calling test in a child, with more
// arguments. It prints nothing but what the test does, and no timer runs in it. It
// is killed shortly before the deadline of the test binary, and at the end of the test.
func Command(t *testing.T, args ...string) *exec.Cmd {
	run := "-test.run=^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	ctx := t.Context()
	if at, limited := deadline(t); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		t.Cleanup(cancel)
	}
	cmd := Program(ctx, os.Args[0], slices.Concat([]string{run, "-test.timeout=0"}, args)...)
	cmd.Env = append(os.Environ(),
		variable+"="+t.Name(),
		"GORACE=atexit_sleep_ms=0") // or a child under the race detector takes a second to exit
	return cmd
}

// Program returns a command that runs a program which was built for the system and the
// processor that the test runs on.
func Program(ctx context.Context, path string, args ...string) *exec.Cmd {
	args = slices.Concat(strings.Fields(os.Getenv(under)), []string{path}, args)
	return exec.CommandContext(ctx, args[0], args[1:]...)
}
