package pace

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/procfs"
)

// What a limit reads of the process itself. What it reads of cgroups is in cgroup_linux.go.

// statm is opened once: the open file stays that of this process.
var statm = sync.OnceValue(func() *procfs.File { return procfs.Open("/proc/self/statm") })

var pageSize = int64(os.Getpagesize())

// residentBytes returns the resident bytes of the process, or 0 if that is not known.
func residentBytes() int64 {
	return statm().Read(func(text []byte) int64 {
		all, _ := procfs.Resident(text, pageSize)
		return all
	})
}

// fileBytes returns how many resident bytes are pages of files, such as code.
func fileBytes() int64 {
	return statm().Read(func(text []byte) int64 {
		_, file := procfs.Resident(text, pageSize)
		return file
	})
}

// anonymousBytes returns how many resident bytes are no pages of files.
func anonymousBytes() int64 {
	return statm().Read(func(text []byte) int64 {
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
