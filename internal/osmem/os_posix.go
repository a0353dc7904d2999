//go:build unix && !linux

package osmem

import (
	"errors"

	"golang.org/x/sys/unix"
)

const noReserve = 0

// Only Linux promises that MADV_DONTNEED leaves zeroes, so a new mapping is
// laid over the old one.
func sysDecommit(addr, size uintptr) {
	_, err := unix.MmapPtr(-1, 0, Pointer(addr), size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		clear(bytes(addr, size)) // they stay, but read as promised
	}
}

func smallPages(addr, size uintptr) {}

func sysRemap(from, to, size uintptr) error { return errors.ErrUnsupported }
