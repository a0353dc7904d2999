package osmem

import (
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const noReserve = unix.MAP_NORESERVE

// MADV_DONTNEED, not MADV_FREE: with the latter the pages stay in the resident size,
// which people observe and which limits of containers count.
func sysDecommit(addr, size uintptr) {
	if fault(OpDecommit, size) != nil || unix.Madvise(bytes(addr, size), unix.MADV_DONTNEED) != nil {
		clear(bytes(addr, size)) // the program has locked the pages with mlock
	}
}

// sysResident asks for 2 MiB at a time. An emulator of a processor with larger pages writes a byte for each
// page of the machine, of at least 4 KiB. Then all pages are taken for resident, as they are if the call
// fails.
func sysResident(addr, size uintptr) (n int) {
	const unwritten, most = 0x80, 2 << 20
	var in [most/4096 + 1]byte
	for end := addr + size; addr < end; {
		part := min(end-addr, most)
		pages := part / PageSize
		in[pages] = unwritten
		// in has room for what is written to it, and does not move during the call.
		if _, _, errno := unix.Syscall(unix.SYS_MINCORE, addr, part, uintptr(unsafe.Pointer(&in))); errno != 0 || in[pages] != unwritten {
			return int(size / PageSize)
		}
		for _, b := range in[:pages] {
			n += int(b & 1)
		}
		addr += part
	}
	return n
}

func mapSparse(size uintptr) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE|noReserve)
	if err != nil {
		return 0, err
	}
	smallPages(uintptr(p), size)
	return uintptr(p), nil
}

// The kernel's default, if the file cannot be read, is 65,530.
func sysMaxMappings() int {
	n := 65_530
	if fd, err := unix.Open("/proc/sys/vm/max_map_count", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		var text [32]byte
		if got, err := unix.Read(fd, text[:]); err == nil {
			if v, err := strconv.Atoi(strings.TrimSpace(string(text[:got]))); err == nil {
				n = v
			}
		}
		_ = unix.Close(fd)
	}
	return n
}

func smallPages(addr, size uintptr) {
	// A kernel without huge pages returns EINVAL. Then all pages are small anyway.
	_ = unix.Madvise(bytes(addr, size), unix.MADV_NOHUGEPAGE)
}

func hugePages(addr, size uintptr) {
	// A kernel without huge pages returns EINVAL, and the pages are small.
	_ = unix.Madvise(bytes(addr, size), unix.MADV_HUGEPAGE)
}

func sysRemap(from, to, size uintptr) error {
	// DONTUNMAP leaves an empty mapping at from. Without it there would be a hole,
	// and another mapping of the process might take it. Linux has the flag since
	// 5.7; an older kernel returns EINVAL.
	_, err := unix.MremapPtr(Pointer(from), size, Pointer(to), size,
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED|unix.MREMAP_DONTUNMAP)
	if err == nil {
		return nil
	}
	// If the program has split the mapping at from, by mprotect or mlock, the call
	// fails after it has unmapped to. Map it again before another mapping is placed
	// there.
	_, again := unix.MmapPtr(-1, 0, Pointer(to), size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE)
	if again != nil {
		return ErrLost
	}
	return err
}

// sysCanMove moves a page. An old kernel refuses. With qemu-user 7.2, which runs programs of
// other processors, the page moves, but then the emulator takes the old address for
// unmapped, and madvise does nothing there and says that it has: a page that was decommitted
// would not be zero.
func sysCanMove() bool {
	from, err := sysReserve(PageSize, 1)
	if err != nil {
		return false
	}
	defer sysRelease(from, PageSize)
	to, err := sysReserve(PageSize, 1)
	if err != nil {
		return false
	}
	defer sysRelease(to, PageSize)
	// decommits reports whether what sysDecommit does is right for the page. It is where the
	// call is refused, because the program has locked all pages. Tests let sysDecommit fail.
	decommits := func(addr uintptr) bool {
		if sysCommit(addr, PageSize) != nil {
			return false
		}
		p := (*byte)(Pointer(addr)) // it is committed
		*p = 1
		return unix.Madvise(bytes(addr, PageSize), unix.MADV_DONTNEED) != nil || *p == 0
	}
	return sysCommit(from, PageSize) == nil && sysRemap(from, to, PageSize) == nil && decommits(to) && decommits(from)
}

// names are the purposes as C strings, which the kernel copies.
var names = map[Purpose]*byte{Heap: cString(Heap), Owners: cString(Owners), Metadata: cString(Metadata)}

func cString(p Purpose) *byte { return unsafe.StringData(string(p) + "\x00") }

// A kernel before 5.17, or without CONFIG_ANON_VMA_NAME, returns EINVAL.
func sysSetName(addr, size uintptr, p Purpose) error {
	name := names[p]
	// The name is in static memory or in the Go heap, which does not move, and is kept alive.
	err := unix.Prctl(unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, addr, size, uintptr(unsafe.Pointer(name)))
	runtime.KeepAlive(name)
	return err
}

// A flag tells the two mappings apart. The pages have nothing that a dump could show.
func apart(addr, size uintptr) { _ = unix.Madvise(bytes(addr, size), unix.MADV_DONTDUMP) }
