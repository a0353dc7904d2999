//go:build unix && !linux

package osmem

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

const noReserve = 0

// Only Linux promises that memory is zero after MADV_DONTNEED. Elsewhere a new mapping
// replaces the old one.
func sysDecommit(addr, size uintptr) {
	err := fault(OpDecommit, size)
	if err == nil {
		_, err = unix.MmapPtr(-1, 0, Pointer(addr), size, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
	}
	if err != nil {
		clear(bytes(addr, size)) // the pages stay, but read as zero
	}
}

func mapSparse(size uintptr) (uintptr, error) { return mapMeta(size) }

func sysMaxMappings() int { return math.MaxInt }

func smallPages(addr, size uintptr) {}

func sysRemap(from, to, size uintptr) error { return errors.ErrUnsupported }

func sysCanMove() bool { return false }

func apart(addr, size uintptr) {}

func sysResident(addr, size uintptr) int { return int(size / PageSize) }

func hugePages(addr, size uintptr) {}
