// Package pointerfree tells types whose values may lie outside the Go heap from
// those that may not, because they contain Go pointers.
package pointerfree

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// checked remembers types that passed Check, by the address of their type
// descriptor. Types that share a slot push each other out; passed has them all.
//
// Descriptors of the types that a generic function is instantiated with are
// part of the program and never move, so their addresses may be kept as
// numbers.
//
// Any goroutine may read and write any slot at any time.
var (
	checked [512]atomic.Uintptr
	passed  sync.Map // of uintptr to nothing
)

// Known reports whether the T of a nil *T has passed Check. It is what the check
// costs from the second time on: a load and a compare, inlined. If it returns
// false, Check is to be asked.
func Known(ptr any) bool {
	t := typeAddr(&ptr)
	return checkedSlot(t).Load() == t
}

// typeAddr returns the address of the descriptor of the type of *v: a number
// that is the same for the same type, and for no other.
func typeAddr(v *any) uintptr {
	// An interface begins with that address; package reflect reads it in the
	// same way. Were it otherwise, the tests of this file would see types taken
	// for each other.
	return *(*uintptr)(unsafe.Pointer(v))
}

// checkedSlot spreads descriptors, which lie next to each other, over the slots.
func checkedSlot(t uintptr) *atomic.Uintptr {
	return &checked[t>>5%uintptr(len(checked))]
}

// Check takes a nil *T and returns what forbids a T in a block, as the reason of
// a panic: that it may contain Go pointers, or wants to be aligned to more than
// 16. It returns the empty string if nothing does.
func Check(ptr any) (reason string) {
	t := typeAddr(&ptr)
	if _, ok := passed.Load(t); !ok {
		typ := reflect.TypeOf(ptr).Elem()
		if path, kind, found := findGoPointer(typ); found {
			return fmt.Sprintf("%s is a %s: off-heap memory must not hold Go pointers, the garbage collector does not look there; keep it in Go and store an index, or use uintptr for a C address",
				typ.String()+path, kind)
		}
		// No allocator promises more unless it is asked for more.
		if typ.Align() > 16 {
			return fmt.Sprintf("%s wants an alignment of %d, and blocks are aligned to 16; use AlignedMalloc", typ, typ.Align())
		}
		passed.Store(t, nil)
	}
	checkedSlot(t).Store(t)
	return ""
}

// findGoPointer looks for the first part of typ that may be a Go pointer. It
// returns the way there, such as ".Inner.Names[0]", and what it found.
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
			return "", "", false // nothing is in it
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

// isCgoType reports whether cgo made typ of a C type. It names them so, and its
// rules forbid Go pointers in what C reads, whatever the fields of the type are.
func isCgoType(typ reflect.Type) bool {
	return strings.HasPrefix(typ.Name(), "_Ctype_")
}
