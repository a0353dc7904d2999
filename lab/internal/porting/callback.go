package porting

// #include "element.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Element calls a function, which may refer to it.
type Element struct {
	h     own.Handle[*C.element]
	added own.Callback[func()]
}

var signals = own.NewCallbacks("Element.pad-added", func() {})

// Connect has C call f.
func (e *Element) Connect(f func()) {
	e.h.Use(func(p *C.element) {
		C.element_connect(p, e.added.Set(signals, e.h.Owner(), f))
	})
}

//export elementSignal
func elementSignal(data unsafe.Pointer) { signals.Call(data, func(f func()) { f() }) }

var elements = own.NewPool(own.Options{
	Name: "Element", CHeap: true,
	Release: libc.Destructor(unsafe.Pointer(C.element_free)),
})

// NewElement returns an element without pads.
func NewElement() (*Element, error) {
	p := C.element_new()
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	e := new(Element)
	if err := e.h.Own(elements, p, 100); err != nil {
		C.element_free(unsafe.Pointer(p)) // it is still ours
		return nil, err
	}
	return e, nil
}

// AddPad has C call the function.
func (e *Element) AddPad() {
	e.h.Use(func(p *C.element) { C.element_add_pad(p) })
}

// ElementsAlive returns how many elements the library has made and not freed.
func ElementsAlive() int { return int(C.elements_alive()) }
