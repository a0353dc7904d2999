package testchild

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var cgroups atomic.Int64

// Cgroup makes a memory cgroup with a limit, without swap, below the cgroup of the test. It returns a function
// that has a command begin in it, or says why none can be made here.
func Cgroup(t *testing.T, limit int64) (enter func(*exec.Cmd), err error) {
	t.Helper()
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
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
	dir = filepath.Join(dir, fmt.Sprintf("cheap-test-%d-%d", os.Getpid(), cgroups.Add(1)))
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
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
	// Either file may be missing.
	_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0o666)
	_ = os.WriteFile(filepath.Join(dir, "memory.swappiness"), []byte("0"), 0o666)
	if err := os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, limit), 0o666); err != nil {
		return nil, err
	}
	return func(cmd *exec.Cmd) { // the shell is in the cgroup when it becomes the command
		cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs"), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, nil
}
