//go:build cgo

package libc_test

import (
	"fmt"
	"log"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
)

// An array of four numbers, which C code could free.
func Example() {
	var a libc.Allocator
	p := a.Calloc(4, 2)
	if p == nil {
		log.Fatal("no memory")
	}
	defer a.Free(p)
	fmt.Println(unsafe.Slice((*uint16)(p), 4))
	// Output: [0 0 0 0]
}

// Functions that take an allocator work with that of C as well. Here they make a
// char * that C code may pass to free.
func ExampleAllocator() {
	var a libc.Allocator
	name := cheap.CString(a, "a string for C")
	if name == nil {
		log.Fatal("no memory")
	}
	fmt.Println(cheap.GoString(name))
	a.Free(name)
	// Output: a string for C
}
