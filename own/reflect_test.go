package own

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// count reads all that can be reached from v, as printers do, and returns the
// number of values.
func count(v reflect.Value, seen map[unsafe.Pointer]bool) (n int) {
	n = 1
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return n
		}
		if v.Kind() == reflect.Pointer {
			if seen[v.UnsafePointer()] {
				return n
			}
			seen[v.UnsafePointer()] = true
		}
		n += count(v.Elem(), seen)
	case reflect.Struct:
		for i := range v.NumField() {
			n += count(v.Field(i), seen)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			n += count(v.Index(i), seen)
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			n += count(i.Key(), seen) + count(i.Value(), seen)
		}
	case reflect.Int32, reflect.Int64, reflect.Int:
		_ = v.Int()
	case reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		_ = v.Uint()
	case reflect.Bool:
		_ = v.Bool()
	}
	return n
}

// TestPrintersFollowNothing reads everything that reflection finds behind a handle
// while other goroutines close its batch-mates. The race detector sees whether a
// state is among it.
func TestPrintersFollowNothing(t *testing.T) {
	w := newWorld(t, 600)
	p := w.pool(Options{})
	m := NewMemory(nil, MemoryOptions{})
	var values []any
	for range 100 {
		x, err := NewMem[[2]int](m)
		testcall.Must(t, err)
		b, err := m.NewBytes(16)
		testcall.Must(t, err)
		g, err := m.NewGroup()
		testcall.Must(t, err)
		g.Malloc(2000)
		values = append(values, w.own(t, p, 100), x, b, g)
		mate, err := m.NewBytes(16)
		testcall.Must(t, err)
		owner := w.own(t, p, 100)
		done := make(chan struct{})
		go func() {
			defer close(done)
			owner.Close()
			mate.Close()
		}()
		for _, v := range values[len(values)-4:] {
			if n := count(reflect.ValueOf(v), map[unsafe.Pointer]bool{}); n >= 30 { // a thing and its cell have 22
				t.Fatalf("%d values reached from a %T", n, v)
			}
			if text := fmt.Sprintf("%+v", v); len(text) > 300 {
				t.Fatalf("%%+v of a %T: %s", v, text)
			}
		}
		<-done
	}
	runtime.KeepAlive(values)
	m.CloseWait(patient(t)) // the error counts those that were never closed
}

// TestEqualOwners compares as == and reflect.DeepEqual do: copies are equal, owners
// of different resources are not.
func TestEqualOwners(t *testing.T) {
	w := newWorld(t, 3)
	p := w.pool(Options{})
	a, b := w.own(t, p, 100), w.own(t, p, 100)
	same := a.object
	if same != a.object || !reflect.DeepEqual(&same, &a.object) {
		t.Error("a copy differs")
	}
	if a.object == b.object || reflect.DeepEqual(&a.object, &b.object) {
		t.Error("owners of two resources are equal")
	}
	runtime.KeepAlive(b)
}

// TestNoConversion has types with another underlying type each: a converted owner would read another type's resource.
func TestNoConversion(t *testing.T) {
	all := []reflect.Type{
		reflect.TypeFor[Handle[*int32]](), reflect.TypeFor[Handle[*int64]](), reflect.TypeFor[Number[int32]](),
		reflect.TypeFor[Number[int64]](), reflect.TypeFor[Mem[int32]](), reflect.TypeFor[Mem[int64]](), reflect.TypeFor[Bytes](), reflect.TypeFor[owner](),
	}
	for i, from := range all {
		for k, to := range all {
			if i != k && from.ConvertibleTo(to) {
				t.Errorf("a %v can be converted to a %v", from, to)
			}
		}
	}
}
