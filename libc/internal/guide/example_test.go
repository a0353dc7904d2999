//go:build cgo

package guide_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc/internal/guide"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

func Example_direct() {
	fmt.Println(guide.Sum([]int32{1, 2, 3}), guide.Sum(nil))
	// Output: 6 0
}

func Example_arena() {
	fmt.Println(guide.Longest([]string{"an", "arena", "is", "gone"}))
	// Output: arena
}

func Example_strings() {
	fmt.Println(guide.Upper("from C, and freed"))
	// Output: FROM C, AND FREED <nil>
}

func Example_heap() {
	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: 64 << 20})
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
	fmt.Println(heap.Destroy()) // an error if a block was not freed
	// Output:
	// 2 120
	// <nil>
}

func Example_poolAndClose() {
	image, err := guide.NewImage(640, 480)
	if err != nil {
		panic(err)
	}
	defer image.Close() // may be called again, also through a copy
	fmt.Println(image.Bounds())
	fmt.Println(guide.ImagesAlive())
	image.Close()
	fmt.Println(guide.ImagesAlive())
	// Output:
	// 640 480 <nil>
	// 1
	// 0
}

func Example_inside() {
	image, err := guide.NewImage(640, 480)
	if err != nil {
		panic(err)
	}
	line, err := image.Line(479)
	if err != nil {
		panic(err)
	}
	fmt.Println(line.At(0)) // line keeps the image alive
	image.Close()
	fmt.Println(line.At(0))
	// Output:
	// 0 <nil>
	// 0 cheap: own: the owner is closed
}

func Example_poolAndForget() {
	for range 1000 {
		if _, err := guide.NewImage(16, 16); err != nil {
			panic(err)
		}
	}
	waitForRelease()
	fmt.Println(guide.ImagesAlive())
	// Output: 0
}

// waitForRelease is for this example only. A program continues instead.
func waitForRelease() {
	for guide.ImagesAlive() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func Example_children() {
	store, err := guide.NewStore()
	if err != nil {
		panic(err)
	}
	drawer, err := store.NewDrawer()
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Drawers())
	store.Close()                    // it waits for its drawer
	fmt.Println(guide.StoresAlive()) // 1 is alive
	drawer.Close()
	fmt.Println(guide.StoresAlive())
	fmt.Println(store.Drawers())
	// Output:
	// 1 <nil>
	// 1 0
	// 0 0
	// 0 cheap: own: the owner is closed
}

func Example_errors() {
	journal, err := guide.NewJournal(1)
	if err != nil {
		panic(err)
	}
	journal.Write("kept")
	journal.Write("lost")
	fmt.Println(journal.Close())
	fmt.Println(errors.Is(journal.Write("late"), own.ErrClosed))

	go func() {
		journal, _ := guide.NewJournal(0)
		journal.Write("lost")
	}() // and forgotten
	fmt.Println(collected(guide.Forgotten))
	// Output:
	// 1 lines are lost
	// true
	// 1 lines are lost
}

// collected is for this example only: it does not wait for the next collection.
func collected(errors <-chan error) error {
	for {
		runtime.GC()
		select {
		case err := <-errors:
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

func Example_threads() {
	runtime.LockOSThread() // the loop has a thread of its own
	defer runtime.UnlockOSThread()
	for range 100 {
		texture, err := guide.NewTexture()
		if err != nil {
			panic(err)
		}
		go texture.Close() // by any goroutine
	}
	for deleted := 0; deleted < 100; {
		<-guide.Wake
		deleted += guide.Paint()
	}
	fmt.Println(guide.Strangers)
	// Output: 0
}

func Example_pace() {
	if err := pace.Start(pace.Options{}); err != nil {
		panic(err)
	}
	defer pace.Stop()

	const images = 2000 // of 1 MiB each
	most := 0
	for range images {
		if _, err := guide.NewImage(1024, 1024); err != nil {
			panic(err)
		}
		most = max(most, guide.ImagesAlive())
	}
	fmt.Println(most < images)

	waitForRelease()
	fmt.Println(guide.ImagesAlive())
	// Output:
	// true
	// 0
}

func Example_paceLimit() {
	if err := pace.Start(pace.Options{Limit: 256 << 20}); err != nil {
		panic(err)
	}
	defer pace.Stop()

	var album []*guide.Image // keeps all images reachable, and meets the limit
	for range 512 {
		image, err := guide.NewImageWithin(context.Background(), 1024, 1024)
		if err != nil {
			fmt.Println(len(album) < 256, errors.Is(err, cheap.ErrLimit))
			break
		}
		album = append(album, image)
	}

	for _, image := range album {
		image.Close()
	}
	fmt.Println(guide.ImagesAlive())
	// Output:
	// true true
	// 0
}

func Example_memory() {
	memory := own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "Histogram"})
	histogram, err := guide.NewHistogram(memory)
	if err != nil {
		panic(err)
	}
	histogram.Add([]byte("counted "))
	histogram.Add([]byte("twice"))
	fmt.Println(histogram.Of('e'), histogram.Of('t'), histogram.Of('x'))
	// Output: 2 2 0
}

func Example_group() {
	memory := own.NewMemory(cheap.Default(), own.MemoryOptions{Name: "Table"})
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
