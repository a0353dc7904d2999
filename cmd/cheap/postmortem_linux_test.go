//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cheapgo/cheap/inspect/blackbox"
)

// makeCgroup makes a memory cgroup with a limit below the one of this process. It returns the file
// through which a process enters.
func makeCgroup(t *testing.T, limit int64) (procs string, err error) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	dir, name := "", "memory.max"
	for line := range strings.Lines(string(self)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) == 3 && parts[1] == "memory": // version 1
			dir, name = filepath.Join("/sys/fs/cgroup/memory", parts[2]), "memory.limit_in_bytes"
		case len(parts) == 3 && parts[0] == "0" && dir == "":
			dir = filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	dir = filepath.Join(dir, fmt.Sprintf("cheap-postmortem-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o777); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		for range 200 {
			if err = os.Remove(dir); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond) // until the kernel has let go of the last process
		}
		t.Error(err)
	})
	return filepath.Join(dir, "cgroup.procs"), os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, limit), 0o666)
}

// TestPostmortem has the kernel kill a program that leaks, in a cgroup of its own, and prints what the
// program has written before.
func TestPostmortem(t *testing.T) {
	const limit = 100 << 20
	procs, err := makeCgroup(t, limit)
	if err != nil {
		t.Logf("no cgroup can be made here: %v", err)
		return
	}
	program := filepath.Join(t.TempDir(), "guestbook")
	if text, err := exec.Command("go", "build", "-o", program, "./testdata/postmortem").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	box := filepath.Join(t.TempDir(), "box")
	killed := exec.CommandContext(untilDeadline(t), "/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, procs, program, "-box", box)
	var said bytes.Buffer
	killed.Stdout, killed.Stderr = &said, &said
	var exit *exec.ExitError
	if err := killed.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the program was not killed: %v: %s", err, &said)
	}
	fmt.Println(said.String())
	report, err := blackbox.Read(box)
	if err != nil {
		t.Fatal(err)
	}
	if report.State != blackbox.Ended || report.KilledSince != 1 || report.Process.Program != "guestbook" {
		t.Errorf("the report is %+v", report)
	}
	text := postmortem(t, box)
	fmt.Println(text)
	for _, want := range []string{
		`^guestbook, process \d+, go1\.\d+\S* linux/`,
		`\n  ended    without Stop: `,
		`\n +the kernel has killed 1 process of its cgroup`,
		`render`,
		`main\.visit main\.go:\d+`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

// postmortem returns what the command prints.
func postmortem(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"postmortem"}, args...), nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("cheap postmortem %q: code %d, %s", args, code, &stderr)
	}
	return stdout.String()
}
