package own

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// childEnv names the test that a child process is to run the other half of.
const childEnv = "CHEAP_OWN_TEST_CHILD"

// isChild says whether this process is such a child.
func isChild() bool { return os.Getenv(childEnv) != "" }

// inChild runs f in a child process, which is this test binary again, told to
// run the calling test alone; there, inChild does not return. It returns what
// the child printed and its exit status: 0 when f returned, -1 if it had to be
// killed.
//
// f runs on a goroutine of its own, so that a panic ends the child as it would
// end any program, and not as a failed test.
func inChild(t *testing.T, f func(), env ...string) (output string, status int) {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		go func() {
			f()
			os.Exit(0)
		}()
		select {}
	}
	if isChild() {
		t.SkipNow() // another subtest's child
	}
	var run []string
	for _, name := range strings.Split(t.Name(), "/") {
		run = append(run, "^"+name+"$")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run="+strings.Join(run, "/"), "-test.timeout=0")
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name(), "GORACE=atexit_sleep_ms=0") // or it takes a second to exit
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
