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
	*cgroup.Groups
	least *atomic.Int64 // the smallest limit, 0 if there is none
}

// reread is the time after which a limit is read again: it may have been changed.
const reread = 100 * time.Millisecond

// openCgroupUsage returns the usage of the cgroups that have a limit, or nil, and an error if they cannot be
// read. root is the root of the file system. least is set to the smallest limit.
func openCgroupUsage(root string, least *atomic.Int64) (usage, error) {
	if all, _ := procfs.Self(); all == 0 {
		return nil, nil // another system
	}
	m := &cgroupUsage{cgroup.Open(root), least}
	if _, limit := m.read(); limit == 0 {
		return nil, cgroup.Unread(root)
	}
	return m, nil
}

func (m *cgroupUsage) shared() bool { return true }

// from returns the file that has a limit, or "".
func (m *cgroupUsage) from(limit int64) string {
	for _, g := range m.List {
		if g.Limit == limit {
			return g.Bound.File()
		}
	}
	return ""
}

// read returns the figures of the cgroup that has least room.
func (m *cgroupUsage) read() (used, limit int64) {
	g := m.Tightest(time.Now(), reread)
	least := int64(0)
	for _, k := range m.List {
		if k.Limit != 0 && (least == 0 || k.Limit < least) {
			least = k.Limit
		}
	}
	m.least.Store(least)
	if least == 0 {
		return 0, 0
	}
	return g.Used(), g.Limit
}
