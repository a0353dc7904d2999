package own_test

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

// Clicks are the functions of buttons. The one that NewCallbacks gets is called in place of
// those that have ended.
var clicks = own.NewCallbacks("Button.clicked", func() { fmt.Println("nobody listens") })

// clicked is an exported function in a binding: C calls it with the data of OnClick.
func clicked(data unsafe.Pointer) { clicks.Call(data, func(f func()) { f() }) }

// A Button has a function, which may refer to the Button.
type Button struct {
	n       own.Number[int]
	clicked own.Callback[func()]
}

// OnClick returns what a binding passes to C.
func (b *Button) OnClick(f func()) (data unsafe.Pointer) {
	return b.clicked.Set(clicks, b.n.Owner(), f)
}

func ExampleCallback() {
	buttons := own.NewPool(own.Options{
		Name: "Button", Numbers: true,
		Release: func(any, []uintptr) error { return nil },
	})
	b := new(Button)
	if err := b.n.Own(buttons, 7, 100); err != nil {
		panic(err)
	}
	data := b.OnClick(func() {
		fmt.Println("clicked")
		b.n.Close()
		clicked(b.clicked.Data()) // from now on
	})
	clicked(data)
	fmt.Println(clicks.Stats().Ended)
	// Output:
	// clicked
	// nobody listens
	// 1
}
