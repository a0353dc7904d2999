package pace

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/internal/procfs"
)

// A kernelFile is a small file of the kernel that is read again and again.
type kernelFile struct {
	file *os.File
	mu   sync.Mutex
	text [4096]byte
}

// openKernelFile returns nil if the file cannot be read.
func openKernelFile(name string) *kernelFile {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	return &kernelFile{file: f} // closed by the runtime, when it is unreachable
}

// read calls f with what is in the file, or with nothing if it cannot be read.
func (k *kernelFile) read(f func(text []byte) int64) int64 {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n, _ := k.file.ReadAt(k.text[:], 0) // the error is io.EOF, or nothing was read
	return f(k.text[:n])
}

// statm is opened once: its file is that of this process for as long as it lives.
var statm = sync.OnceValue(func() *kernelFile { return openKernelFile("/proc/self/statm") })

var pageSize = int64(os.Getpagesize())

// residentBytes returns the resident bytes of the process, or 0 if that is not known.
func residentBytes() int64 {
	return statm().read(func(text []byte) int64 {
		all, _ := procfs.Resident(text, pageSize)
		return all
	})
}

// fileBytes returns how many of them are pages of files, such as code.
func fileBytes() int64 {
	return statm().read(func(text []byte) int64 {
		_, file := procfs.Resident(text, pageSize)
		return file
	})
}

// anonymousBytes returns how many are not.
func anonymousBytes() int64 {
	return statm().read(func(text []byte) int64 {
		all, file := procfs.Resident(text, pageSize)
		return all - file
	})
}

// A processUsage is about the resident memory of the process.
type processUsage struct{ limit *atomic.Int64 }

func (m processUsage) read() (used, limit int64) { return residentBytes(), m.limit.Load() }

func (m processUsage) shared() bool { return false }

// openProcessUsage returns the usage for a limit that a program has set, or nil.
func openProcessUsage(limit *atomic.Int64) usage {
	if sanitized || residentBytes() == 0 {
		return nil
	}
	return processUsage{limit}
}

// A cgroupUsage is about what the cgroups of the process are charged: its own, and those that this
// one is in. They may hold other processes as well.
type cgroupUsage struct {
	groups []*cgroup
	next   time.Time     // when limits and caches are read again
	least  *atomic.Int64 // the smallest limit
}

// A cgroup has files in version 1 or 2.
type cgroup struct {
	usageFile, limitFile, statFile *kernelFile

	inactive string // line of statFile
	limit    int64  // 0 if there is none
	cache    int64  // what it is charged for files that were not read lately; the kernel drops these first
}

// reread is how often a limit is read again: somebody may change it.
const reread = 100 * time.Millisecond

// openCgroupUsage returns the usage of the cgroups that have a limit, or nil. root is the root of
// the file system. least is set to the smallest limit.
func openCgroupUsage(root string, least *atomic.Int64) usage {
	m := &cgroupUsage{least: least}
	for _, dir := range cgroupDirs(root) {
		g := &cgroup{
			usageFile: openKernelFile(dir.path + "/" + dir.usage), limitFile: openKernelFile(dir.path + "/" + dir.limit),
			statFile: openKernelFile(dir.path + "/memory.stat"), inactive: dir.inactive,
		}
		if g.usageFile != nil && g.limitFile != nil {
			m.groups = append(m.groups, g)
		}
	}
	if m.refresh(); m.least.Load() == 0 {
		return nil
	}
	return m
}

func (m *cgroupUsage) refresh() {
	least := int64(0)
	for _, g := range m.groups {
		g.limit = g.limitFile.read(func(text []byte) int64 {
			if len(text) == 0 {
				return g.limit // it cannot be read for once
			}
			return limitOf(text)
		})
		if g.limit == 0 {
			continue
		}
		g.cache = g.statFile.read(func(text []byte) int64 { return statLine(text, g.inactive) })
		if least == 0 || g.limit < least {
			least = g.limit
		}
	}
	m.least.Store(least)
	m.next = time.Now().Add(reread)
}

func (m *cgroupUsage) shared() bool { return true }

// read returns the figures of the cgroup that has least room.
func (m *cgroupUsage) read() (used, limit int64) {
	if time.Now().After(m.next) {
		m.refresh()
	}
	for _, g := range m.groups {
		if g.limit == 0 {
			continue
		}
		n := max(g.usageFile.read(limitOf)-g.cache, 0)
		if limit == 0 || g.limit-n < limit-used {
			used, limit = n, g.limit
		}
	}
	return used, limit
}

// limitOf returns the number in a file, or 0 for "max", and for one that is too large to be a limit.
func limitOf(text []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || n < 0 || n >= 1<<60 {
		return 0
	}
	return n
}

// statLine returns the number behind name, or 0.
func statLine(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return limitOf(value)
		}
	}
	return 0
}
