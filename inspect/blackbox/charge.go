package blackbox

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cheapgo/cheap/internal/watch/cgroup"
)

// A charge is what the cgroups of the process are charged, and may be: its own, and those around it. One
// goroutine at a time uses it.
type charge struct {
	groups *cgroup.Groups
	opened time.Time
}

// Limits and caches are read again after the first of these times, and after the second where there is
// little room: a file that is read or written fills it with what the kernel drops when there is need. The
// files are opened again after the third: a process may be moved to another cgroup.
const limitsEvery, limitsLeast, openEvery = time.Second, 100 * time.Millisecond, time.Minute

// look returns the figures of the cgroup that leaves least room; 0 if none has a limit. root is the root of the file system.
func (c *charge) look(root string, now time.Time) (used, limit int64) {
	if now.Sub(c.opened) >= openEvery {
		c.groups, c.opened = cgroup.Open(root), now
	}
	g := c.groups.Tightest(now, limitsEvery)
	if g != nil && g.Limit != 0 && g.Used() > g.Limit/4*3 {
		g = c.groups.Tightest(now, limitsLeast)
	}
	if g == nil || g.Limit == 0 {
		return 0, 0
	}
	return g.Used(), g.Limit
}

// kills returns how many processes the kernel has killed in the cgroup of the process, or nil where that
// is not known. In version 1 the cgroups around it do not count them.
func (c *charge) kills() *Kills {
	if c.groups == nil || len(c.groups.List) == 0 {
		return nil
	}
	d, name := c.groups.List[0].Dir, "memory.oom_control"
	if d.V2 {
		name = "memory.events"
	}
	return readKills(filepath.Join(d.Path, name))
}

// readKills reads a count. The name may be that of a box from elsewhere. So nothing but a regular file is
// read, and no more than the kernel writes: a pipe or a device may have no end.
func readKills(file string) *Kills {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return &Kills{file, inodeOf(info), cgroup.Line(text, "oom_kill")}
}

// killedSince returns Report.KilledSince.
func killedSince(r *Record) int64 {
	if r == nil || r.Kills == nil {
		return -1
	}
	now := readKills(r.Kills.File)
	if now == nil || now.Inode != r.Kills.Inode || now.Count < r.Kills.Count {
		return -1 // the cgroup is gone
	}
	return now.Count - r.Kills.Count
}
