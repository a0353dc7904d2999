package itest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childEnv is set in a child process.
const childEnv = "CHEAP_ITEST_CHILD"

// inChild runs f, as part of the calling test, in a child process: this test
// binary again, told to run that test alone, so that nothing of cheap has been
// used there before. The test fails if the child does.
func inChild(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if out, ok := runChild(t, f); !ok {
		t.Errorf("in the child:\n%s", out)
	}
}

// runChild is inChild for who looks at the outcome himself: what the child
// printed, and whether it passed.
func runChild(t *testing.T, f func(t *testing.T), env ...string) (out []byte, ok bool) {
	t.Helper()
	if os.Getenv(childEnv) == t.Name() {
		f(t)
		return nil, true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name(), "GORACE=atexit_sleep_ms=0") // or it takes a second to exit
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%v\n", err)
	}
	return out, err == nil && bytes.Contains(out, []byte("--- PASS: "+t.Name()))
}
