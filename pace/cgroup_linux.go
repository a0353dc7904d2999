package pace

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// What a limit reads of the cgroups of the process: which files there are in version 1 and 2
// (cgroupDirs), and what is taken from them (cgroupUsage).

// A cgroupDir is the directory of a cgroup, with the names of its files and of a line in
// memory.stat.
type cgroupDir struct{ path, usage, limit, inactive string }

// cgroupDirs returns the directories of the process's cgroup and of those that contain it. root is the
// root of the file system. In a container some of them may not exist: /proc may have the names that
// they have outside of the container.
func cgroupDirs(root string) (all []cgroupDir) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// "0::/user.slice/x" in version 2, "5:memory:/x" in version 1.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, dir := "sys/fs/cgroup", cgroupDir{"", "memory.current", "memory.max", "inactive_file"}
		if parts[0] != "0" || parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, dir = "sys/fs/cgroup/memory", cgroupDir{"", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"}
		}
		for at := filepath.Clean("/" + parts[2]); ; at = filepath.Dir(at) {
			dir.path = filepath.Join(root, mount, at)
			all = append(all, dir)
			if at == "/" {
				break
			}
		}
	}
	return all
}

// A cgroupUsage is what the cgroups of the process are charged: its own, and all that contain that
// one. Other processes may be in them as well.
type cgroupUsage struct {
	groups []*cgroup
	next   time.Time     // when limit and cache of each are read again
	least  *atomic.Int64 // the smallest limit, 0 if there is none
}

// A cgroup has files in version 1 or 2.
type cgroup struct {
	usageFile, limitFile, statFile *kernelFile

	inactive string // line of statFile
	limit    int64  // 0 if there is none
	cache    int64  // its charge for files that were not read lately; the kernel drops these first
}

// reread is the time after which a limit is read again: it may have been changed.
const reread = 100 * time.Millisecond

// openCgroupUsage returns the usage of the cgroups that have a limit, or nil. root is the root of
// the file system. least is set to the smallest limit.
func openCgroupUsage(root string, least *atomic.Int64) usage {
	m := &cgroupUsage{least: least}
	for _, dir := range cgroupDirs(root) {
		g := &cgroup{
			usageFile: openKernelFile(dir.path + "/" + dir.usage), limitFile: openKernelFile(dir.path + "/" + dir.limit),
			statFile: openKernelFile(dir.path + "/memory.stat"), inactive: dir.inactive,
		}
		if g.usageFile != nil && g.limitFile != nil {
			m.groups = append(m.groups, g)
		}
	}
	if m.refresh(); m.least.Load() == 0 {
		return nil
	}
	return m
}

func (m *cgroupUsage) refresh() {
	least := int64(0)
	for _, g := range m.groups {
		g.limit = g.limitFile.read(func(text []byte) int64 {
			if len(text) == 0 {
				return g.limit // the file could not be read this time
			}
			return limitOf(text)
		})
		if g.limit == 0 {
			continue
		}
		g.cache = g.statFile.read(func(text []byte) int64 { return statLine(text, g.inactive) })
		if least == 0 || g.limit < least {
			least = g.limit
		}
	}
	m.least.Store(least)
	m.next = time.Now().Add(reread)
}

func (m *cgroupUsage) shared() bool { return true }

// read returns the figures of the cgroup that has least room.
func (m *cgroupUsage) read() (used, limit int64) {
	if time.Now().After(m.next) {
		m.refresh()
	}
	for _, g := range m.groups {
		if g.limit == 0 {
			continue
		}
		n := max(g.usageFile.read(limitOf)-g.cache, 0)
		if limit == 0 || g.limit-n < limit-used {
			used, limit = n, g.limit
		}
	}
	return used, limit
}

// limitOf returns the number in a file, or 0 for "max" and for a number that is too large to be a limit.
func limitOf(text []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || n < 0 || n >= 1<<60 {
		return 0
	}
	return n
}

// statLine returns the number behind name, or 0.
func statLine(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return limitOf(value)
		}
	}
	return 0
}
