//go:build cgo && unix

package peers

/*
#cgo noescape cheap_replay
#cgo nocallback cheap_replay
#cgo linux LDFLAGS: -ldl

#include "native.h"
*/
import "C"

import (
	"strings"
	"unsafe"

	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/libc"
)

var nativeInfo = Info{
	Name:  "native",
	About: "the malloc of the C library, called from a C loop: what a program in C pays",
	Open:  func(int) (Peer, error) { return native{}, nil },
}

// native replays in C, with one cgo call for all operations.
type native struct{}

// C reads the array of trace.Op as one of struct cheap_op.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(trace.Op{})-unsafe.Sizeof(C.struct_cheap_op{})]
	_ = [1]struct{}{}[unsafe.Offsetof(trace.Op{}.Size)-unsafe.Offsetof(C.struct_cheap_op{}.size)]
	_ = [1]struct{}{}[unsafe.Offsetof(trace.Op{}.Slot)-unsafe.Offsetof(C.struct_cheap_op{}.slot)]
	_ = [1]struct{}{}[unsafe.Offsetof(trace.Op{}.Kind)-unsafe.Offsetof(C.struct_cheap_op{}.kind)]
	_ = [1]struct{}{}[unsafe.Offsetof(trace.Op{}.AlignLog)-unsafe.Offsetof(C.struct_cheap_op{}.align_log)]
	_ = [1]struct{}{}[unsafe.Offsetof(trace.Op{}.Touch)-unsafe.Offsetof(C.struct_cheap_op{}.touch)]
)

func (native) Replay(ops []trace.Op, slots Slots) *trace.Op {
	// Neither array holds a Go pointer, so C may have both for the call.
	done := int(C.cheap_replay(
		(*C.struct_cheap_op)(unsafe.Pointer(unsafe.SliceData(ops))), C.size_t(len(ops)),
		(*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(slots)))))
	if done < len(ops) {
		return &ops[done]
	}
	return nil
}

// Trim has glibc give free memory back. Other mallocs do so by themselves, and asking them takes
// memory of its own the first time, which would count.
func (native) Trim() error {
	if strings.HasPrefix(CMalloc(), "glibc ") {
		libc.Trim()
	}
	return nil
}

func (native) Close() error { return nil }

// CMalloc says which malloc this process is linked with: a C library and its version,
// or the library that was preloaded instead.
func CMalloc() string { return C.GoString(C.cheap_malloc_name()) }

// MallocFile returns the path of the file that has the malloc which C calls in this
// process, as the dynamic linker knows it.
func MallocFile() string { return C.GoString(C.cheap_malloc_file()) }
