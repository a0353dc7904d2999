//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Store has drawers. Goroutines may share it.
type Store struct {
	h own.Handle[*C.store]
	c *storeCalls
}

// storeCalls is what calls of C need. It refers to no owner, so the release may use it.
type storeCalls struct {
	mu sync.Mutex // held for each call of C
	p  *C.store
}

// A Drawer is freed before its store.
type Drawer struct{ h own.Handle[*C.drawer] }

var (
	stores = own.NewPool(own.Options{
		Name: "Store", CHeap: true,
		Release: libc.Destructor(unsafe.Pointer(C.store_free)),
		Batch:   1, // a store that lives long delays no other one
	})
	drawers = own.NewPool(own.Options{Name: "Drawer", CHeap: true, Release: freeDrawers})
)

// freeDrawers frees drawers of one store, whose state it gets.
func freeDrawers(state any, resources []uintptr) error {
	c := state.(*storeCalls)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		C.drawer_free(c.p, (*C.drawer)(cheap.Pointer(r)))
	}
	return nil
}

// NewStore returns a store without drawers.
func NewStore() (*Store, error) {
	p := C.store_new()
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	s := &Store{c: &storeCalls{p: p}}
	if err := s.h.Own(stores, p, 0); err != nil {
		C.store_free(unsafe.Pointer(p)) // the pool does not own it
		return nil, err
	}
	return s, s.h.SetState(s.c) // the state of its children
}

// NewDrawer makes a drawer, which keeps the store from being freed.
func (s *Store) NewDrawer() (*Drawer, error) {
	d := new(Drawer)
	return d, s.h.TryUse(func(p *C.store) error {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		r := C.drawer_new(p)
		if r == nil {
			return cheap.ErrNoMemory
		}
		err := d.h.OwnWith(drawers, r, own.With{Size: 100, Parent: s.h.Owner()})
		if err != nil {
			C.drawer_free(p, r) // the pool does not own it
		}
		return err
	})
}

// Close frees the store when it has no drawer any more.
func (s *Store) Close() error { return s.h.Close() }

// Close frees the drawer.
func (d *Drawer) Close() error { return d.h.Close() }

// Drawers returns how many drawers the library counts.
func (s *Store) Drawers() (n int, err error) {
	err = s.h.TryUse(func(p *C.store) error {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		n = int(C.drawers(p))
		return nil
	})
	return n, err
}

// StoresAlive returns how many stores are not freed, and how many were freed too early.
func StoresAlive() (alive, mistakes int) {
	return int(stores.Stats().Live), int(C.store_mistakes())
}
