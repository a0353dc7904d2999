//go:build linux && (amd64 || arm64)

package shared

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// States of the library; see enum in cmem/source/internal.h.
const (
	attachedNow   = 1
	attachedEnded = 2
)

// An Image is a program in a process.
type Image struct {
	pid    int
	vector string // what the kernel has told it, with addresses by chance; "" if that cannot be read
}

// ImageOf returns that of now.
func ImageOf(pid int) Image {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	return Image{pid, string(text)}
}

// Gone reports whether the process has ended, or has become another program by exec.
func (i Image) Gone() bool { return ImageOf(i.pid) != i }

// In returns a path of this process for one below a folder, which may be in another file system, that of a container; "" is that
// of the file itself.
func In(folder *os.File, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d%s", folder.Fd(), path)
}

// Map maps a memory file of another process, for a library that is loaded into that. root is the folder / of that.
func Map(name string, process Image, root *os.File) (*File, error) {
	path, err := os.Readlink(name) // as in the list of its mappings
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	file := &File{Path: path, lock: f, process: process, root: root}
	if err = f.Truncate(Size); err == nil {
		file.data, err = syscall.Mmap(int(f.Fd()), 0, Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the memory file that the process and this command are to share cannot be made: %w", err)
	}
	return file, nil
}

// Want tells the library that this process waits for it.
func (f *File) Want() { atomic.StoreUint32(&f.header().attached.wanted, 1) }

// Gone reports whether the process of Map has ended, or has become another program.
func (f *File) Gone() bool { return f.process.Gone() }

// WaitAttached returns when the library has changed the slots. If it has not begun in that time, it never will.
func (f *File) WaitAttached(limit time.Duration) error {
	a := &f.header().attached
	for end := time.Now().Add(limit); atomic.LoadUint32(&a.state) == 0; {
		f.Beat()
		if time.Now().Before(end) && !f.Gone() {
			wait(&a.state, 0, 100*time.Millisecond)
			continue
		}
		if atomic.CompareAndSwapUint32(&a.wanted, 1, 0) {
			return errors.New("the dynamic linker has not loaded the library: it is busy, or a setting of the system forbids it (SELinux, no memory, no /proc)")
		}
		f.end()
		return errors.New("the library could not begin")
	}
	if a.slots == 0 {
		f.Detach(limit)
		return errors.New("no file of it calls malloc of the C library by a slot: the program has an allocator linked in")
	}
	return nil
}

// Beat tells the library that this process lives. It is to be called each second.
func (f *File) Beat() { atomic.AddUint32(&f.header().attached.beat, 1) }

func (f *File) end() {
	a := &f.header().attached
	atomic.StoreUint32(&a.end, 1)
	const wake = 1
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&a.end)), wake, 1<<30, 0, 0, 0)
}

// Detach has the library put all slots back, if the process is not gone. It returns how many could not be, because their file
// has been unloaded, or somebody else has changed them.
func (f *File) Detach(limit time.Duration) (left uint64, err error) {
	a := &f.header().attached
	f.end()
	for end := time.Now().Add(limit); atomic.LoadUint32(&a.state) != attachedEnded && !f.Gone(); {
		if time.Now().After(end) {
			return 0, errors.New("the library has not ended within " + limit.String())
		}
		wait(&a.state, attachedNow, 100*time.Millisecond)
	}
	return a.slotsLeft, nil
}

// Ended reports whether the library has put the slots back.
func (f *File) Ended() bool { return atomic.LoadUint32(&f.header().attached.state) == attachedEnded }

// Before returns the bytes that the allocator had in use before; 0 if it does not say.
func (f *File) Before() int64 { return int64(f.header().attached.before) }

// FreedBefore returns how many of those were freed in the last seconds or before; 0 if that is not known.
func (f *File) FreedBefore(held int64) int64 {
	a := &f.header().attached
	later := int64(atomic.LoadUint64(&a.later))
	if a.before == 0 || later == 0 {
		return 0
	}
	return max(0, int64(a.before)+held-later)
}

// Slots returns how many slots were changed.
func (f *File) Slots() int { return int(f.header().attached.slots) }

// Close unmaps a file of Map or OpenLeft.
func (f *File) Close() error {
	err := syscall.Munmap(f.data)
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// wait sleeps while a word of the file has a value, for some time at most.
func wait(word *uint32, is uint32, limit time.Duration) {
	t := unix.NsecToTimespec(int64(limit))
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 0, uintptr(is), uintptr(unsafe.Pointer(&t)), 0, 0)
}
