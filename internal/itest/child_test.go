package itest

import (
	"bytes"
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
	if os.Getenv(childEnv) == t.Name() {
		f(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name(), "GORACE=atexit_sleep_ms=0") // or it takes a second to exit
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("in the child: %v\n%s", err, out)
	}
}
