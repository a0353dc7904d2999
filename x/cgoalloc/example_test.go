//go:build cgo

package cgoalloc

import (
	"fmt"
	"log"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// Blocks of up to 64 bytes come from pages, larger ones from C's malloc.
func Example() {
	malloc := &DefaultAllocator{}
	blocks, err := CreateFixedBlockAllocator(malloc, 4096, 64, 8)
	if err != nil {
		log.Fatal(err)
	}
	a := CreateFallbackAllocator(blocks, malloc)
	p := unsafe.Pointer(CString(a, "hello")) // a char *
	fmt.Println(cheap.GoString(p))
	a.Free(p)
	fmt.Println(a.Destroy())
	// Output:
	// hello
	// <nil>
}
