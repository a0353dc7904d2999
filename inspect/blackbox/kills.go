package blackbox

import (
	"os"
	"path/filepath"
)

// killsIn returns how many processes the kernel has killed in a cgroup, or nil where that is not known.
func killsIn(file string) *Kills {
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	return &Kills{file, inodeOf(info), readNumber(file, "oom_kill")}
}

// kills returns that of the cgroup of the process. In version 1 the ones around it do not count it.
func (c *charge) kills() *Kills {
	if len(c.folders) == 0 {
		return nil
	}
	return killsIn(filepath.Join(c.folders[0].path, c.folders[0].kills))
}

// killedSince returns Report.KilledSince.
func killedSince(r *Record) int64 {
	if r == nil || r.Kills == nil {
		return -1
	}
	now := killsIn(r.Kills.File)
	if now == nil || now.Inode != r.Kills.Inode || now.Count < r.Kills.Count {
		return -1 // the cgroup is gone
	}
	return now.Count - r.Kills.Count
}
