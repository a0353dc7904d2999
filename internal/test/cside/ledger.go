//go:build cgo && unix

package cside

/*
#cgo noescape cside_ledger_new
#cgo nocallback cside_ledger_new
#cgo noescape cside_ledger_free
#cgo nocallback cside_ledger_free
#cgo noescape cside_entry_create
#cgo nocallback cside_entry_create
#cgo noescape cside_entry_destroy
#cgo nocallback cside_entry_destroy
#cgo noescape cside_entry_destroy_all
#cgo nocallback cside_entry_destroy_all
#cgo noescape cside_entry_use
#cgo nocallback cside_entry_use
#cgo noescape cside_entry_depend
#cgo nocallback cside_entry_depend
#cgo noescape cside_ledger_report
#cgo nocallback cside_ledger_report

#include "ledger.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// A Ledger makes and destroys resources, and counts both for each address. All of
// its methods except Close may be called from any goroutine.
type Ledger struct{ c *C.struct_cside_ledger }

// C functions for the resources of ledgers. The argument for a ledger is its Context.
var (
	ConstructEntry = unsafe.Pointer(C.cside_entry_create)     // void *(void *ledger), NULL when there is no room
	DestroyEntry   = unsafe.Pointer(C.cside_entry_destroy)    // void (void *entry)
	DestroyEntryOf = unsafe.Pointer(C.cside_entry_destroy_of) // void (void *ledger, void *entry)
)

// NewLedger returns a ledger for as many resources as room says. With reuse, the last
// destroyed resource is the next to be created, as with malloc. Without reuse, no
// address is created twice, and Use detects every destroyed resource.
func NewLedger(room int, reuse bool) *Ledger {
	again := C.int(0)
	if reuse {
		again = 1
	}
	l := &Ledger{C.cside_ledger_new(C.size_t(room), again)}
	if l.c == nil {
		panic("cside: out of memory")
	}
	return l
}

// Close frees the ledger and all of its resources. They must not be used after that.
func (l *Ledger) Close() { C.cside_ledger_free(l.c) }

// Context returns the ledger as an argument for its C functions.
func (l *Ledger) Context() unsafe.Pointer { return unsafe.Pointer(l.c) }

// Create makes a resource. It panics if there is no room.
func (l *Ledger) Create() unsafe.Pointer {
	p := C.cside_entry_create(l.Context())
	if p == nil {
		panic("cside: the ledger has no room")
	}
	return p
}

// Destroy destroys a resource, as a program does by hand.
func (l *Ledger) Destroy(entry unsafe.Pointer) { C.cside_entry_destroy(entry) }

// DestroyAll destroys resources in one cgo call, as the release function of a pool
// does.
func (l *Ledger) DestroyAll(_ any, entries []uintptr) error {
	C.cside_entry_destroy_all((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(entries))), C.size_t(len(entries)))
	return nil
}

// Use reads a resource several times, and reports whether it was alive each time.
// Reads of a destroyed resource are counted.
func (l *Ledger) Use(entry unsafe.Pointer, times int) bool {
	return C.cside_entry_use(entry, C.size_t(times)) == 0
}

// Depend says that a resource must be destroyed before the parent, which may be of
// another ledger. Both must be alive, and a resource has one parent at most.
func (l *Ledger) Depend(entry, parent unsafe.Pointer) { C.cside_entry_depend(entry, parent) }

// A Report is the counts of a ledger.
type Report struct {
	Created, Destroyed uint64 // sums over all addresses
	Live               uint64 // addresses that were created once more than destroyed
	Unbalanced         uint64 // addresses created less often than destroyed, or more often by two and more
	Twice              uint64 // destructions of a destroyed resource
	Misplaced          uint64 // destructions with another ledger as the context
	DeadUses           uint64 // reads of a destroyed resource by Use
	Orphans            uint64 // resources whose parent, in this ledger, was destroyed before them
}

// Report adds up the counts of all addresses.
func (l *Ledger) Report() Report {
	r := C.cside_ledger_report(l.c)
	return Report{
		Created: uint64(r.created), Destroyed: uint64(r.destroyed), Live: uint64(r.live),
		Unbalanced: uint64(r.unbalanced), Twice: uint64(r.twice),
		Misplaced: uint64(r.misplaced), DeadUses: uint64(r.dead_uses),
		Orphans: uint64(r.orphans),
	}
}

// Err returns an error unless every resource was destroyed exactly once after each
// creation, and not used after that.
func (r Report) Err() error {
	if err := r.Mistakes(); err != nil {
		return err
	}
	if r.Live > 0 {
		return fmt.Errorf("%d of %d resources were never destroyed", r.Live, r.Created)
	}
	return nil
}

// Mistakes is Err, except that resources may be alive.
func (r Report) Mistakes() error {
	if r.Unbalanced+r.Twice+r.Misplaced+r.DeadUses+r.Orphans > 0 {
		return fmt.Errorf("%d destructions of a destroyed resource, %d with the wrong context, %d before a child, %d addresses out of balance, %d uses of a destroyed resource (%+v)",
			r.Twice, r.Misplaced, r.Orphans, r.Unbalanced, r.DeadUses, r)
	}
	return nil
}
