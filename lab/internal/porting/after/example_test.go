//go:build cgo

package after_test

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/lab/internal/porting/after"
)

func Example_malloc() {
	fmt.Println(after.CountLines("one\ntwo\n"))
	pair, err := after.NewPair(40, 2)
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
	shape, err := after.NewShape(5)
	if err != nil {
		panic(err)
	}
	fmt.Println(shape.Sides())
	shape.Close()
	for range 100 {
		if _, err := after.NewShape(3); err != nil { // and forget it
			panic(err)
		}
	}
	for after.ShapesAlive() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println(after.ShapesAlive())
	// Output:
	// 5
	// 0
}

func Example_cleanup() {
	h, err := after.NewHistogram()
	if err != nil {
		panic(err)
	}
	h.Add([]byte("before and after"))
	fmt.Println(h.Of('e'), h.Of('f'), h.Of('x'))
	// Output: 3 2 0
}

func Example_cgoalloc() {
	pool, err := after.NewPool()
	if err != nil {
		panic(err)
	}
	fmt.Println(pool.SumOf(20, 22))
	fmt.Println(pool.Close())
	// Output:
	// 42
	// <nil>
}

func Example_cgoparam() {
	fmt.Println(after.Describe("prism", []int{3, 4, 4, 4, 3}))
	// Output: prism: 18
}
