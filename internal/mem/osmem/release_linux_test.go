//go:build !cheap_gomem

package osmem

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestRelease looks whether nothing is mapped where memory was released. Another thread may map
// something there before the test looks. It does not do so each time.
func TestRelease(t *testing.T) {
	// What mincore says of a page that is not mapped.
	unmapped := func(addr uintptr) bool {
		var in [64]byte // an emulator writes a byte for each page of the machine
		_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, addr, PageSize, uintptr(unsafe.Pointer(&in)))
		return errno == syscall.ENOMEM
	}
	for _, align := range []uintptr{1, 64 << 20} {
		size := 5 * PageSize
		testwait.Until(t, "no page is mapped after Release", func() bool {
			addr, err := Reserve(size, align)
			if err != nil {
				t.Fatal(err)
			}
			if err := Commit(addr, size); err != nil { // an emulator takes what is reserved only for unmapped
				t.Fatal(err)
			}
			if unmapped(addr) || unmapped(addr+size-PageSize) {
				t.Fatal("mincore takes a page for unmapped before Release")
			}
			Release(addr, size)
			return unmapped(addr) && unmapped(addr+size-PageSize)
		})
	}
}

// TestResident counts pages before and after they are touched, and after they are given back.
func TestResident(t *testing.T) {
	const pages = 1500 // which take more than one call of the system
	size := pages * PageSize
	addr, err := Map(size)
	if err != nil {
		t.Fatal(err)
	}
	SmallPages(addr, size)
	touched := 0
	for i := uintptr(0); i < pages; i += 7 {
		mem(addr, size)[i*PageSize] = 1
		touched++
	}
	if got := Resident(addr, size); got != touched && got != pages { // all where the system does not say
		t.Errorf("%d pages are resident, %d were touched", got, touched)
	}
	if got := Resident(addr+PageSize, 6*PageSize); got != 0 && got != 6 {
		t.Errorf("%d pages are resident, none was touched", got)
	}
	Decommit(addr, size)
	if got := Resident(addr, size); got != 0 && got != pages {
		t.Errorf("%d pages are resident after Decommit", got)
	}
}
