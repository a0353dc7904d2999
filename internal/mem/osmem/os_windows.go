package osmem

import (
	"errors"
	"math"
	"unsafe"

	"golang.org/x/sys/windows"
)

func sysReserve(size, align uintptr) (uintptr, error) {
	const granularity = 64 << 10 // VirtualAlloc aligns to this by itself
	if align <= granularity {
		return windows.VirtualAlloc(0, size, windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	}
	if size+align < size {
		return 0, windows.ERROR_NOT_ENOUGH_MEMORY
	}
	// A reservation can only be released as a whole. So reserve more to find a place,
	// release that, and reserve the aligned part of it. Another thread may reserve it
	// first; then try again.
	var err error
	for range 8 {
		var p uintptr
		p, err = windows.VirtualAlloc(0, size+align, windows.MEM_RESERVE, windows.PAGE_NOACCESS)
		if err != nil {
			return 0, err
		}
		start := (p + align - 1) &^ (align - 1)
		sysRelease(p, size+align)
		p, err = windows.VirtualAlloc(start, size, windows.MEM_RESERVE, windows.PAGE_NOACCESS)
		if err == nil {
			return p, nil
		}
	}
	return 0, err
}

func sysCommit(addr, size uintptr) error {
	_, err := windows.VirtualAlloc(addr, size, windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

func sysDecommit(addr, size uintptr) {
	if fault(OpDecommit, size) != nil || windows.VirtualFree(addr, size, windows.MEM_DECOMMIT) != nil {
		clearCommitted(addr, size) // the pages stay, but read as zero
	}
}

// clearCommitted clears what is committed of size bytes at addr. Between, pages may be reserved that an
// earlier Decommit has taken: they would fault, and are zero when they come back.
func clearCommitted(addr, size uintptr) {
	for end := addr + size; addr < end; {
		n := end - addr
		var m windows.MemoryBasicInformation
		err := windows.VirtualQuery(addr, &m, unsafe.Sizeof(m))
		if err == nil {
			n = min(n, m.BaseAddress+m.RegionSize-addr)
		}
		if err != nil || m.State == windows.MEM_COMMIT { // a fault is better than bytes that are left
			clear(unsafe.Slice((*byte)(Pointer(addr)), n))
		}
		addr += n
	}
}

// The system takes the memory, whatever keep says.
func sysRevoke(addr, size uintptr, keep bool) error {
	return windows.VirtualFree(addr, size, windows.MEM_DECOMMIT)
}

func sysRelease(addr, size uintptr) {
	if fault(OpRelease, size) == nil {
		_ = windows.VirtualFree(addr, 0, windows.MEM_RELEASE) // if not, the addresses are lost
	}
}

func mapMeta(size uintptr) (uintptr, error) {
	return windows.VirtualAlloc(0, size, windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
}

func mapSparse(size uintptr) (uintptr, error) { return mapMeta(size) }

func sysMaxMappings() int { return math.MaxInt }

func smallPages(addr, size uintptr) {}

func sysRemap(from, to, size uintptr) error { return errors.ErrUnsupported }

func sysCanMove() bool { return false }

func apart(addr, size uintptr) {}

func sysResident(addr, size uintptr) int { return int(size / PageSize) }

func hugePages(addr, size uintptr) {}
