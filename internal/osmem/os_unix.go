//go:build unix

package osmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Committing is what the system accounts for, as far as it does, so memory that
// it will not give is refused here, by an error, and not later by a signal.
func sysCommit(addr, size uintptr) error {
	return unix.Mprotect(bytes(addr, size), unix.PROT_READ|unix.PROT_WRITE)
}

func sysReserve(size, align uintptr) (uintptr, error) {
	// Not MAP_NORESERVE, which would exempt the pages from being accounted for
	// when they are committed. What is only reserved costs nothing anyway.
	const flags = unix.MAP_ANON | unix.MAP_PRIVATE
	// The system often places a mapping right beside the last one, which is
	// aligned as well; only otherwise ask for more and cut it to size.
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

// If it fails, for want of mappings, the memory is given back and the addresses
// are lost, which is better than a panic in the middle of a Free.
func sysRelease(addr, size uintptr) {
	if unix.MunmapPtr(Pointer(addr), size) != nil {
		_ = unix.Madvise(bytes(addr, size), unix.MADV_DONTNEED)
	}
}

func mapMeta(size uintptr) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|noReserve)
	if err != nil {
		return 0, err
	}
	smallPages(uintptr(p), size)
	return uintptr(p), nil
}

// bytes is the form in which x/sys/unix takes a range.
func bytes(addr, size uintptr) []byte { return unsafe.Slice((*byte)(Pointer(addr)), size) }
