package pace

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/procfs"
)

// What a limit reads of the process itself. What it reads of cgroups is in cgroup_linux.go.

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

// read calls f with the text of the file, which is empty if the file cannot be read.
func (k *kernelFile) read(f func(text []byte) int64) int64 {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n, _ := k.file.ReadAt(k.text[:], 0) // the error is io.EOF, or nothing was read
	return f(k.text[:n])
}

// statm is opened once: the open file stays that of this process.
var statm = sync.OnceValue(func() *kernelFile { return openKernelFile("/proc/self/statm") })

var pageSize = int64(os.Getpagesize())

// residentBytes returns the resident bytes of the process, or 0 if that is not known.
func residentBytes() int64 {
	return statm().read(func(text []byte) int64 {
		all, _ := procfs.Resident(text, pageSize)
		return all
	})
}

// fileBytes returns how many resident bytes are pages of files, such as code.
func fileBytes() int64 {
	return statm().read(func(text []byte) int64 {
		_, file := procfs.Resident(text, pageSize)
		return file
	})
}

// anonymousBytes returns how many resident bytes are no pages of files.
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
