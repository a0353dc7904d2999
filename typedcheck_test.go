//cheapvet:ignore gopointer each of these types is refused, which is what is tested

package cheap

import (
	"fmt"
	"testing"
	"unsafe"
)

type (
	namedFunc func()
	inner     struct {
		Count int
		Name  string
	}
	outer struct {
		A     int
		Inner inner
	}
	embedding struct{ inner }
	list      struct {
		N    int
		Next *list
	}
	// Types of this name are what cgo makes of C's.
	_Ctype_char     int8
	_Ctype_struct_s struct {
		_ *_Ctype_char
		_ unsafe.Pointer
		_ *[0]byte
		_ *_Ctype_struct_s
		_ [4]unsafe.Pointer
	}
)

func TestTypesWithGoPointersAreRefused(t *testing.T) {
	a := newFake(t)
	refused := []struct {
		f    func()
		says string
	}{
		{func() { New[*int](a) }, "*int is a pointer"},
		{func() { New[**int](a) }, "is a pointer"},
		{func() { New[string](a) }, "string is a string"},
		{func() { New[[]int](a) }, "is a slice"},
		{func() { New[map[int]int](a) }, "is a map"},
		{func() { New[chan int](a) }, "is a chan"},
		{func() { New[any](a) }, "is a interface"},
		{func() { New[error](a) }, "is a interface"},
		{func() { New[namedFunc](a) }, "is a func"},
		{func() { New[unsafe.Pointer](a) }, "is a unsafe.Pointer"},
		{func() { New[outer](a) }, "cheap.outer.Inner.Name is a string"},
		{func() { New[embedding](a) }, "cheap.embedding.inner.Name is a string"},
		{func() { New[[3]outer](a) }, "[3]cheap.outer[0].Inner.Name is a string"},
		{func() { New[list](a) }, "cheap.list.Next is a pointer (*cheap.list)"},
		{func() {
			New[struct {
				P [2][2]*_Ctype_char
				Q [1]any
			}](a)
		}, ".Q[0] is a interface"},
		{func() { MakeSlice[outer](a, 0, 0) }, "cheap.outer.Inner.Name is a string"},
		{func() { Append(a, nil, outer{}) }, "cheap.outer.Inner.Name is a string"},
	}
	for i, c := range refused {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			op := []string{"New", "MakeSlice", "Append"}[max(0, i-len(refused)+3)]
			for range 2 { // the second time as the first
				wantMisuse(t, op, c.f, c.says)
			}
		})
	}
	if a.mallocs != 0 {
		t.Errorf("%d blocks allocated for refused types", a.mallocs)
	}
}

func TestPointerFreeTypesAreAccepted(t *testing.T) {
	a := newFake(t)
	New[int](a)
	New[bool](a)
	New[uintptr](a)
	New[complex128](a)
	New[[100]float32](a)
	New[[0]string](a)
	New[struct {
		A [3]struct{ B uint8 }
		_ [0]func()
	}](a)
	New[_Ctype_char](a)
	New[*_Ctype_char](a)
	New[**_Ctype_char](a)
	New[_Ctype_struct_s](a)
	New[struct{ S *_Ctype_struct_s }](a)
}

// TestCheckTellsTypesApart: types of one shape share their generated code and
// must not share their answer.
func TestCheckTellsTypesApart(t *testing.T) {
	type (
		a *int
		b *_Ctype_char
	)
	f := newFake(t)
	for range 3 {
		New[b](f)
		wantMisuse(t, "New", func() { New[a](f) })
	}
}
