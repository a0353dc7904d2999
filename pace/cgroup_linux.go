package pace

import (
	"os"
	"path/filepath"
	"strings"
)

// A cgroupDir is the directory of a cgroup, with the names of its files and of a line in
// memory.stat.
type cgroupDir struct{ path, usage, limit, inactive string }

// cgroupDirs returns the directories of the process's cgroup and of those around it. root is the
// root of the file system. In a container some of them do not exist: there /proc may have the names of
// the system outside.
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
