package itest

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestDeadlock looks whether a program whose main goroutine blocks for good
// still gets Go's message, once the decay is over.
func TestDeadlock(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "deadlock.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags="+buildSetting("-tags"), "-o", exe, "./deadlock").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if want := "idle before: true\nidle after: false\n"; stdout.String() != want {
		t.Errorf("the program printed %q, want %q", &stdout, want)
	}
	if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(stderr.Bytes(), []byte("all goroutines are asleep - deadlock!")) {
		t.Errorf("%v, and:\n%s", err, &stderr)
	}
}
