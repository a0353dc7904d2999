// Package cgroup finds and parses the files of Linux that say what memory cgroups are charged, and may
// be. There are two versions, with different names for nearly everything.
package cgroup

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// Names of files are the kernel's, with slashes. So package path parses them: where it was
// path/filepath, a loop to the root never ended on a Windows that shows /proc, as Wine does.

// A Dir is the directory of a cgroup, with the names of its files.
type Dir struct {
	Path         string
	Usage, Limit string // files
	V2           bool
}

// Dirs returns the directories of the process's cgroup and of those that contain it, from the inside
// out. root is the root of the file system. In a container some of them may not exist: /proc may have the
// names that they have outside of the container.
func Dirs(root string) (all []Dir) {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// "0::/user.slice/x" in version 2, "5:memory:/x" in version 1.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, dir := "sys/fs/cgroup", Dir{"", "memory.current", "memory.max", true}
		if parts[0] != "0" || parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, dir = "sys/fs/cgroup/memory", Dir{"", "memory.usage_in_bytes", "memory.limit_in_bytes", false}
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			dir.Path = path.Join(root, mount, at)
			all = append(all, dir)
			if at == "/" {
				break
			}
		}
	}
	return all
}

// Limit returns the smallest bound of the process's cgroup and of those that contain it, or 0.
func Limit(root string) (least int64) {
	for _, d := range Dirs(root) {
		least = smaller(least, d.OpenBound().Read(0))
	}
	return least
}

// smaller returns the smaller of two limits. 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// A Bound is what a cgroup may be charged: its limit, or memory.high of version 2, above which the kernel slows
// its processes down. A nil Bound is one that cannot be read.
type Bound struct {
	limit, high *procfs.File
	dir         Dir
}

// OpenBound opens the files of the bound, or returns nil.
func (d *Dir) OpenBound() *Bound {
	b := &Bound{limit: d.Open(d.Limit), dir: *d}
	if b.limit == nil {
		return nil
	}
	if d.V2 {
		b.high = d.Open("memory.high")
	}
	return b
}

// Read returns the bound, or 0 if there is none. It returns was if the file cannot be read this time.
func (b *Bound) Read(was int64) int64 {
	if b == nil {
		return was
	}
	return b.limit.Read(func(text []byte) int64 {
		if len(text) == 0 {
			return was
		}
		return smaller(Number(text), b.high.Read(Number))
	})
}

// File returns the path of the file that has the bound, as it is now.
func (b *Bound) File() string {
	if high := b.high.Read(Number); high != 0 && high == b.Read(0) {
		return b.dir.Path + "/memory.high"
	}
	return b.dir.Path + "/" + b.dir.Limit
}

// Groups are the cgroup of the process and those that contain it, from the inside out, but for those whose charge
// cannot be read. One goroutine at a time may use them.
type Groups struct {
	List []*Group
	read time.Time // when limits were
}

// A Group is a cgroup, with what Tightest has read of it.
type Group struct {
	Dir   Dir
	Bound *Bound
	Stat  *procfs.File // memory.stat, or nil

	Limit   int64 // 0 if there is none
	Charged int64
	cache   int64 // of Charged, what the kernel drops before it kills; 0 without a limit

	usage *procfs.File
	next  time.Time // when cache is read again where the charge is near the limit: the kernel drops files there
}

// Open opens the files of the cgroups. root is the root of the file system.
func Open(root string) *Groups {
	g := &Groups{}
	for _, d := range Dirs(root) {
		if usage := d.Open(d.Usage); usage != nil {
			g.List = append(g.List, &Group{Dir: d, Bound: d.OpenBound(), Stat: d.Open("memory.stat"), usage: usage})
		}
	}
	return g
}

// Tightest returns the cgroup that leaves the least room, the innermost one if none has a limit, or nil if there is
// none. It reads what they are charged, and again those limits that it has read for the last time every ago.
func (g *Groups) Tightest(now time.Time, every time.Duration) (least *Group) {
	if now.Sub(g.read) >= every {
		for _, k := range g.List {
			k.readLimit(now)
		}
		g.read = now
	}
	for _, k := range g.List {
		if k.Limit == 0 {
			continue
		}
		if k.charge(); k.Charged > k.Limit-k.Limit/16 && k.cache > 0 && now.After(k.next) {
			k.readCache(now)
		}
		if least == nil || k.Limit-k.Used() < least.Limit-least.Used() {
			least = k
		}
	}
	if least == nil && len(g.List) > 0 {
		least = g.List[0]
		least.charge()
	}
	return least
}

// Used returns the charge without what the kernel drops before it kills.
func (g *Group) Used() int64 { return max(g.Charged-g.cache, 0) }

func (g *Group) charge() {
	g.Charged = g.usage.Read(func(text []byte) int64 {
		if len(text) == 0 {
			all, _ := procfs.Self()
			return all + g.cache // the file cannot be read: the cgroup is gone
		}
		return Number(text)
	})
}

func (g *Group) readLimit(now time.Time) {
	if g.Limit = g.Bound.Read(g.Limit); g.Limit == 0 {
		g.cache = 0
		return
	}
	g.readCache(now)
}

// readCache reads what the kernel may drop, near the limit in 2 % of the time at most.
func (g *Group) readCache(now time.Time) {
	begin := time.Now()
	g.cache = g.Stat.Read(g.Dir.Droppable)
	g.next = now.Add(50 * time.Since(begin))
}

// Unread returns why the limits of cgroups cannot be read, or nil if they can: a sandbox such as gVisor may not
// show them.
func Unread(root string) error {
	_, err := os.Stat(path.Join(root, "proc/self/cgroup"))
	if err == nil {
		if _, err = os.Stat(path.Join(root, "sys/fs/cgroup/memory/memory.limit_in_bytes")); err != nil {
			_, err = os.Stat(path.Join(root, "sys/fs/cgroup/cgroup.controllers"))
		}
	}
	return err
}

// Open opens a file of the directory, or returns nil.
func (d *Dir) Open(name string) *procfs.File { return procfs.Open(d.Path + "/" + name) }

// Number returns the number in a file, or 0 for "max" and for a number that is too large to be a limit.
func Number(text []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || n < 0 || n >= 1<<60 {
		return 0
	}
	return n
}

// Droppable returns how many bytes of the charge the kernel drops before it kills, where text is memory.stat: pages of
// files that were not read lately, and those that no process has mapped and that are as they are on the disk. The
// second are more where a database reads its files again and again. What memory.min of a cgroup inside protects stays.
func (d *Dir) Droppable(text []byte) int64 {
	n := d.clean(text)
	if !d.V2 || n == 0 {
		return n
	}
	inside, _ := os.ReadDir(d.Path)
	for _, c := range inside {
		if c.IsDir() {
			n -= (&Dir{Path: d.Path + "/" + c.Name(), V2: true}).kept()
		}
	}
	return max(0, n)
}

// kept returns how many bytes of clean memory.min protects.
func (d *Dir) kept() int64 {
	read := func(name string) []byte { text, _ := os.ReadFile(d.Path + "/" + name); return text }
	text := read("memory.min")
	least := Number(text)
	if bytes.HasPrefix(text, []byte("max")) {
		least = 1 << 60
	}
	if least == 0 {
		return 0
	}
	clean := d.clean(read("memory.stat"))
	return max(0, min(clean, clean+least-Number(read("memory.current"))))
}

// clean returns the bytes of Droppable in text.
func (d *Dir) clean(text []byte) int64 {
	names := [...]string{"total_inactive_file", "total_active_file", "total_mapped_file", "total_dirty", "total_writeback"}
	if d.V2 {
		names = [...]string{"inactive_file", "active_file", "file_mapped", "file_dirty", "file_writeback"}
	}
	var n [len(names)]int64
	for i, name := range names {
		if n[i] = Line(text, name); n[i] == 0 && !bytes.Contains(text, []byte(name)) {
			return n[0] // an old kernel or a sandbox does not say what is mapped
		}
	}
	return max(n[0], n[0]+n[1]-n[2]-n[3]-n[4])
}

// Line returns the number behind name, in a text such as that of memory.stat, or 0.
func Line(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok && len(value) > 0 && value[0] == ' ' {
			return Number(value)
		}
	}
	return 0
}
