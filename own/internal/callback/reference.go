package callback

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"
)

// A reference is a weak pointer that is loaded and stored atomically.
type reference struct{ w weak.Pointer[Cell] }

// onePointer says whether a weak pointer is one pointer, as in the versions of Go that are
// known. Package atomic can load and store it then.
var onePointer = func() bool {
	t := reflect.TypeFor[weak.Pointer[Cell]]()
	return t.Size() == unsafe.Sizeof(uintptr(0)) && t.Kind() == reflect.Struct && t.NumField() == 2 &&
		t.Field(0).Type.Size() == 0 && t.Field(1).Type.Kind() == reflect.UnsafePointer
}()

// others is held for a load or store where a weak pointer is something else.
var others sync.RWMutex

func (r *reference) load() weak.Pointer[Cell] {
	if !onePointer {
		others.RLock()
		defer others.RUnlock()
		return r.w
	}
	// The field is one pointer, at the address of the struct: onePointer has looked.
	p := atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&r.w)))
	return *(*weak.Pointer[Cell])(unsafe.Pointer(&p))
}

func (r *reference) store(w weak.Pointer[Cell]) {
	if !onePointer {
		others.Lock()
		defer others.Unlock()
		r.w = w
		return
	}
	// As in load. The collector sees a pointer that is stored.
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&r.w)), *(*unsafe.Pointer)(unsafe.Pointer(&w)))
}
