package itest

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/testchild"
)

// TestDeadlock looks whether a program whose main goroutine blocks for good
// still gets Go's message, once the decay is over.
func TestDeadlock(t *testing.T) {
	mustDeadlock(t, "./deadlock", "idle before: true\nidle after: false\n")
}

// TestDeadlockAfterOwn looks for the same once everything is released that was
// forgotten.
func TestDeadlockAfterOwn(t *testing.T) {
	mustDeadlock(t, "./deadlock/own", "busy: true\nbusy: false\n")
}

// mustDeadlock runs a program, which has to print something and then end with
// Go's message.
func mustDeadlock(t *testing.T, program, want string) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "deadlock.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags="+buildSetting("-tags"), "-o", exe, program).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := testchild.Program(ctx, exe)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if stdout.String() != want {
		t.Errorf("the program printed %q, want %q", &stdout, want)
	}
	if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(stderr.Bytes(), []byte("all goroutines are asleep - deadlock!")) {
		t.Errorf("%v, and:\n%s", err, &stderr)
	}
}
