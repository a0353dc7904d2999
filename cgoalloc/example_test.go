//go:build cgo

package cgoalloc_test

import (
	"fmt"
	"log"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cgoalloc"
)

// Blocks of up to 64 bytes come from pages, larger ones from C's malloc.
func Example() {
	malloc := &cgoalloc.DefaultAllocator{}
	blocks, err := cgoalloc.CreateFixedBlockAllocator(malloc, 4096, 64, 8)
	if err != nil {
		log.Fatal(err)
	}
	a := cgoalloc.CreateFallbackAllocator(blocks, malloc)
	p := unsafe.Pointer(cgoalloc.CString(a, "hello")) // a char *
	fmt.Println(cheap.GoString(p))
	a.Free(p)
	fmt.Println(a.Destroy())
	// Output:
	// hello
	// <nil>
}
