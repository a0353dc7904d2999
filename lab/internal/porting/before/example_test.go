//go:build cgo

package before_test

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/lab/internal/porting/before"
)

func Example_malloc() {
	fmt.Println(before.CountLines("one\ntwo\n"))
	pair := before.NewPair(40, 2)
	defer pair.Free()
	fmt.Println(pair.Sum())
	// Output:
	// 2
	// 42
}

func Example_finalizer() {
	shape, err := before.NewShape(5)
	if err != nil {
		panic(err)
	}
	fmt.Println(shape.Sides())
	shape.Close()
	for range 100 {
		if _, err := before.NewShape(3); err != nil { // and forget it
			panic(err)
		}
	}
	for before.ShapesAlive() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println(before.ShapesAlive())
	// Output:
	// 5
	// 0
}

func Example_cleanup() {
	h, err := before.NewHistogram()
	if err != nil {
		panic(err)
	}
	h.Add([]byte("before and after"))
	fmt.Println(h.Of('e'), h.Of('f'), h.Of('x'))
	// Output: 3 2 0
}

func Example_cgoalloc() {
	pool, err := before.NewPool()
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
	fmt.Println(before.Describe("prism", []int{3, 4, 4, 4, 3}))
	// Output: prism: 18
}
