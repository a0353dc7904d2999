//go:build cgo && (amd64 || arm64)

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestRecordKilled kills a run, and another one lives. A third one writes the profile of the first, and removes what it has
// left, and nothing else. It does not run beside other tests, as theirs would write that profile, too.
func TestRecordKilled(t *testing.T) {
	temporary := t.TempDir()
	for _, name := range []string{"cheap-record-20260101", "cheap-record-notes"} { // of the user
		testcall.Must(t, os.Mkdir(filepath.Join(temporary, name), 0o700))
	}
	env := []string{"TMPDIR=" + temporary}
	start := func() (command *exec.Cmd, stdout *lineWriter, out string) {
		command, out = recordCommandLine(t, env, "-rate", "1", theRecorded(t), "wait")
		stdout = new(lineWriter)
		command.Stdout, command.Stderr = stdout, io.Discard
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		testcall.Must(t, command.Start())
		t.Cleanup(func() { syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
		stdout.waitFor(t, "ready\n")
		return command, stdout, out
	}
	left := func(command *exec.Cmd) []string {
		files, err := filepath.Glob(fmt.Sprintf("/dev/shm/cheap-record-%d-*", command.Process.Pid))
		testcall.Must(t, err)
		return files
	}
	folders := func() int {
		all, err := os.ReadDir(temporary)
		testcall.Must(t, err)
		return len(all) - 2 // without those of the user
	}

	dead, deadOut, deadFile := start()
	living, _, out := start()
	if n, inMemory := folders(), left(dead); n != 2 {
		t.Fatalf("two runs have %d folders, and in memory the first has %q", n, inMemory)
	}
	dead.Process.Kill()
	dead.Process.Wait() // its program has the pipe of stdout
	inMemory, livingMemory := left(dead), left(living)

	r := recordEnv(t, env, theRecorded(t), "threads")
	recovered := &recordRun{out: strings.TrimSuffix(deadFile, ".pb.gz") + "-recovered.pb.gz", stderr: r.stderr}
	if r.code != 0 || !strings.HasPrefix(r.stderr, "cheap record: a run of "+theRecorded(t)+" was killed; wrote its profile to "+recovered.out+"\n") {
		t.Fatalf("code %d, %s", r.code, r.stderr)
	}
	if n := sum(recovered.stacks(t, "inuse_space"), `main\.leaky main\.main`); n != 1_000_000 {
		t.Errorf("the run that was killed has %d bytes, want 1,000,000", n)
	}
	if n := folders(); n != 1 {
		t.Errorf("there are %d folders, want that of the run that lives", n)
	}
	if files := left(dead); len(files) > 0 {
		t.Errorf("of %q, %q are left", inMemory, files)
	}
	if files := left(living); len(files) != len(livingMemory) {
		t.Errorf("of %q of the run that lives, %q are left", livingMemory, files)
	}

	living.Process.Signal(syscall.SIGTERM)
	living.Wait()
	r = &recordRun{out: out}
	if n := sum(r.stacks(t, "inuse_space"), `main\.leaky main\.main`); n != 1_000_000 || living.ProcessState.ExitCode() != 5 {
		t.Errorf("the run that lived has %d bytes, want 1,000,000: %v", n, living.ProcessState)
	}
	if n := folders(); n != 0 {
		t.Errorf("%d folders are left", n)
	}
	// The program of the run that was killed goes on without the file.
	syscall.Kill(-dead.Process.Pid, syscall.SIGTERM)
	deadOut.waitFor(t, "got terminated\n")
}
