// Package pointerfree reports whether values of a type may be stored outside the Go
// heap. They may not if they contain Go pointers, because the collector does not see
// these there.
package pointerfree

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// checked has types that passed Check, by the addresses of their type descriptors. A
// slot has the last type that came to it; passed has all types.
//
// The descriptors of types with which a generic function is instantiated are part of
// the program and never move. So their addresses may be kept as numbers.
//
// Any goroutine may read and write any slot at any time.
var (
	checked [512]atomic.Uintptr
	passed  sync.Map // its keys are uintptrs, its values nil
)

// Known takes a nil *T and reports whether T has passed Check. If it returns false, the
// caller calls Check. It is inlined: from the second time on the check of a type costs
// a load and a compare.
func Known(ptr any) bool {
	t := typeAddr(&ptr)
	return checkedSlot(t).Load() == t
}

// typeAddr returns the address of the descriptor of the type of *v. Each type has
// another one.
func typeAddr(v *any) uintptr {
	// An interface begins with that address. Package reflect reads it in the same
	// way. If that changes, the tests of this package fail, because types are
	// mistaken for each other.
	return *(*uintptr)(unsafe.Pointer(v))
}

// checkedSlot returns the slot for a descriptor. Descriptors are next to each other, at
// least 32 bytes apart, so neighbours get different slots.
func checkedSlot(t uintptr) *atomic.Uintptr {
	return &checked[t>>5%uintptr(len(checked))]
}

// Check takes a nil *T and returns why a T must not be in a block, as the reason of a
// panic: T may contain Go pointers, or has to be aligned to more than 16 bytes. It
// returns the empty string if T may be in a block.
func Check(ptr any) (reason string) {
	t := typeAddr(&ptr)
	if _, ok := passed.Load(t); !ok {
		typ := reflect.TypeOf(ptr).Elem()
		if path, kind, found := findGoPointer(typ); found {
			return fmt.Sprintf("%s is a %s: off-heap memory must not hold Go pointers, the garbage collector does not look there; keep it in Go and store an index, or use uintptr for a C address",
				typ.String()+path, kind)
		}
		// No allocator promises more, unless it is asked for more.
		if typ.Align() > 16 {
			return fmt.Sprintf("%s wants an alignment of %d, and blocks are aligned to 16; use AlignedMalloc", typ, typ.Align())
		}
		passed.Store(t, nil)
	}
	checkedSlot(t).Store(t)
	return ""
}

// findGoPointer looks for the first part of typ that may be a Go pointer. It returns
// the path to it, such as ".Inner.Names[0]", and its kind.
func findGoPointer(typ reflect.Type) (path, kind string, found bool) {
	if isCgoType(typ) {
		return "", "", false
	}
	switch typ.Kind() {
	case reflect.Struct:
		for f := range typ.Fields() {
			if rest, kind, found := findGoPointer(f.Type); found {
				return "." + f.Name + rest, kind, true
			}
		}
		return "", "", false
	case reflect.Array:
		if typ.Len() == 0 {
			return "", "", false // it has no elements
		}
		rest, kind, found := findGoPointer(typ.Elem())
		return "[0]" + rest, kind, found
	case reflect.Pointer:
		elem := typ.Elem()
		for elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if isCgoType(elem) {
			return "", "", false // a C pointer, as *C.char is
		}
		return "", "pointer (" + typ.String() + ")", true
	case reflect.UnsafePointer:
		return "", "unsafe.Pointer", true
	case reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface:
		return "", kindName(typ), true
	case reflect.String:
		return "", "string", true
	}
	return "", "", false
}

// kindName is "map (map[int]bool)", or "map (pkg.Set)".
func kindName(typ reflect.Type) string {
	return typ.Kind().String() + " (" + typ.String() + ")"
}

// isCgoType reports whether cgo made typ of a C type, which shows in the name. Such a
// type may have fields that look like Go pointers, but the rules of cgo forbid Go
// pointers in memory that C reads.
func isCgoType(typ reflect.Type) bool {
	return strings.HasPrefix(typ.Name(), "_Ctype_")
}
