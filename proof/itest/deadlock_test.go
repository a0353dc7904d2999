package itest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestDeadlock looks whether a program whose main goroutine blocks for good
// still gets Go's message, once the decay is over.
func TestDeadlock(t *testing.T) {
	mustDeadlock(t, "heap", "idle before: true\nidle after: false\n")
}

// TestDeadlockAfterOwn looks for the same once everything is released that was
// forgotten.
func TestDeadlockAfterOwn(t *testing.T) {
	mustDeadlock(t, "own", "busy: true\nbusy: false\n")
}

// deadlockDir has the program of the two tests. TestMain removes it.
var deadlockDir string

var buildDeadlock = sync.OnceValues(func() (exe string, err error) {
	if deadlockDir, err = os.MkdirTemp("", "deadlock"); err != nil {
		return "", err
	}
	exe = filepath.Join(deadlockDir, "deadlock.exe")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-tags="+buildSetting("-tags"), "-o", exe, "./deadlock")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return exe, nil
})

// mustDeadlock runs the program, which has to use a package, print something, and then
// end with Go's message.
func mustDeadlock(t *testing.T, use, want string) {
	t.Helper()
	t.Parallel()
	exe, err := buildDeadlock()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if at, limited := testwait.Deadline(t); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	cmd := testchild.Program(ctx, exe, use)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if stdout.String() != want {
		t.Errorf("the program printed %q, want %q", &stdout, want)
	}
	if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(stderr.Bytes(), []byte("all goroutines are asleep - deadlock!")) {
		t.Errorf("%v, and:\n%s", err, &stderr)
	}
}
