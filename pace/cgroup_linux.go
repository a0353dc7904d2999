package pace

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupLimit returns the smallest memory.max of the process's cgroup and the
// cgroups around it, or 0 if none has one. root is the root of the file system.
func cgroupLimit(root string) int64 {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	limit := int64(0)
	for line := range strings.Lines(string(text)) {
		// "0::/user.slice/x" in version 2, "5:memory:/x" in version 1.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[0] != "0" || parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
			if n := readBytes(filepath.Join(root, mount, dir, file)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}

// readBytes reads a number of bytes from a file. It returns 0 for "max", and for
// a number that is too large to be a limit.
func readBytes(name string) int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n >= 1<<60 {
		return 0
	}
	return n
}
