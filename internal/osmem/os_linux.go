package osmem

import "golang.org/x/sys/unix"

const noReserve = unix.MAP_NORESERVE

// MADV_DONTNEED, not MADV_FREE: the second leaves the pages in the resident
// size, which is what people watch and what limits of containers count.
func sysDecommit(addr, size uintptr) {
	if unix.Madvise(bytes(addr, size), unix.MADV_DONTNEED) != nil {
		clear(bytes(addr, size)) // the program has locked the pages with mlock
	}
}

func smallPages(addr, size uintptr) {
	// A kernel without huge pages answers EINVAL, and there is nothing to do.
	_ = unix.Madvise(bytes(addr, size), unix.MADV_NOHUGEPAGE)
}

func sysRemap(from, to, size uintptr) error {
	// DONTUNMAP leaves an empty mapping at from. Without it there would be a
	// hole, which somebody else might fill before we could. Linux has it since
	// 5.7; an older one says EINVAL.
	_, err := unix.MremapPtr(Pointer(from), size, Pointer(to), size,
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP)
	if err != nil {
		// What was at to may be gone all the same, if the program has split the
		// mapping at from, by mprotect or mlock. It is about to be released, so
		// take it again before somebody else does.
		_, _ = unix.MmapPtr(-1, 0, Pointer(to), size, unix.PROT_NONE,
			unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE)
	}
	return err
}
