package blackbox

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cheapgo/cheap/internal/watch/cgroup"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// A charge is what the cgroups of the process are charged, and may be: its own, and those around it. One
// goroutine at a time uses it.
type charge struct {
	groups []*group // the innermost first
	read   time.Time
	opened time.Time
}

// A group has the files of a cgroup.
type group struct {
	dir         cgroup.Dir
	usage, stat *procfs.File
	bound       *cgroup.Bound

	most  int64 // its limit, 0 if there is none
	cache int64 // its charge for files that the kernel drops before it kills
}

// Limits and caches are read again after the first of these times, and after the second where there is
// little room: a file that is read or written fills it with what the kernel drops when there is need. The
// files are opened again after the third: a process may be moved to another cgroup.
const limitsEvery, limitsLeast, openEvery = time.Second, 100 * time.Millisecond, time.Minute

// open finds the cgroups. root is the root of the file system.
func (c *charge) open(root string, now time.Time) {
	c.groups, c.opened, c.read = nil, now, time.Time{}
	for _, d := range cgroup.Dirs(root) {
		g := &group{dir: d, usage: d.Open(d.Usage), bound: d.OpenBound(), stat: d.Open("memory.stat")}
		if g.usage != nil {
			c.groups = append(c.groups, g)
		}
	}
}

// look returns the figures of the cgroup that leaves least room; 0 if none has a limit.
func (c *charge) look(root string, now time.Time) (used, limit int64) {
	if now.Sub(c.opened) >= openEvery {
		c.open(root, now)
	}
	if now.Sub(c.read) >= limitsEvery {
		c.readLimits(now)
	}
	used, limit = c.least()
	if used > limit/4*3 && now.Sub(c.read) >= limitsLeast {
		c.readLimits(now)
		used, limit = c.least()
	}
	return used, limit
}

func (c *charge) least() (used, limit int64) {
	for _, g := range c.groups {
		if g.most == 0 {
			continue
		}
		n := max(0, g.usage.Read(cgroup.Number)-g.cache)
		if limit == 0 || g.most-n < limit-used {
			used, limit = n, g.most
		}
	}
	return used, limit
}

func (c *charge) readLimits(now time.Time) {
	for _, g := range c.groups {
		g.most = g.bound.Read(g.most)
		g.cache = g.stat.Read(g.dir.Droppable)
	}
	c.read = now
}

// kills returns how many processes the kernel has killed in the cgroup of the process, or nil where that
// is not known. In version 1 the cgroups around it do not count them.
func (c *charge) kills() *Kills {
	if len(c.groups) == 0 {
		return nil
	}
	d, name := c.groups[0].dir, "memory.oom_control"
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
