package pace

import (
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/watch/cgroup"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// What a limit reads of the process and of its cgroups.

// A processUsage is about the resident memory of the process.
type processUsage struct{ limit *atomic.Int64 }

func (m processUsage) read() (used, limit int64) {
	all, _ := procfs.Self()
	return all, m.limit.Load()
}

func (m processUsage) shared() bool { return false }

// openProcessUsage returns the usage for a limit that a program has set, or nil.
func openProcessUsage(limit *atomic.Int64) usage {
	if all, _ := procfs.Self(); sanitized || all == 0 {
		return nil
	}
	return processUsage{limit}
}

// A cgroupUsage is what the cgroups of the process are charged: its own, and all that contain that
// one. Other processes may be in them as well.
type cgroupUsage struct {
	groups []*group
	next   time.Time     // when limit and cache of each are read again
	least  *atomic.Int64 // the smallest limit, 0 if there is none
}

// A group is a cgroup, which has files in version 1 or 2.
type group struct {
	usageFile, statFile *procfs.File
	bound               *cgroup.Bound
	dir                 cgroup.Dir

	limit int64     // 0 if there is none
	cache int64     // its charge for files that the kernel drops before it kills
	next  time.Time // when cache is read again where the charge is near the limit: the kernel drops files there
}

// reread is the time after which a limit is read again: it may have been changed.
const reread = 100 * time.Millisecond

// readCache reads what the kernel may drop, in 2 % of the time at most.
func (g *group) readCache() {
	begin := time.Now()
	g.cache = g.statFile.Read(g.dir.Droppable)
	g.next = begin.Add(50 * time.Since(begin))
}

// openCgroupUsage returns the usage of the cgroups that have a limit, or nil, and an error if they cannot be
// read. root is the root of the file system. least is set to the smallest limit.
func openCgroupUsage(root string, least *atomic.Int64) (usage, error) {
	m := &cgroupUsage{least: least}
	if all, _ := procfs.Self(); all == 0 {
		return nil, nil // another system
	}
	for _, dir := range cgroup.Dirs(root) {
		g := &group{
			usageFile: dir.Open(dir.Usage), bound: dir.OpenBound(), statFile: dir.Open("memory.stat"), dir: dir,
		}
		if g.usageFile != nil && g.bound != nil {
			m.groups = append(m.groups, g)
		}
	}
	if m.refresh(); m.least.Load() == 0 {
		return nil, cgroup.Unread(root)
	}
	return m, nil
}

func (m *cgroupUsage) refresh() {
	least := int64(0)
	for _, g := range m.groups {
		if g.limit = g.bound.Read(g.limit); g.limit == 0 {
			continue
		}
		g.readCache()
		if least == 0 || g.limit < least {
			least = g.limit
		}
	}
	m.least.Store(least)
	m.next = time.Now().Add(reread)
}

func (m *cgroupUsage) shared() bool { return true }

// from returns the file that has a limit, or "".
func (m *cgroupUsage) from(limit int64) string {
	for _, g := range m.groups {
		if g.limit == limit {
			return g.bound.File()
		}
	}
	return ""
}

// read returns the figures of the cgroup that has least room.
func (m *cgroupUsage) read() (used, limit int64) {
	if time.Now().After(m.next) {
		m.refresh()
	}
	for _, g := range m.groups {
		if g.limit == 0 {
			continue
		}
		charge := g.usageFile.Read(func(text []byte) int64 {
			if len(text) == 0 {
				all, _ := procfs.Self()
				return all + g.cache // the file cannot be read: the cgroup is gone
			}
			return cgroup.Number(text)
		})
		if charge > g.limit-g.limit/16 && g.cache > 0 && time.Now().After(g.next) {
			g.readCache()
		}
		if n := max(charge-g.cache, 0); limit == 0 || g.limit-n < limit-used {
			used, limit = n, g.limit
		}
	}
	return used, limit
}
