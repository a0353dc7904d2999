package gopointer

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

type point struct{ x, y float64 }

type named struct {
	at   [2]point
	name string
}

func bad(a cheap.Allocator, m *own.Memory) {
	cheap.New[named](a)                 // want `cheap.New panics: named.name is a string`
	cheap.New[*int](a)                  // want `is a pointer`
	cheap.MakeSlice[[]int](a, 1, 1)     // want `cheap.MakeSlice panics: \[\]int is a slice`
	cheap.MakeSlice[[3]any](a, 1, 1)    // want `\[0\] is a interface`
	cheap.Append(a, []string(nil), "x") // want `cheap.Append panics: string is a string`
	cheap.New[map[int]int](a)           // want `is a map`
	cheap.New[chan int](a)              // want `is a channel`
	cheap.New[func()](a)                // want `is a function`
	cheap.New[unsafe.Pointer](a)        // want `is a unsafe.Pointer`
	own.NewMem[named](m)                // want `own.NewMem panics: named.name is a string`
}

func good[T any](a cheap.Allocator, m *own.Memory) {
	cheap.New[T](a)
	cheap.New[point](a)
	cheap.New[uintptr](a)
	cheap.New[[0]string](a)
	cheap.MakeSlice[[4]point](a, 1, 1)
	own.NewMem[struct{ a, b int }](m)
}
