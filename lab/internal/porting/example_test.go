//go:build cgo

package porting_test

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/lab/internal/porting"
)

func Example_malloc() {
	fmt.Println(porting.CountLines("one\ntwo\n"))
	pair, err := porting.NewPair(40, 2)
	if err != nil {
		panic(err)
	}
	defer pair.Free()
	fmt.Println(pair.Sum())
	// Output:
	// 2
	// 42
}

func Example_finalizer() {
	shape, err := porting.NewShape(5)
	if err != nil {
		panic(err)
	}
	fmt.Println(shape.Sides())
	shape.Close()
	for range 100 {
		if _, err := porting.NewShape(3); err != nil { // and forget it
			panic(err)
		}
	}
	for porting.ShapesAlive() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println(porting.ShapesAlive())
	// Output:
	// 5
	// 0
}

func Example_cleanup() {
	h, err := porting.NewHistogram()
	if err != nil {
		panic(err)
	}
	h.Add([]byte("before and after"))
	fmt.Println(h.Of('e'), h.Of('f'), h.Of('x'))
	// Output: 3 2 0
}

func Example_cgoalloc() {
	pool, err := porting.NewPool()
	if err != nil {
		panic(err)
	}
	fmt.Println(pool.SumOf(20, 22))
	fmt.Println(pool.Close())
	// Output:
	// 42
	// <nil>
}

func Example_callback() {
	pads := 0
	for range 1000 {
		e, err := porting.NewElement()
		if err != nil {
			panic(err)
		}
		e.Connect(func() {
			if pads++; pads%2 == 1 {
				e.AddPad()
			}
		})
		e.AddPad()
	} // and forget it
	fmt.Println(pads)
	for porting.ElementsAlive() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println(porting.ElementsAlive())
	// Output:
	// 2000
	// 0
}
