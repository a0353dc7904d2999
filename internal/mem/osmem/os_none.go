//go:build !unix && !windows

package osmem

import (
	"errors"
	"fmt"
	"math"
	"runtime"
)

// errNone is the error of all calls where the system has no virtual memory: programs build, and
// allocate nothing. Memory of Go, as with cheap_gomem, would move no load from the Go heap.
var errNone = fmt.Errorf("%s has no calls to reserve, commit and release memory, which the memory of package cheap is made of: %w", runtime.GOOS, errors.ErrUnsupported)

func sysReserve(size, align uintptr) (uintptr, error) { return 0, errNone }

func mapMeta(size uintptr) (uintptr, error) { return 0, errNone }

func mapSparse(size uintptr) (uintptr, error) { return 0, errNone }

func sysRemap(from, to, size uintptr) error { return errNone }

func sysMaxMappings() int { return math.MaxInt }

func smallPages(addr, size uintptr) {}

func sysCanMove() bool { return false }

func apart(addr, size uintptr) {}

// Nothing was reserved, so nothing calls these functions.

func sysCommit(addr, size uintptr) error { return errNone }

func sysRevoke(addr, size uintptr, keep bool) error { return errNone }

func sysDecommit(addr, size uintptr) {}

func sysRelease(addr, size uintptr) {}

func sysResident(addr, size uintptr) int { return int(size / PageSize) }

func hugePages(addr, size uintptr) {}
