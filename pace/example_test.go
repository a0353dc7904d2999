package pace_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A program makes and forgets 1,000 images of a megabyte each, outside the Go
// heap. Their handles of 16 bytes cause no collection. With pace, collections
// come in time.
func Example() {
	if err := pace.Start(pace.Options{}); err != nil {
		log.Fatal(err)
	}
	defer pace.Stop()

	memory := own.NewMemory(nil, own.MemoryOptions{Name: "Image"})
	most := int64(0)
	for range 1000 {
		image, err := memory.NewBytes(1 << 20)
		if err != nil {
			log.Fatal(err)
		}
		image.Use(func(pixels []byte) { pixels[0] = 255 })
		most = max(most, memory.Stats().Bytes)
	} // each image is forgotten here

	fmt.Println("collections were started:", pace.ReadStats().Cycles > 0)
	fmt.Println("all images were held at the same time:", most == 1000<<20)
	memory.CloseWait(context.Background()) // its error counts images that were never closed
	// Output:
	// collections were started: true
	// all images were held at the same time: false
}

// images counts the bytes that a C library has allocated for Images.
var images = pace.NewAccount(pace.AccountOptions{Name: "images", Limit: 64 << 20})

// An Image stands for a binding's type that has a cleanup of its own.
type Image struct{ width, height int }

// NewImage stands for a constructor that has a C library make the pixels.
func NewImage(width, height int) (*Image, error) {
	size := int64(width) * int64(height)
	if err := images.Wait(context.Background(), size); err != nil {
		return nil, err // do not call the C library
	}
	// Here the C library makes the pixels. If it fails, call images.Remove.
	m := &Image{width, height}
	runtime.AddCleanup(m, func(size int64) {
		// Here the C library frees the pixels.
		images.Remove(size)
	}, size)
	return m, nil
}

// A binding with cleanups of its own reports what its C library allocates. The
// images of this program are 200 MiB together, and never exceed 64 MiB at a
// time.
func ExampleAccount() {
	if err := pace.Start(pace.Options{}); err != nil {
		log.Fatal(err)
	}
	defer pace.Stop()
	for range 200 {
		if _, err := NewImage(1024, 1024); err != nil {
			fmt.Println(err)
			return
		}
	} // each image is forgotten here
	_, err := NewImage(10_000, 10_000)
	fmt.Println(errors.Is(err, cheap.ErrLimit))
	// Output: true
}

// Accounts lists who holds memory outside the Go heap: the heaps, package own, and
// the accounts of bindings.
func ExampleAccounts() {
	textures := pace.NewAccount(pace.AccountOptions{Name: "textures", Limit: 64 << 20})
	defer textures.Close()
	if err := textures.Add(4096); err != nil {
		log.Fatal(err)
	}
	for _, u := range pace.Accounts() {
		if u.Name == "textures" {
			fmt.Printf("%s: %d bytes of at most %d\n", u.Name, u.Held, u.Limit)
		}
	}
	// Output: textures: 4096 bytes of at most 67108864
}

// A limit holds for the Go heap and all counted memory together.
func ExampleSetLimit() {
	if err := pace.Start(pace.Options{Limit: 1 << 40}); err != nil {
		log.Fatal(err)
	}
	defer pace.Stop()
	fmt.Println(pace.SetLimit(256<<20) == 1<<40)

	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = heap.TryMalloc(512 << 20)
	var limit *pace.LimitError
	fmt.Println(errors.Is(err, cheap.ErrLimit), errors.As(err, &limit) && limit.Limit == 256<<20)
	fmt.Println(heap.Destroy())
	// Output:
	// true
	// true true
	// <nil>
}
