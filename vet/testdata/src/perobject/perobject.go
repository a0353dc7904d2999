package perobject

/*
#include <stdlib.h>
typedef struct { int n; } image;
static image *image_new(void) { return calloc(1, sizeof(image)); }
static void image_free(image *i) { free(i); }
static int image_len(image *i) { return i->n; }
*/
import "C"

import (
	"os"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

type Image struct{ p *C.image }

func (m *Image) Free() { C.image_free(m.p) } // want Free:"releases by C.image_free"

func (m *Image) Close() { go m.Free() } // want Close:"releases by C.image_free"

func (m *Image) Len() int { return int(C.image_len(m.p)) }

func method(m *Image) {
	runtime.SetFinalizer(m, (*Image).Free)                        // want `a finalizer for each object, which ends in C.image_free`
	runtime.SetFinalizer(m, func(m *Image) { m.Close() })         // want `a finalizer for each object`
	runtime.SetFinalizer(m, func(m *Image) { C.image_free(m.p) }) // want `a finalizer for each object`
}

func cleanup(m *Image, p unsafe.Pointer) {
	runtime.AddCleanup(m, func(p unsafe.Pointer) { C.free(p) }, p) // want `a cleanup for each object, which ends in C.free`
	free := func(p unsafe.Pointer) { C.free(p) }
	runtime.AddCleanup(m, free, p) // want `a cleanup for each object`
}

func silent(m *Image, f *os.File) {
	runtime.SetFinalizer(m, nil)
	runtime.SetFinalizer(f, (*os.File).Close)
	runtime.SetFinalizer(m, func(m *Image) { m.Len() })
	runtime.AddCleanup(m, func(int) { println("gone") }, 1)
	runtime.SetFinalizer(m, func(m *Image) { m.Free(); f.Close() })
	runtime.SetFinalizer(m, func(m *Image) { pd.release(); m.Free() })
	runtime.SetFinalizer(m, func(m *Image) { pinner.Unpin(); m.Free() })
	runtime.SetFinalizer(m, func(m *Image) { cancel(); m.Free() })
	runtime.SetFinalizer(m, func(m *Image) { handle.Delete(); m.Free() })
	runtime.SetFinalizer(m, func(m *Image) { close(done); m.Free() })
	runtime.SetFinalizer(m, func(m *Image) { delete(images, m.p); m.Free() })
}

var (
	pinner runtime.Pinner
	cancel func()
	handle cgo.Handle
	done   chan bool
	images map[*C.image]int
)

// A Tree has others.
type Tree struct {
	p    *C.image
	kids []*Tree
}

// Free frees them.
func (t *Tree) Free() { // want Free:"releases by C.image_free"
	for _, k := range t.kids {
		k.Free()
	}
	C.image_free(t.p)
	t.unref()
}

func (t *Tree) unref() { C.image_len(t.p) }

func tree(t *Tree) { runtime.SetFinalizer(t, (*Tree).Free) } // want `a finalizer for each object`

type polled struct{ n int }

func (p *polled) release() { p.n = 0 }

var pd polled
