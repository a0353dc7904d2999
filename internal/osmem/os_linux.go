package osmem

import "golang.org/x/sys/unix"

const noReserve = unix.MAP_NORESERVE

// MADV_DONTNEED, not MADV_FREE: the second leaves the pages in the resident
// size, which is what people watch and what limits of containers count.
func sysDecommit(addr, size uintptr) {
	if err := unix.Madvise(bytes(addr, size), unix.MADV_DONTNEED); err != nil {
		panic("cheap: madvise: " + err.Error())
	}
}

func smallPages(addr, size uintptr) {
	// A kernel without huge pages answers EINVAL, and there is nothing to do.
	_ = unix.Madvise(bytes(addr, size), unix.MADV_NOHUGEPAGE)
}

func sysRemap(from, to, size uintptr) error {
	_, err := unix.MremapPtr(Pointer(from), size, Pointer(to), size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	if err != nil {
		return err
	}
	// The move left a hole. Fill it before anybody else does; if the system
	// has no mapping left for that, the hole is address space lost to us, and
	// nobody will touch it.
	_, _ = unix.MmapPtr(-1, 0, Pointer(from), size, unix.PROT_NONE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE|unix.MAP_FIXED_NOREPLACE)
	return nil
}
