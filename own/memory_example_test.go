package own_test

import (
	"context"
	"fmt"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

// Blocks of a Memory need no Free: they are freed after they become unreachable.
func ExampleMemory() {
	type pixel struct{ R, G, B, A uint8 }
	memory := own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "Image"})

	image, err := own.NewMem[[640 * 480]pixel](memory)
	if err != nil {
		panic(err)
	}
	image.Use(func(p *[640 * 480]pixel) { p[0].G = 255 }) // for C as well: &p[0]

	const text = "a green dot"
	title, err := memory.NewBytes(len(text))
	if err != nil {
		panic(err)
	}
	title.Use(func(b []byte) { copy(b, text) })
	p := image.Get()
	fmt.Println(string(title.Get()), p[0])
	image.KeepAlive() // p keeps nothing alive
	title.KeepAlive()

	image.Close() // or not
	title.Close()
	fmt.Println(memory.Stats().Live, memory.CloseWait(context.Background()))
	// Output:
	// a green dot {0 255 0 0}
	// 0 <nil>
}

// A Group has all blocks of one request, and frees them together.
func ExampleMemory_NewGroup() {
	memory := own.NewMemory(nil, own.MemoryOptions{Name: "requests"})
	serve := func(name string) {
		g, err := memory.NewGroup()
		if err != nil {
			panic(err)
		}
		defer g.Close() // also keeps it alive until here
		greeting := cheap.CString(g, "hello, "+name)
		counts := cheap.MakeSlice[int32](g, 0, 100)
		counts, err = cheap.Append(g, counts, 1, 2, 3)
		if err != nil {
			panic(err)
		}
		fmt.Println(cheap.GoString(greeting), counts)
	}
	serve("world")
	// Output: hello, world [1 2 3]
}
