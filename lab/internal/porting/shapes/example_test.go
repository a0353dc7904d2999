//go:build cgo && cxx

package shapes_test

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap/lab/internal/porting/shapes"
)

func Example_closed() {
	s, err := shapes.NewShape(5)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Sides(), shapes.ShapesAlive())
	s.Close()
	fmt.Println(shapes.ShapesAlive())
	_, err = shapes.NewShape(2)
	fmt.Println(err)
	// Output:
	// 5 1
	// 0
	// no shape of 2 sides
}

func Example_forgotten() {
	for range 1000 {
		if _, err := shapes.NewShape(3); err != nil {
			panic(err)
		}
	}
	for shapes.ShapesAlive() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println(shapes.ShapesAlive())
	// Output: 0
}
