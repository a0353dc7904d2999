package resident

import (
	"bytes"
	"strconv"
	"time"

	"github.com/cheapgo/cheap/internal/watch/cgroup"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// cgroups reads what the memory cgroups of the process are charged. One goroutine at a time uses it.
type cgroups struct {
	all    *cgroup.Groups
	unread error
	files  map[*cgroup.Group]*files // of those that were the tightest
	text   [8192]byte               // of memory.stat
}

// files are more of a cgroup. Those that are not there are nil.
type files struct{ high, swap, events, pressure *procfs.File }

// openCgroups finds the cgroup of the process and those around it. root is the root of the file system.
func openCgroups(root string) *cgroups {
	return &cgroups{all: cgroup.Open(root), unread: cgroup.Unread(root), files: map[*cgroup.Group]*files{}}
}

// read returns the figures of the cgroup that has least room, or of the innermost one if none has a limit.
func (c *cgroups) read() (r Cgroup) {
	g := c.all.Tightest(time.Now(), time.Second)
	if g == nil {
		return Cgroup{Unread: c.unread}
	}
	r = Cgroup{Known: true, Charged: g.Charged, Limit: g.Limit}
	f := c.files[g]
	if f == nil {
		if f = new(files); g.Dir.V2 {
			*f = files{g.Dir.Open("memory.high"), g.Dir.Open("memory.swap.current"), g.Dir.Open("memory.events"), g.Dir.Open("memory.pressure")}
		} else {
			f.swap, f.events = g.Dir.Open("memory.memsw.usage_in_bytes"), g.Dir.Open("memory.oom_control")
		}
		c.files[g] = f
	}
	n := int(g.Stat.Read(func(text []byte) int64 { return int64(copy(c.text[:], text)) }))
	line := func(name string) int64 { return cgroup.Line(c.text[:n], name) }
	if g.Dir.V2 {
		r.High, r.Swap = f.high.Read(cgroup.Number), f.swap.Read(cgroup.Number)
		r.Anonymous, r.Shared, r.Kernel = line("anon"), line("shmem"), line("kernel")
		r.Cache = max(0, line("file")-r.Shared)
		r.OOM = f.events.Read(func(text []byte) int64 { return cgroup.Line(text, "oom") })
		f.pressure.Read(func(text []byte) int64 { r.Pressure = average(text); return 0 })
	} else {
		r.Swap = line("total_swap")
		if r.Swap == 0 {
			r.Swap = max(0, f.swap.Read(cgroup.Number)-r.Charged)
		}
		r.Anonymous, r.Shared = line("total_rss"), line("total_shmem")
		r.Cache = max(0, line("total_cache")-r.Shared)
		r.Kernel = max(0, r.Charged-r.Anonymous-r.Shared-r.Cache) // usage counts it, and stat does not
	}
	r.OOMKills = f.events.Read(func(text []byte) int64 { return cgroup.Line(text, "oom_kill") })
	return r
}

// average returns the percentage of "some avg10=1.25 avg60=..." in a text such as that of memory.pressure.
func average(text []byte) float64 {
	_, rest, _ := bytes.Cut(text, []byte("some avg10="))
	number, _, _ := bytes.Cut(rest, []byte(" "))
	x, err := strconv.ParseFloat(string(number), 64)
	if err != nil || !(x >= 0 && x <= 100) { // a NaN is neither, and no JSON
		return 0
	}
	return x
}
