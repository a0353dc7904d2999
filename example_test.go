package cheap_test

import (
	"errors"
	"fmt"
	"log"
	"unsafe"

	"github.com/cheapgo/cheap"
)

func Example() {
	type point struct{ x, y float64 }

	p := cheap.New[point](cheap.Default()) // zeroed; nil if there is no memory
	p.x, p.y = 3, 4
	fmt.Println(*p)
	cheap.Delete(cheap.Default(), p)
	// Output: {3 4}
}

func ExampleHeap() {
	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	p := heap.Malloc(100)
	fmt.Println(heap.UsableSize(p))
	var live *cheap.LiveError
	fmt.Println(errors.As(heap.Destroy(), &live), live.Blocks)
	heap.Free(p)
	fmt.Println(heap.Destroy())
	// Output:
	// 112
	// true 1
	// <nil>
}

func ExampleHeap_TryMalloc() {
	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer heap.Destroy()
	_, err = heap.TryMalloc(2 << 20)
	fmt.Println(errors.Is(err, cheap.ErrLimit))
	// Output: true
}

func ExampleHeap_Free_misuse() {
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if e, ok := recover().(*cheap.MisuseError); ok {
			fmt.Println(e.Op, e.Addr != 0)
		}
	}()
	p := heap.Malloc(100)
	heap.Free(p)
	heap.Free(p) // panics: the block is free already
	// Output: Heap.Free true
}

func ExampleHeap_NewLocal() {
	local := cheap.Default().NewLocal() // for this goroutine only
	defer local.Destroy()
	for range 1000 {
		p := local.Malloc(64)
		local.Free(p)
	}
}

func ExampleNewFixedBlock() {
	nodes := cheap.NewFixedBlock(cheap.Default(), cheap.FixedBlockOptions{BlockSize: 48})
	a, b := nodes.Malloc(48), nodes.Malloc(48)
	nodes.Free(a)
	fmt.Println(nodes.Malloc(48) == a) // the block that was freed last
	nodes.Free(a)
	nodes.Free(b)
	fmt.Println(nodes.Destroy())
	// Output:
	// true
	// <nil>
}

func ExampleNewFallback() {
	small := cheap.NewFixedBlock(cheap.Default(), cheap.FixedBlockOptions{BlockSize: 64})
	a := cheap.NewFallback(small, cheap.Default())
	p, q := a.Malloc(50), a.Malloc(5000)
	fmt.Println(small.Contains(p), small.Contains(q))
	a.Free(p)
	a.Free(q)
	// Output: true false
}

func ExampleArena_Mark() {
	a := cheap.NewArena(cheap.Default(), 0)
	defer a.Destroy()
	table := cheap.CString(a, "lives as long as the arena")
	for _, word := range []string{"one", "two"} {
		scope := a.Mark()
		fmt.Println(cheap.GoString(cheap.CString(a, word))) // lives until Release
		a.Release(scope)
	}
	fmt.Println(cheap.GoString(table))
	// Output:
	// one
	// two
	// lives as long as the arena
}

func ExampleGetArena() {
	call := func(words []string) string { // a C function that takes a char **
		a := cheap.GetArena()
		defer a.Put()
		argv := cheap.CStrings(a, words)
		return cheap.GoString(*(*unsafe.Pointer)(argv))
	}
	fmt.Println(call([]string{"hello", "world"}))
	// Output: hello
}

func ExampleCStrings() {
	heap := cheap.Default()
	argv := cheap.CStrings(heap, []string{"ls", "-l"})
	defer heap.Free(argv)
	for _, arg := range unsafe.Slice((*unsafe.Pointer)(argv), 2) { // C reads up to the NULL
		fmt.Println(cheap.GoString(arg))
	}
	// Output:
	// ls
	// -l
}

func ExampleAppend() {
	heap := cheap.Default()
	primes := cheap.MakeSlice[int32](heap, 0, 2)
	for _, p := range []int32{2, 3, 5, 7} {
		var err error
		if primes, err = cheap.Append(heap, primes, p); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(primes)
	cheap.FreeSlice(heap, primes)
	// Output: [2 3 5 7]
}

// An index without pointers: the garbage collector does not scan the map.
func ExamplePointer() {
	heap := cheap.Default()
	index := map[string]uintptr{"greeting": uintptr(cheap.CString(heap, "hello"))}

	p := cheap.Pointer(index["greeting"])
	fmt.Println(cheap.GoString(p))
	heap.Free(p)
	// Output: hello
}
