//go:build cgo

package guide_test

import (
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc/internal/guide"
	"github.com/cheapgo/cheap/own"
)

func Example_direct() {
	fmt.Println(guide.Sum([]int32{1, 2, 3}), guide.Sum(nil))
	// Output: 6 0
}

func Example_arena() {
	fmt.Println(guide.Longest([]string{"an", "arena", "is", "gone"}))
	// Output: arena
}

func Example_heap() {
	heap, err := cheap.NewHeap(cheap.Options{Limit: 64 << 20})
	if err != nil {
		panic(err)
	}
	counter, err := guide.NewCounter(heap)
	if err != nil {
		panic(err)
	}
	guide.Event(100)
	guide.Event(20)
	fmt.Println(counter.Read())
	counter.Close(heap)
	fmt.Println(heap.Destroy()) // would name what was not freed
	// Output:
	// 2 120
	// <nil>
}

func Example_poolAndClose() {
	image, err := guide.NewImage(640, 480)
	if err != nil {
		panic(err)
	}
	defer image.Close() // also after the Close below, and in any copy
	fmt.Println(image.Bounds())
	fmt.Println(guide.ImagesAlive())
	image.Close()
	fmt.Println(guide.ImagesAlive())
	// Output:
	// 640 480
	// 1
	// 0
}

func Example_poolAndForget() {
	for range 1000 {
		if _, err := guide.NewImage(16, 16); err != nil {
			panic(err)
		}
	}
	for guide.ImagesAlive() > 0 { // only to see it: a program goes on
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Println(guide.ImagesAlive())
	// Output: 0
}

func Example_memory() {
	memory := own.NewMemory(cheap.Default(), own.Options{Name: "Histogram"})
	histogram, err := guide.NewHistogram(memory)
	if err != nil {
		panic(err)
	}
	histogram.Add([]byte("nobody frees"))
	histogram.Add([]byte(" this"))
	fmt.Println(histogram.Of('e'), histogram.Of('s'), histogram.Of('x'))
	// Output: 2 2 0
}

func Example_group() {
	memory := own.NewMemory(cheap.Default(), own.Options{Name: "Table"})
	table, err := guide.NewTable(memory)
	if err != nil {
		panic(err)
	}
	if err := table.Add("odd", 1, 3, 5); err != nil {
		panic(err)
	}
	if err := table.Add("even", 2, 4); err != nil {
		panic(err)
	}
	fmt.Println(table.Line(0))
	fmt.Println(table.Line(1))
	// Output:
	// odd: 1 3 5
	// even: 2 4
}
