//go:build cheap_gomem

package osmem

import (
	"errors"
	"sync"
	"unsafe"
)

// GoBacked says whether spans lie in Go memory.
const GoBacked = true

// CanRemap says whether Remap works.
const CanRemap = false

// DecommitRevokes says whether pages must be committed again after Decommit.
const DecommitRevokes = false

// HasHugePages says whether HugePages does something.
const HasHugePages = false

// backing keeps the Go memory behind each reservation alive: the collector finds
// pointers to it nowhere else. It may be used under a lock that the race detector does
// not see. So the functions that use it are marked go:norace, and it is a slice,
// because the runtime's code for maps cannot be marked.
var backing struct {
	sync.Mutex
	all []reservation
}

type reservation struct {
	start, size uintptr
	mem         []byte
}

// mustBeReserved panics if size bytes at addr are not in one reservation. With memory of the
// system, Release of a wrong range might hit another mapping.
//
//go:norace
func mustBeReserved(op string, addr, size uintptr) {
	backing.Lock()
	found := false
	for i := range backing.all {
		if r := &backing.all[i]; addr-r.start < r.size {
			found = size <= r.size-(addr-r.start)
			break
		}
	}
	backing.Unlock()
	Must(found, op, "addr", addr)
}

//go:norace
func reserve(size, align uintptr) (uintptr, error) {
	// Beyond this make would panic, where the system returns an error.
	const most = 1 << 30 << (^uintptr(0) >> 63 * 6)
	if size > most || align > most {
		return 0, errors.New("too large")
	}
	align = max(align, PageSize)
	b := make([]byte, size+align)
	start := (uintptr(unsafe.Pointer(unsafe.SliceData(b))) + align - 1) &^ (align - 1)
	backing.Lock()
	defer backing.Unlock()
	backing.all = append(backing.all, reservation{start, size, b})
	return start, nil
}

func commit(addr, size uintptr) error {
	mustBeReserved("osmem.Commit", addr, size)
	return nil
}

// The race detector would take the clearing for a write of the goroutine that returns
// the memory.
//
//go:norace
func decommit(addr, size uintptr) {
	mustBeReserved("osmem.Decommit", addr, size)
	clear(unsafe.Slice((*byte)(Pointer(addr)), size))
}

//go:norace
func release(addr, size uintptr) {
	Must(drop(addr, size), "osmem.Release", "addr", addr)
}

// drop reports whether there was a reservation of size bytes at addr.
//
//go:norace
func drop(addr, size uintptr) bool {
	backing.Lock()
	defer backing.Unlock()
	last := len(backing.all) - 1
	for i := range backing.all {
		if r := backing.all[i]; r.start == addr && r.size == size {
			backing.all[i] = backing.all[last]
			backing.all[last] = reservation{}
			backing.all = backing.all[:last]
			return true
		}
	}
	return false
}

func revoke(addr, size uintptr, keep bool) error { return errors.ErrUnsupported }

func remap(from, to, size uintptr) error { return errors.ErrUnsupported }
