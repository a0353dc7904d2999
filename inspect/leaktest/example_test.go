package leaktest_test

import (
	"fmt"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect/leaktest"
)

// A test passes the allocator to the code that it tests, and ends with
// a.AssertSize(t, 0).
func ExampleNewAllocator() {
	a := leaktest.NewAllocator(cheap.Default())
	name := cheap.CString(a, "origin")
	fmt.Println(a.Size())
	a.Free(name)
	fmt.Println(a.Size())
	// Output:
	// 7
	// 0
}
