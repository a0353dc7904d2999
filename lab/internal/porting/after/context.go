package after

// #include "../library.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Context makes meshes. Goroutines may share it.
type Context struct {
	h own.Handle[*C.context]
	l *library
}

// A library is what is needed to use and free the meshes of a context. It refers to no
// owner, so it may be the state of their release function.
type library struct {
	mu sync.Mutex // held for each call of C
	c  *C.context
}

var (
	contexts = own.NewPool(own.Options{
		Name: "Context",
		// The memory is malloc's. Where a program has package cmem, it is not counted twice.
		CHeap:   true,
		Release: libc.Destructor(unsafe.Pointer(C.context_free), libc.NoCallback),
		Batch:   1, // a context that lives long holds back no other one
	})
	meshes = own.NewPool(own.Options{Name: "Mesh", CHeap: true, Release: freeMeshes})
)

// freeMeshes frees meshes of one context.
func freeMeshes(state any, resources []uintptr) error {
	l := state.(*library)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range resources {
		C.mesh_free(l.c, (*C.mesh)(cheap.Pointer(r)))
	}
	return nil
}

// NewContext makes one.
func NewContext() (*Context, error) {
	p := C.context_new()
	if p == nil {
		return nil, errors.New("no memory for a context")
	}
	c := &Context{l: &library{c: p}}
	if err := c.h.Own(contexts, p, 64<<10); err != nil {
		C.context_free(unsafe.Pointer(p))
		return nil, err
	}
	if err := c.h.SetState(c.l); err != nil { // of its meshes
		return nil, err
	}
	return c, nil
}

// Close frees the context when its last mesh is freed.
func (c *Context) Close() error { return c.h.Close() }

// A Mesh belongs to a context.
type Mesh struct {
	h own.Handle[*C.mesh]
	l *library
}

// NewMesh makes a mesh.
func (c *Context) NewMesh(points int) (*Mesh, error) {
	m := &Mesh{l: c.l}
	err := c.h.TryUse(func(p *C.context) error {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		r := C.mesh_new(p, C.int(points))
		if r == nil {
			return errors.New("no memory for a mesh")
		}
		if err := m.h.OwnUnder(meshes, c.h.Owner(), r, 100*points); err != nil {
			C.mesh_free(p, r) // the lock is held, so not by Discard
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close frees the mesh. It takes the lock of the context, like all calls of C.
func (m *Mesh) Close() error { return m.h.Close() }

// Points asks the library. The context stays as long as one of its meshes.
func (m *Mesh) Points() (n int, err error) {
	err = m.h.TryUse(func(p *C.mesh) error {
		m.l.mu.Lock()
		defer m.l.mu.Unlock()
		n = int(C.mesh_points(m.l.c, p))
		return nil
	})
	return n, err
}

// ContextsAlive returns how many contexts and meshes the library has, and how often it
// was misused.
func ContextsAlive() (alive, misused int) {
	return int(C.contexts_alive()), int(C.context_misuses())
}
