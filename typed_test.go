package cheap

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

type point struct {
	X, Y float64
	ID   uint32
}

func TestNewIsZeroAndAligned(t *testing.T) {
	a := newFake(t)
	p := New[point](a)
	if *p != (point{}) {
		t.Fatalf("New[point] = %+v", *p)
	}
	p.ID = 7
	a.Free(unsafe.Pointer(p))

	e, f := New[struct{}](a), New[struct{}](a)
	if e == nil || unsafe.Pointer(e) == unsafe.Pointer(f) {
		t.Fatalf("values of size 0 at %p and %p", e, f)
	}

	a.fail = true
	if p := New[point](a); p != nil {
		t.Fatalf("New without memory = %p", p)
	}
}

func TestMakeSlice(t *testing.T) {
	a := newFake(t)
	for _, c := range []struct{ len, cap int }{{0, 0}, {0, 3}, {3, 3}, {5, 9}, {1, 4000}} {
		s := MakeSlice[point](a, c.len, c.cap)
		if s == nil || len(s) != c.len || cap(s) != c.cap {
			t.Fatalf("MakeSlice(%d, %d): len %d, cap %d, nil %t", c.len, c.cap, len(s), cap(s), s == nil)
		}
		for i, e := range s[:cap(s)] {
			if e != (point{}) {
				t.Fatalf("element %d of %d is %+v", i, c.cap, e)
			}
		}
		FreeSlice(a, s)
	}
	if s := MakeSlice[struct{}](a, math.MaxInt, math.MaxInt); len(s) != math.MaxInt {
		t.Fatalf("slice of elements of size 0: len %d", len(s))
	} else {
		FreeSlice(a, s)
	}
	FreeSlice[int](a, nil)
	if a.live() != 0 || a.mallocs != a.frees {
		t.Fatalf("%d mallocs, %d frees", a.mallocs, a.frees)
	}
}

func TestMakeSliceTooLarge(t *testing.T) {
	a := newFake(t)
	for _, n := range []int{math.MaxInt, math.MaxInt/8 + 1, math.MaxInt / 4} {
		if s := MakeSlice[int64](a, n, n); s != nil {
			t.Errorf("MakeSlice of %d has %d elements", n, len(s))
		}
	}
	a.fail = true
	if s := MakeSlice[int64](a, 1, 1); s != nil {
		t.Errorf("MakeSlice without memory has %d elements", len(s))
	}
	wantMisuse(t, "MakeSlice", func() { MakeSlice[int](a, -1, 4) }, "length -1")
	wantMisuse(t, "MakeSlice", func() { MakeSlice[int](a, 4, 3) }, "capacity 3")
	wantMisuse(t, "MakeSlice", func() { MakeSlice[int](a, -2, -1) })
}

// calloced is an allocator that knows zero memory.
type calloced struct {
	*fakeAlloc
	callocs int
}

func (a *calloced) Calloc(count, size int) unsafe.Pointer {
	a.callocs++
	p := a.Malloc(count * size)
	clear(unsafe.Slice((*byte)(p), count*size))
	return p
}

func TestMakeSliceAsksForZeroMemory(t *testing.T) {
	a := &calloced{fakeAlloc: newFake(t)}
	FreeSlice(a, MakeSlice[byte](a, 100, 100))
	if a.callocs != 0 {
		t.Error("asked for 100 zero bytes")
	}
	FreeSlice(a, MakeSlice[byte](a, 1<<20, 1<<20))
	if a.callocs != 1 {
		t.Error("did not ask for 1 MiB of zero bytes")
	}
}

func TestAppend(t *testing.T) {
	a := newFake(t)
	var s []int32
	var want []int32
	for i := range int32(1000) {
		var err error
		if s, err = Append(a, s, i, -i); err != nil {
			t.Fatal(err)
		}
		want = append(want, i, -i)
		if !slices.Equal(s, want) {
			t.Fatalf("after %d: %v", i, s)
		}
		for j, e := range s[len(s):cap(s)] {
			if e != 0 {
				t.Fatalf("spare element %d is %#x", j, e)
			}
		}
	}
	if a.mallocs > 25 {
		t.Errorf("%d blocks for 1000 Appends", a.mallocs)
	}

	// Elements that lie in the old block.
	s = s[:cap(s)]
	n := len(s)
	s, err := Append(a, s, s[:3]...)
	if err != nil || !slices.Equal(s[n:], []int32{0, 0, 1}) {
		t.Fatalf("%v, %v", s[n:], err)
	}

	a.fail = true
	was := s[:cap(s)]
	got, err := Append(a, was, 1)
	if !errors.Is(err, ErrNoMemory) || unsafe.SliceData(got) != unsafe.SliceData(was) || len(got) != len(was) {
		t.Fatalf("without memory: %d elements, %v", len(got), err)
	}
	a.fail = false
	FreeSlice(a, got)
	if a.live() != 0 {
		t.Fatalf("%d bytes live", a.live())
	}
}

// TestAppendToGoSlice appends to a slice that is not from the allocator, and has no
// room. Nothing is left of the attempt.
func TestAppendToGoSlice(t *testing.T) {
	h := newHeap(t, HeapOptions{})
	for _, s := range [][]int{{1}, {}} {
		v := testcall.Catch(func() { _, _ = Append(h, s, 2) })
		e, ok := v.(*MisuseError)
		// Go may have its memory where a heap had a block before.
		if !ok || !strings.Contains(e.Reason, "not from a heap") && !strings.Contains(e.Reason, "given back") {
			t.Errorf("Append to a Go slice of %d elements: %v", len(s), v)
		}
	}
	if n := h.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

func TestAppendNothing(t *testing.T) {
	a := newFake(t)
	s, err := Append[int](a, nil)
	if err != nil || s == nil || len(s) != 0 {
		t.Fatalf("%v, %v", s, err)
	}
	FreeSlice(a, s)

	big := unsafe.Slice(&struct{}{}, math.MaxInt)
	if _, err := Append(a, big, struct{}{}); !errors.Is(err, ErrNoMemory) {
		t.Fatalf("more elements than an int counts: %v", err)
	}
}

func TestTypedMakesNoGoAllocation(t *testing.T) {
	testenv.Skip(t, "asan", "a conversion to unsafe.Pointer makes its variable escape, and each Go object has a red zone")
	a := &oneBlock{}
	a.p = unsafe.Pointer(&a.mem)
	for name, f := range map[string]func(){
		"New":       func() { a.Free(unsafe.Pointer(New[point](a))) },
		"MakeSlice": func() { FreeSlice(a, MakeSlice[point](a, 1, 2)) },
		"Append": func() {
			s, _ := Append(a, MakeSlice[int](a, 0, 4), 1, 2, 3)
			FreeSlice(a, s)
		},
		"CString": func() { a.Free(CString(a, "hello")) },
		"CBytes":  func() { a.Free(CBytes(a, []byte("hello"))) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v Go allocations", name, n)
		}
	}
}

// oneBlock hands the same memory out again and again: an allocator that costs
// nothing, for counting and measuring the code above an allocator.
type oneBlock struct {
	p   unsafe.Pointer
	mem [64]byte
}

func (a *oneBlock) Malloc(size int) unsafe.Pointer { return a.p }
func (a *oneBlock) Free(ptr unsafe.Pointer)        {}

func BenchmarkNew(b *testing.B) {
	one := &oneBlock{}
	one.p = unsafe.Pointer(&one.mem)
	al := []Allocator{one, newFake(b)}[0] // so that the compiler does not see which
	b.Run("typed=false", func(b *testing.B) {
		for b.Loop() {
			p := (*point)(al.Malloc(int(unsafe.Sizeof(point{}))))
			clear(unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)))
		}
	})
	b.Run("typed=true", func(b *testing.B) {
		for b.Loop() {
			New[point](al)
		}
	})
}
