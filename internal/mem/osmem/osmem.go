// Package osmem reserves, commits and releases memory of the operating system. No other
// package does.
//
// Address space is in one of three states:
//
//	reserved    nothing else is mapped there; touching it faults; it costs no memory
//	committed   may be read and written; it is zero until it is written
//	released    not ours; the next mapping may be there
//
// [Reserve] leads to reserved, [Commit] to committed, [Release] to released.
// [Decommit] drops the contents of committed pages and the memory behind them. On
// unix these pages stay committed and read as zero, on Windows they are reserved
// again. On both Commit makes them usable; it may be called on committed pages, too.
// [Revoke] leads from committed to reserved everywhere.
// [Map] is Reserve and Commit in one, for metadata; [MapSparse] is for metadata that is
// mostly read.
//
// Sizes and addresses are multiples of PageSize, or the function panics. Any
// function may be called from any goroutine, as long as no two work on the same
// pages. Commit, Map, Remap and Reserve return an error if the system refuses.
// Decommit and Release cannot fail: pages that the system does not take back are
// cleared and stay, addresses that it does not take back are lost.
//
// With the build tag cheap_gomem, Reserve returns Go memory without pointers, so that
// the race detector and checkptr see what is done to it.
package osmem

import (
	"errors"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/poison"
)

// PageSize is the system's page size in bytes.
var PageSize = uintptr(os.Getpagesize())

// RoundPage rounds n up to a multiple of PageSize.
func RoundPage(n uintptr) uintptr { return (n + PageSize - 1) &^ (PageSize - 1) }

// An Op names a call that the system may refuse.
type Op string

// The calls that Fault is asked about. OpDecommit and OpRelease are calls of the system:
// Reserve makes some to cut an address range, and with cheap_gomem there are none.
const (
	OpReserve  Op = "reserve"
	OpCommit   Op = "commit"
	OpMap      Op = "map"
	OpRemap    Op = "remap"
	OpDecommit Op = "decommit"
	OpRelease  Op = "release"
	OpRevoke   Op = "revoke"
)

// Fault, if it is set, is called before each call that the system may refuse. If it
// returns an error, the system is not called, and the result is as if the system had
// returned that error. Tests set it to try what happens without memory.
var Fault atomic.Pointer[func(op Op, size uintptr) error]

func fault(op Op, size uintptr) error {
	if f := Fault.Load(); f != nil {
		return (*f)(op, size)
	}
	return nil
}

// Reserve reserves size bytes of address space. They start at a multiple of align, a
// power of two.
func Reserve(size, align uintptr) (uintptr, error) {
	mustBePages("osmem.Reserve", 0, size)
	Must(IsPower(align), "osmem.Reserve", "align", align)
	if err := fault(OpReserve, size); err != nil {
		return 0, err
	}
	addr, err := reserve(size, align)
	if err == nil {
		counts.reserved.Add(int64(size))
		counts.changes.Add(1)
		if !GoBacked {
			Name(addr, size, Heap)
		}
		if poison.Build {
			poison.Register(addr, size)
		}
	}
	return addr, err
}

// Commit makes size bytes at addr usable.
func Commit(addr, size uintptr) error {
	mustBePages("osmem.Commit", addr, size)
	if err := fault(OpCommit, size); err != nil {
		return err
	}
	return commit(addr, size)
}

// Decommit returns the memory behind size bytes at addr to the system. Their contents
// are lost.
func Decommit(addr, size uintptr) {
	mustBePages("osmem.Decommit", addr, size)
	decommit(addr, size)
	counts.decommits.Add(1)
	counts.decommitted.Add(int64(size))
}

// Resident returns how many pages at addr, which are committed, have memory that is not swapped out.
// Where the system does not say, it is all.
func Resident(addr, size uintptr) int {
	mustBePages("osmem.Resident", addr, size)
	if GoBacked {
		return int(size / PageSize)
	}
	return sysResident(addr, size)
}

// Revoke makes size bytes at addr reserved again, so that touching them faults. Commit makes
// them usable, and then their contents are undefined. If keep is true, the system keeps the
// memory behind them. If Revoke returns an error, the bytes may still be usable.
func Revoke(addr, size uintptr, keep bool) error {
	mustBePages("osmem.Revoke", addr, size)
	if err := fault(OpRevoke, size); err != nil {
		return err
	}
	return revoke(addr, size, keep)
}

// Release returns size bytes of address space at addr to the system. They are all that
// one Reserve returned.
func Release(addr, size uintptr) {
	mustBePages("osmem.Release", addr, size)
	if poison.Build {
		poison.Unregister(addr, size) // before another Reserve gets these addresses
	}
	release(addr, size)
	counts.reserved.Add(-int64(size))
	counts.changes.Add(1)
}

// Remap moves size bytes from one address to another, with their pages instead of by
// copying. The address space at to must be reserved. The bytes at from read as zero
// afterwards. Remap may be called only if CanMove returns true, and it may still fail.
// If it fails, the bytes at to may be committed, or the error is ErrLost.
func Remap(from, to, size uintptr) error {
	mustBePages("osmem.Remap", from, size)
	mustBePages("osmem.Remap", to, size)
	if err := fault(OpRemap, size); err != nil {
		return err
	}
	return remap(from, to, size)
}

// CanMove reports whether Remap works with this system. It tries it once, with two pages of
// its own.
var CanMove = sync.OnceValue(func() bool { return CanRemap && sysCanMove() })

// ErrLost is the error of Remap if another mapping of the program may be at the
// destination. Neither from nor to may be touched from then on.
var ErrLost = errors.New("osmem: the addresses are lost")

// Map returns size bytes of zeroed memory for metadata. It is never Go memory, and it
// is never released.
func Map(size uintptr) (uintptr, error) {
	mustBePages("osmem.Map", 0, size)
	if err := fault(OpMap, size); err != nil {
		return 0, err
	}
	addr, err := mapMeta(size)
	if err == nil {
		counts.mapped.Add(int64(size))
		Name(addr, size, Metadata)
	}
	return addr, err
}

// MapSparse is Map for memory of which little is ever written to. It reads as zero, and
// [Writable] has to be called for the pages that are to be written to. So the system
// needs no memory for the other pages, even if the program locks all its memory
// (mlockall).
func MapSparse(size uintptr) (uintptr, error) {
	mustBePages("osmem.MapSparse", 0, size)
	if err := fault(OpMap, size); err != nil {
		return 0, err
	}
	addr, err := mapSparse(size)
	if err == nil {
		Name(addr, size, Metadata)
	}
	return addr, err
}

// Writable makes size bytes of MapSparse at addr writable. It may be called again for the
// same pages.
func Writable(addr, size uintptr) error {
	mustBePages("osmem.Writable", addr, size)
	if err := fault(OpCommit, size); err != nil {
		return err
	}
	return sysCommit(addr, size)
}

// MaxMappings returns how many mappings the system allows a process.
func MaxMappings() int {
	if GoBacked {
		return math.MaxInt // Go's heap is few mappings
	}
	return sysMaxMappings()
}

// SmallPages asks the system to use its smallest pages for size bytes at addr, so that
// touching one byte does not cost a huge page.
func SmallPages(addr, size uintptr) {
	mustBePages("osmem.SmallPages", addr, size)
	smallPages(addr, size)
}

// HugePages asks the system to use huge pages for size bytes at addr, which are reserved.
func HugePages(addr, size uintptr) {
	mustBePages("osmem.HugePages", addr, size)
	hugePages(addr, size)
}

// Apart asks the system to keep size bytes at addr, which are reserved and stay so, in a mapping
// of their own. Then it need not split and join mappings where Commit and Revoke are called
// for the pages beside them.
func Apart(addr, size uintptr) {
	mustBePages("osmem.Apart", addr, size)
	apart(addr, size)
}

// Pointer returns the address of memory outside the Go heap as a pointer. It is where
// the module goes from addresses to pointers. The rules of package unsafe protect Go
// objects, and this memory is none: it has no Go type, is never moved, and does not
// belong to the collector. It is unsafe.Add of nil and not a conversion, because vet
// rightly suspects every conversion.
//
// Precondition: addr is in committed memory, or the pointer is only compared and
// printed. With cheap_gomem the memory is part of a Go object, which backing keeps
// alive. Checkptr does not know that and would object to the arithmetic.
//
//go:nocheckptr
//go:nosplit
func Pointer(addr uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), addr) }
