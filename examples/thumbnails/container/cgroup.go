//go:build linux && cgo

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A cgroup is a memory cgroup below the one of this process.
type cgroup struct {
	dir          string
	usage, limit string // names of files
}

var made atomic.Int64

// makeCgroup makes a cgroup with a limit in bytes.
func makeCgroup(limit int64) (*cgroup, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	g := &cgroup{usage: "memory.current", limit: "memory.max"}
	for line := range strings.Lines(string(self)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) == 3 && parts[1] == "memory": // version 1
			g = &cgroup{filepath.Join("/sys/fs/cgroup/memory", parts[2]), "memory.usage_in_bytes", "memory.limit_in_bytes"}
		case len(parts) == 3 && parts[0] == "0" && g.dir == "":
			g.dir = filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	g.dir = filepath.Join(g.dir, fmt.Sprintf("cheap-container-%d-%d", os.Getpid(), made.Add(1)))
	if err := os.Mkdir(g.dir, 0o777); err != nil {
		return nil, fmt.Errorf("no cgroup can be made: %w", err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, g.limit), fmt.Append(nil, limit), 0o666); err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// used returns the bytes that the cgroup is charged.
func (g *cgroup) used() int64 {
	text, _ := os.ReadFile(filepath.Join(g.dir, g.usage))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// remove removes the cgroup when its last process is gone.
func (g *cgroup) remove() error {
	var err error
	for range 200 {
		if err = os.Remove(g.dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// enter has the command begin in the cgroup: a shell goes there and becomes the command.
func (g *cgroup) enter(cmd *exec.Cmd) {
	cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs"), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}
