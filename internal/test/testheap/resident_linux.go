package testheap

import (
	"bytes"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
)

// Resident returns how many of n bytes at addr, a multiple of the page size,
// are in RAM.
func Resident(t testing.TB, addr, n uintptr) uintptr {
	t.Helper()
	in, err := Mincore(addr, n)
	if err != nil {
		t.Fatal("mincore:", err)
	}
	return in
}

// Mincore returns how many of n bytes at addr, a multiple of the page size, are in RAM. An
// emulator of a processor with larger pages passes the system's answer on, which has a byte
// for each of the system's own pages.
func Mincore(addr, n uintptr) (in uintptr, err error) {
	const unwritten = 0x80
	pages := bytes.Repeat([]byte{unwritten}, int(n/4096)+2)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, addr, n, uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		return 0, errno
	}
	written := bytes.IndexByte(pages, unwritten)
	all := osmem.RoundPage(n) / osmem.PageSize
	for page := range slices.Chunk(pages[:written], written/int(all)) {
		if slices.Contains(page, 1) {
			in += osmem.PageSize
		}
	}
	return in, nil
}
