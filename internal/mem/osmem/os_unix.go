//go:build unix

package osmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A system that accounts for memory does so when memory is committed. So if the
// system has no memory, there is an error here, and not a signal later.
func sysCommit(addr, size uintptr) error {
	return unix.Mprotect(bytes(addr, size), unix.PROT_READ|unix.PROT_WRITE)
}

// The contents are dropped after the pages are out of reach, so that no write is left in them.
func sysRevoke(addr, size uintptr, keep bool) error {
	if err := unix.Mprotect(bytes(addr, size), unix.PROT_NONE); err != nil || keep {
		return err
	}
	_ = unix.Madvise(bytes(addr, size), unix.MADV_DONTNEED) // pages that are locked stay
	return nil
}

func sysReserve(size, align uintptr) (uintptr, error) {
	// Not MAP_NORESERVE: with it the pages would not be accounted for when they are
	// committed. Pages that are only reserved cost nothing anyway.
	const flags = unix.MAP_ANON | unix.MAP_PRIVATE
	// The system often places a mapping right beside the last one, where it is
	// aligned. If it is not, ask for more and cut it to size.
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_NONE, flags)
	if err != nil {
		return 0, err
	}
	if uintptr(p)&(align-1) == 0 {
		return uintptr(p), nil
	}
	sysRelease(uintptr(p), size)
	if size+align < size {
		return 0, unix.ENOMEM
	}
	p, err = unix.MmapPtr(-1, 0, nil, size+align, unix.PROT_NONE, flags)
	if err != nil {
		return 0, err
	}
	start := (uintptr(p) + align - 1) &^ (align - 1)
	if head := start - uintptr(p); head > 0 {
		sysRelease(uintptr(p), head)
	}
	if tail := uintptr(p) + align - start; tail > 0 {
		sysRelease(start+size, tail)
	}
	return start, nil
}

// Munmap fails if it would split a mapping and the process has as many mappings as it
// may. Then the memory is returned and the addresses are lost, which is better than a
// panic in the middle of a Free.
func sysRelease(addr, size uintptr) {
	if fault(OpRelease, size) != nil || unix.MunmapPtr(Pointer(addr), size) != nil {
		_ = unix.Madvise(bytes(addr, size), unix.MADV_DONTNEED)
	}
}

func mapMeta(size uintptr) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|noReserve)
	if err != nil {
		return 0, err
	}
	smallPages(uintptr(p), size)
	return uintptr(p), nil
}

// bytes returns size bytes at addr in the form that x/sys/unix wants.
func bytes(addr, size uintptr) []byte { return unsafe.Slice((*byte)(Pointer(addr)), size) }
