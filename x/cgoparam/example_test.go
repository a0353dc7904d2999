package cgoparam

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// A request is a struct that C reads: a string and an array.
type request struct {
	name  unsafe.Pointer // char *
	sides unsafe.Pointer // int *
	n     int32
}

// The arguments of one call of C: a struct, and the string and the array to which
// it points.
func Example() {
	alloc := GetAlloc()
	defer ReturnAlloc(alloc) // frees them together

	sides := []int32{3, 4, 5}
	r := (*request)(alloc.Malloc(int(unsafe.Sizeof(request{}))))
	r.name = alloc.CString("triangle")
	r.n = int32(len(sides))
	r.sides = alloc.Malloc(len(sides) * int(unsafe.Sizeof(sides[0])))
	copy(unsafe.Slice((*int32)(r.sides), r.n), sides)

	// Here C.describe((*C.request)(unsafe.Pointer(r))) would read them.
	fmt.Println(cheap.GoString(r.name), unsafe.Slice((*int32)(r.sides), r.n))
	// Output: triangle [3 4 5]
}
