//go:build cgo

package libc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/internal/ctest"
)

func TestReleaseAll(t *testing.T) {
	context := uintptr(ctest.Context)
	alone := libc.Destructor(ctest.Destroy)
	with := libc.DestructorWith(ctest.DestroyWith, ctest.Context)
	pairs := libc.ContextDestructor(ctest.DestroyWith)
	goAlone := libc.Destructor(ctest.DestroyIntoGo)
	goWith := libc.DestructorWith(ctest.DestroyWithIntoGo, ctest.Context)
	goPairs := libc.ContextDestructor(ctest.DestroyWithIntoGo)
	for _, c := range []struct {
		name      string
		quiet     *libc.Releaser // may be called with and without noCallback
		loud      *libc.Releaser // calls back into Go
		words     int
		resources []uintptr
		want      []ctest.Call
	}{
		{"none", alone, goAlone, 1, nil, nil},
		{"one", alone, goAlone, 1, []uintptr{5}, []ctest.Call{{0, 5}}},
		{"some, zero among them", alone, goAlone, 1, []uintptr{5, 0, ^uintptr(0)}, []ctest.Call{{0, 5}, {0, 0}, {0, ^uintptr(0)}}},
		{"none with a context", with, goWith, 1, []uintptr{}, nil},
		{"some with a context", with, goWith, 1, []uintptr{5, 6, 7}, []ctest.Call{{context, 5}, {context, 6}, {context, 7}}},
		{"no pairs", pairs, goPairs, 2, nil, nil},
		{"pairs", pairs, goPairs, 2, []uintptr{5, 50, 6, 0}, []ctest.Call{{50, 5}, {0, 6}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := slices.Clone(c.resources)
			for _, noCallback := range []bool{false, true} {
				c.quiet.ReleaseAll(given, c.words, noCallback)
				if got := ctest.Calls(); !slices.Equal(got, c.want) {
					t.Errorf("noCallback %v: the C function was called with %v, want %v", noCallback, got, c.want)
				}
			}
			var got []ctest.Call
			ctest.OnDestroy = func(context, resource uintptr) { got = append(got, ctest.Call{context, resource}) }
			c.loud.ReleaseAll(given, c.words, false)
			if !slices.Equal(got, c.want) {
				t.Errorf("the Go function was called with %v, want %v", got, c.want)
			}
			if !slices.Equal(given, c.resources) {
				t.Errorf("the slice became %v", given)
			}
		})
	}
}

// TestReleaseAllFrees destroys blocks of C with C's own function, from many
// goroutines.
func TestReleaseAllFrees(t *testing.T) {
	free := libc.Destructor(ctest.Free)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			var a libc.Allocator
			for range 20 {
				var blocks []uintptr
				for i := range 100 {
					p := a.Malloc(i)
					fill(p, i, 0xA5)
					blocks = append(blocks, uintptr(p))
				}
				free.ReleaseAll(blocks, 1, g%2 == 0)
			}
		})
	}
	all.Wait()
}

// TestReleaseAllWhileTheStackMoves releases an array of a goroutine's first
// stack, while callbacks make that stack grow and move, and other goroutines
// reuse the memory that it leaves.
func TestReleaseAllWhileTheStackMoves(t *testing.T) {
	r := libc.Destructor(ctest.DestroyIntoGo)
	done := make(chan []uintptr)
	go func() {
		var got []uintptr
		ctest.OnDestroy = func(_, resource uintptr) {
			deep(len(got) * 100)
			var others sync.WaitGroup
			for range 20 {
				others.Go(func() { deep(200) })
			}
			others.Wait()
			got = append(got, resource)
		}
		array := [...]uintptr{1, 2, 3, 4, 5, 6, 7, 8}
		r.ReleaseAll(array[:], 1, false)
		done <- got
	}()
	if got := <-done; !slices.Equal(got, []uintptr{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("destroyed %v", got)
	}
}

//go:noinline
func deep(n int) int {
	if n == 0 {
		return 0
	}
	var frame [64]byte
	for i := range frame {
		frame[i] = byte(n)
	}
	return deep(n-1) + int(frame[n%64])
}

// TestPanicOfADestructor wants the panic of a callback to reach the caller of
// ReleaseAll.
func TestPanicOfADestructor(t *testing.T) {
	var got []uintptr
	ctest.OnDestroy = func(_, resource uintptr) {
		got = append(got, resource)
		if resource == 2 {
			panic("two")
		}
	}
	func() {
		defer func() {
			if v := recover(); v != "two" {
				t.Errorf("the panic came as %v", v)
			}
		}()
		libc.Destructor(ctest.DestroyIntoGo).ReleaseAll([]uintptr{1, 2, 3}, 1, false)
	}()
	if !slices.Equal(got, []uintptr{1, 2}) {
		t.Errorf("destroyed %v", got)
	}
}

func TestMisuseOfBatches(t *testing.T) {
	alone, pairs := libc.Destructor(ctest.Destroy), libc.ContextDestructor(ctest.DestroyWith)
	with := libc.DestructorWith(ctest.DestroyWith, nil)
	for _, c := range []struct {
		op, fix string
		f       func()
	}{
		{"Destructor", "unsafe.Pointer(C.free)", func() { libc.Destructor(nil) }},
		{"DestructorWith", "unsafe.Pointer(C.free)", func() { libc.DestructorWith(nil, ctest.Context) }},
		{"ContextDestructor", "unsafe.Pointer(C.free)", func() { libc.ContextDestructor(nil) }},
		{"Constructor", "the address of one", func() { libc.Constructor(nil, nil) }},
		{"Releaser.ReleaseAll", "make one with Destructor", func() { new(libc.Releaser).ReleaseAll(nil, 1, false) }},
		{"Releaser.ReleaseAll", "nil or the zero value", func() { new(libc.Releaser).ReleaseAll([]uintptr{1}, 0, false) }},
		{"Releaser.ReleaseAll", "nil or the zero value", func() { (*libc.Releaser)(nil).ReleaseAll([]uintptr{1}, 1, true) }},
		{"Releaser.ReleaseAll", "for resources with a context each use ContextDestructor", func() { alone.ReleaseAll([]uintptr{1, 2}, 2, false) }},
		{"Releaser.ReleaseAll", "use ContextDestructor", func() { with.ReleaseAll([]uintptr{1, 2}, 2, true) }},
		{"Releaser.ReleaseAll", "have 0 words", func() { alone.ReleaseAll(nil, 0, true) }},
		{"Releaser.ReleaseAll", "use Destructor or DestructorWith", func() { pairs.ReleaseAll([]uintptr{1, 2}, 1, false) }},
		{"Releaser.ReleaseAll", "3 words are no pairs", func() { pairs.ReleaseAll([]uintptr{1, 2, 3}, 2, false) }},
	} {
		t.Run(c.op+" "+c.fix, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				var m *cheap.MisuseError
				if !errors.As(err, &m) || m.Op != "libc."+c.op || !strings.Contains(m.Error(), c.fix) {
					t.Errorf("panic value %v", err)
				}
				if calls := ctest.Calls(); len(calls) > 0 {
					t.Errorf("the C function was called with %v", calls)
				}
			}()
			c.f()
		})
	}
}

// A destructor is the interface of package own, copied.
type destructor interface {
	ReleaseAll(resources []uintptr, words int, noCallback bool)
}

func TestBatchesAllocateNothing(t *testing.T) {
	resources := make([]uintptr, 64)
	for i := range resources {
		resources[i] = uintptr(i)
	}
	for name, c := range map[string]struct {
		r     destructor
		words int
	}{
		"alone":        {libc.Destructor(ctest.Destroy), 1},
		"with context": {libc.DestructorWith(ctest.DestroyWith, ctest.Context), 1},
		"pairs":        {libc.ContextDestructor(ctest.DestroyWith), 2},
	} {
		for _, noCallback := range []bool{false, true} {
			if n := testing.AllocsPerRun(100, func() { c.r.ReleaseAll(resources, c.words, noCallback) }); n != 0 {
				t.Errorf("%s, noCallback %v: %v Go allocations", name, noCallback, n)
			}
		}
	}
	c := ctest.NewCounter(1 << 20)
	defer c.Close()
	construct := libc.Constructor(ctest.Construct, c.Context())
	if n := testing.AllocsPerRun(100, func() {
		if n, err := construct(resources); n != len(resources) || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("a constructor: %v Go allocations", n)
	}
	ctest.Calls()
}

func BenchmarkReleaseAll(b *testing.B) {
	var r destructor = libc.Destructor(ctest.Free) // of NULL, to measure the call
	for _, n := range []int{1, 256} {
		resources := make([]uintptr, n)
		for _, noCallback := range []bool{true, false} {
			b.Run(fmt.Sprintf("n=%d/nocallback=%v", n, noCallback), func(b *testing.B) {
				for b.Loop() {
					r.ReleaseAll(resources, 1, noCallback)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/resource")
			})
		}
	}
}
