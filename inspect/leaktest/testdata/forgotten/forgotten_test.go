package forgotten

import (
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/inspect/leaktest"
	"github.com/cheapgo/cheap/own"
)

var memory [64]byte

var images = own.NewPool(own.Options{
	Name:    "image",
	Release: func(any, []uintptr) error { return nil },
})

type image struct{ h own.Handle[unsafe.Pointer] }

func (m *image) Close() error { return m.h.Close() }

func decode(t *testing.T) *image {
	m := new(image)
	if err := m.h.Own(images, unsafe.Pointer(&memory), len(memory)); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDecode(t *testing.T) {
	leaktest.Check(t)
	m := decode(t)
	defer m.Close()
	decode(t) // a thumbnail, without Close
}

func TestClosed(t *testing.T) {
	leaktest.Check(t)
	decode(t).Close()
}
