//go:build !cheap_gomem

package osmem

import "runtime"

// GoBacked says whether spans lie in Go memory.
const GoBacked = false

// CanRemap says whether Remap works.
const CanRemap = runtime.GOOS == "linux"

// DecommitRevokes says whether pages must be committed again after Decommit.
const DecommitRevokes = runtime.GOOS == "windows"

// HasHugePages says whether HugePages does something.
const HasHugePages = runtime.GOOS == "linux"

func reserve(size, align uintptr) (uintptr, error) { return sysReserve(size, align) }
func commit(addr, size uintptr) error              { return sysCommit(addr, size) }
func decommit(addr, size uintptr)                  { sysDecommit(addr, size) }
func release(addr, size uintptr)                   { sysRelease(addr, size) }
func remap(from, to, size uintptr) error           { return sysRemap(from, to, size) }
func revoke(addr, size uintptr, keep bool) error   { return sysRevoke(addr, size, keep) }
