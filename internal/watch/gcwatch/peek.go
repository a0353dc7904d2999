package gcwatch

import (
	"reflect"
	"runtime"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/cheapgo/cheap/internal/mem/race"
)

// peeking says whether the walk reads handles. It is false if weak pointers of this version of Go
// have another form: known examines one when the program starts, and begin examines those of
// probes that must be dead.
var peeking atomic.Bool

func init() { peeking.Store(known()) }

// known reports whether a weak pointer is one pointer, to a word that has the address
// of the object.
func known() bool {
	if t := reflect.TypeFor[weak.Pointer[byte]](); t.Size() != unsafe.Sizeof(uintptr(0)) ||
		t.Kind() != reflect.Struct || t.NumField() != 2 || t.Field(1).Type.Kind() != reflect.UnsafePointer {
		return false
	}
	s := new(probe)
	p := weak.Make(&s[0])
	known := handle(&p) != nil && *handle(&p) == uintptr(unsafe.Pointer(s))
	runtime.KeepAlive(s)
	return known
}

// handle returns the address of the handle of a weak pointer, if peeking is true.
func handle(p *weak.Pointer[byte]) *uintptr { return *(**uintptr)(unsafe.Pointer(p)) }

// isZero reports whether the handle of a weak pointer is 0. The sweeper may write to
// it meanwhile. The weak pointer keeps the handle.
func isZero(p weak.Pointer[byte]) bool { return atomic.LoadUintptr(handle(&p)) == 0 }

// Gone reports whether the object of a weak pointer was found unreachable and swept. Unlike
// [weak.Pointer.Value] it does not keep the object for one more collection, as long as
// weak pointers have the form that is known.
func Gone[T any](p weak.Pointer[T]) bool {
	// All weak pointers have the same form.
	if peeking.Load() && p != (weak.Pointer[T]{}) && !isZero(*(*weak.Pointer[byte])(unsafe.Pointer(&p))) {
		return false
	}
	return p.Value() == nil
}

// ordered reports whether, for the race detector, all that happened to the objects that a walk has
// found dead happens before the calls that follow. Without the detector it is true.
//
// The runtime orders all that the program did so far before the cleanups and finalizers that it
// calls. A walk that takes long may find an object that was used after that, and died in a later
// collection. So a walk stops if more collections have ended than the one that began it, and a
// later walk goes on. If neither cleanups nor finalizers run any more, that does not help. So
// one walk in mostStops goes on.
func ordered(since uint64) bool {
	if !race.Build || orderedCycles() <= since+1 {
		stops.Store(0)
		return true
	}
	return stops.Add(1)%mostStops == 0
}

var stops atomic.Uint32

const mostStops = 4

// orderedCycles returns the number of collections that have ended, for ordered.
func orderedCycles() uint64 {
	if !race.Build {
		return 0
	}
	return Cycles()
}
