//go:build cgo

package widgets

// #include "toolkit.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Button is a widget that can be clicked.
type Button struct {
	h       own.Handle[*C.widget]
	clicked own.Callback[func()]
	self    own.Callback[*Button] // lets the toolkit hold the Button
}

var (
	clicks  = own.NewCallbacks("Button.clicked", func() {}) // what a button does that is gone
	buttons = own.NewCallbacks[*Button]("Button", nil)
)

// OnClick has clicks call f, which may refer to the button.
func (b *Button) OnClick(f func()) error {
	return b.h.TryUse(func(p *C.widget) error {
		C.widget_on_click(p, b.clicked.Set(clicks, b.h.Owner(), f))
		return nil
	})
}

//export widgetsClicked
func widgetsClicked(data unsafe.Pointer) {
	clicks.Call(data, func(f func()) { f() })
}

//export widgetsToggled
func widgetsToggled(data unsafe.Pointer, last C.int) {
	if last != 0 {
		buttons.Weaken(data) // only our reference is left
	} else {
		buttons.Hold(data) // C keeps the button, so Go must
	}
}

var queue own.Queue // drained by the thread of the toolkit

var widgets = own.NewPool(own.Options{
	Name: "Widget", CHeap: true, Batch: 1,
	Release: libc.Destructor(unsafe.Pointer(C.widget_unref)),
	Run:     queue.Run(),
})

// NewButton returns a button. As long as a window has it, it answers to clicks.
func NewButton() (*Button, error) {
	b, err := newButton()
	if err != nil {
		return nil, err
	}
	return b, b.h.TryUse(func(p *C.widget) error {
		C.widget_on_toggle(p, b.self.Set(buttons, b.h.Owner(), b))
		return nil
	})
}

// newButton returns a button that falls silent when Go forgets it.
func newButton() (*Button, error) {
	b := new(Button)
	p := C.widget_new()
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	if err := b.h.Own(widgets, p, 100); err != nil {
		C.widget_unref(unsafe.Pointer(p)) // the pool does not own it
		return nil, err
	}
	return b, nil
}

// Click clicks the button.
func (b *Button) Click() error {
	return b.h.TryUse(func(p *C.widget) error { C.widget_click(p); return nil })
}

// Close drops the binding's reference. The button stays as long as a window has it, and its
// function is not called any more.
func (b *Button) Close() error { return b.h.Close() }

// A Window keeps its buttons.
type Window struct{ h own.Handle[*C.widget] }

// NewWindow returns a window without buttons.
func NewWindow() (*Window, error) {
	b, err := newButton()
	if err != nil {
		return nil, err
	}
	return &Window{b.h}, nil
}

// Add has the window keep the button.
func (w *Window) Add(b *Button) error {
	return w.h.TryUse(func(window *C.widget) error {
		return b.h.TryUse(func(button *C.widget) error {
			C.window_add(window, button)
			return nil
		})
	})
}

// Click clicks each button of the window.
func (w *Window) Click() error {
	return w.h.TryUse(func(p *C.widget) error { C.window_click(p); return nil })
}

// Empty takes all buttons out of the window.
func (w *Window) Empty() error {
	return w.h.TryUse(func(p *C.widget) error { C.window_empty(p); return nil })
}

// Close takes all buttons out of the window, and drops it.
func (w *Window) Close() error { return w.h.Close() }

// Turn is a turn of the toolkit's loop: it drops what was closed and what was forgotten.
func Turn() { queue.Drain(0) }

// Alive returns the number of widgets.
func Alive() int { return int(C.widgets_alive()) }
