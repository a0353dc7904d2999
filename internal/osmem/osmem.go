// Package osmem is the only door to the operating system's memory.
//
// Address space is in one of three states:
//
//	reserved    nobody else gets it; touching it faults; costs no memory
//	committed   may be read and written; zero until it is written
//	released    not ours; the next mapping may lie there
//
// Reserve leads to reserved, Commit to committed. Decommit drops the contents
// of committed pages and the memory behind them: on unix they stay committed
// and read as zero, on Windows they are reserved again; Commit, which may be
// called on committed pages too, makes them usable on both. Release ends it.
// Map is Reserve and Commit in one, for metadata.
//
// Sizes and addresses are multiples of PageSize unless said otherwise, and any
// function here may be called from any goroutine, as long as no two work on
// the same pages. Commit, Map, Remap and Reserve return an error when the
// system refuses. Decommit and Release have no way to fail: pages that the system
// will not take back are cleared and stay, addresses that it will not take back
// are lost.
//
// With the build tag cheap_gomem, Reserve hands out pointer-free Go memory
// instead, so that the race detector and checkptr see what is done to it.
package osmem

import (
	"os"
	"sync/atomic"
	"unsafe"
)

// PageSize is the system's page size in bytes.
var PageSize = uintptr(os.Getpagesize())

// RoundPage rounds n up to a multiple of PageSize.
func RoundPage(n uintptr) uintptr { return (n + PageSize - 1) &^ (PageSize - 1) }

// An Op names a call that the system may refuse.
type Op string

// The calls that Fault is asked about.
const (
	OpReserve Op = "reserve"
	OpCommit  Op = "commit"
	OpMap     Op = "map"
	OpRemap   Op = "remap"
)

// Fault, if set, is asked before each call that the system may refuse; the
// error that it returns is returned in the system's stead. It is here for
// tests of what happens when memory is out.
var Fault atomic.Pointer[func(op Op, size uintptr) error]

func fault(op Op, size uintptr) error {
	if f := Fault.Load(); f != nil {
		return (*f)(op, size)
	}
	return nil
}

// Reserve reserves size bytes of address space whose start is a multiple of
// align, a power of two.
func Reserve(size, align uintptr) (uintptr, error) {
	if err := fault(OpReserve, size); err != nil {
		return 0, err
	}
	return reserve(size, align)
}

// Commit makes size bytes at addr usable.
func Commit(addr, size uintptr) error {
	if err := fault(OpCommit, size); err != nil {
		return err
	}
	return commit(addr, size)
}

// Decommit gives the memory behind size bytes at addr back to the system. The
// contents are gone.
func Decommit(addr, size uintptr) { decommit(addr, size) }

// Release gives size bytes of address space at addr, all of one Reserve, back
// to the system.
func Release(addr, size uintptr) { release(addr, size) }

// Remap moves the pages of size bytes at from, and with them the contents, to
// to, which must be reserved. What was at from reads as zero afterwards. Only
// where CanRemap says so, and even there the system may be too old.
func Remap(from, to, size uintptr) error {
	if err := fault(OpRemap, size); err != nil {
		return err
	}
	return remap(from, to, size)
}

// Map returns size bytes of zeroed memory for metadata. It is never Go memory
// and never released.
func Map(size uintptr) (uintptr, error) {
	if err := fault(OpMap, size); err != nil {
		return 0, err
	}
	return mapMeta(size)
}

// SmallPages asks the system to back size bytes at addr by pages of the
// smallest size, so that touching one byte does not cost a huge page.
func SmallPages(addr, size uintptr) { smallPages(addr, size) }

// Pointer turns the address of memory outside the Go heap into a pointer. This
// is the place where the module crosses from addresses to pointers: the memory
// has no Go type, is never moved, and is not the collector's, so none of the
// rules of package unsafe that protect Go objects is at stake. unsafe.Add of
// nil, not a conversion, because vet rightly suspects every conversion.
//
// Precondition: addr lies in committed memory, or the pointer is only compared
// and printed. With cheap_gomem the memory is part of a Go object that backing
// keeps alive, and checkptr, which cannot know, would object to the arithmetic.
//
//go:nocheckptr
func Pointer(addr uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), addr) }
