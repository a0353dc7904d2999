package resident

import (
	"bytes"
	"strconv"

	"github.com/cheapgo/cheap/internal/watch/cgroup"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// cgroups reads what the memory cgroups of the process are charged. One goroutine at a time uses it.
type cgroups struct {
	all    []*group
	unread error
	text   [8192]byte // of memory.stat
}

// A group has the files of a cgroup. Those that are not there are nil.
type group struct {
	dir                                       cgroup.Dir
	bound                                     *cgroup.Bound
	usage, high, swap, stat, events, pressure *procfs.File
}

// openCgroups opens the files of the cgroup of the process and of those around it. root is the root of the
// file system.
func openCgroups(root string) *cgroups {
	c := &cgroups{unread: cgroup.Unread(root)}
	for _, d := range cgroup.Dirs(root) {
		g := &group{dir: d, usage: d.Open(d.Usage), bound: d.OpenBound(), stat: d.Open("memory.stat")}
		if g.usage == nil {
			continue
		}
		if d.V2 {
			g.high, g.swap = d.Open("memory.high"), d.Open("memory.swap.current")
			g.events, g.pressure = d.Open("memory.events"), d.Open("memory.pressure")
		} else {
			g.swap, g.events = d.Open("memory.memsw.usage_in_bytes"), d.Open("memory.oom_control")
		}
		c.all = append(c.all, g)
	}
	return c
}

// read returns the figures of the cgroup that has least room, or of the innermost one if none has a limit.
func (c *cgroups) read() (r Cgroup) {
	var least *group
	for _, g := range c.all {
		limit, charged := g.bound.Read(0), g.usage.Read(cgroup.Number)
		if least == nil || limit != 0 && (r.Limit == 0 || limit-charged < r.Limit-r.Charged) {
			least, r = g, Cgroup{Known: true, Charged: charged, Limit: limit}
		}
	}
	if least == nil {
		return Cgroup{Unread: c.unread}
	}
	c.readParts(least, &r)
	return r
}

// readParts reads all but what is charged and its limit.
func (c *cgroups) readParts(g *group, r *Cgroup) {
	n := int(g.stat.Read(func(text []byte) int64 { return int64(copy(c.text[:], text)) }))
	line := func(name string) int64 { return cgroup.Line(c.text[:n], name) }
	if g.dir.V2 {
		r.High, r.Swap = g.high.Read(cgroup.Number), g.swap.Read(cgroup.Number)
		r.Anonymous, r.Shared, r.Kernel = line("anon"), line("shmem"), line("kernel")
		r.Cache = max(0, line("file")-r.Shared)
		r.OOM = g.events.Read(func(text []byte) int64 { return cgroup.Line(text, "oom") })
		g.pressure.Read(func(text []byte) int64 { r.Pressure = average(text); return 0 })
	} else {
		r.Swap = line("total_swap")
		if r.Swap == 0 {
			r.Swap = max(0, g.swap.Read(cgroup.Number)-r.Charged)
		}
		r.Anonymous, r.Shared = line("total_rss"), line("total_shmem")
		r.Cache = max(0, line("total_cache")-r.Shared)
		r.Kernel = max(0, r.Charged-r.Anonymous-r.Shared-r.Cache) // usage counts it, and stat does not
	}
	r.OOMKills = g.events.Read(func(text []byte) int64 { return cgroup.Line(text, "oom_kill") })
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
