//go:build cgo

package libc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/internal/ctest"
)

// A release is what Options.Release of package own is.
type release = func(state any, resources []uintptr) error

func TestDestructors(t *testing.T) {
	context := uintptr(ctest.Context)
	ok := func(int) error { t.Error("a status of 0 was checked"); return nil }
	both := func(f func(o ...libc.Option) release) []release { return []release{f(), f(libc.NoCallback)} }
	alone := both(func(o ...libc.Option) release { return libc.Destructor(ctest.Destroy, o...) })
	with := both(func(o ...libc.Option) release { return libc.ContextDestructor(ctest.DestroyWith, o...) })
	status := both(func(o ...libc.Option) release { return libc.StatusDestructor(ctest.DestroyStatus, ok, o...) })
	goAlone := libc.Destructor(ctest.DestroyIntoGo)
	goWith := libc.ContextDestructor(ctest.DestroyWithIntoGo)
	for _, c := range []struct {
		name      string
		quiet     []release
		loud      release // calls back into Go
		state     any
		resources []uintptr
		want      []ctest.Call
	}{
		{"none", alone, goAlone, nil, nil, nil},
		{"one", alone, goAlone, nil, []uintptr{5}, []ctest.Call{{0, 5}}},
		{"some, zero among them", alone, goAlone, "any", []uintptr{5, 0, ^uintptr(0)}, []ctest.Call{{0, 5}, {0, 0}, {0, ^uintptr(0)}}},
		{"none with a context", with, goWith, ctest.Context, []uintptr{}, nil},
		{"one with a context", with, goWith, ctest.Context, []uintptr{6}, []ctest.Call{{context, 6}}},
		{"some with a context", with, goWith, ctest.Context, []uintptr{5, 6, 7}, []ctest.Call{{context, 5}, {context, 6}, {context, 7}}},
		{"some with NULL", with, goWith, unsafe.Pointer(nil), []uintptr{5, 6, 7}, []ctest.Call{{0, 5}, {0, 6}, {0, 7}}},
		{"no status", status, nil, nil, nil, nil},
		{"one status", status, nil, nil, []uintptr{5}, []ctest.Call{{0, 5}}},
		{"some statuses", status, nil, nil, []uintptr{5, 6, 7}, []ctest.Call{{0, 5}, {0, 6}, {0, 7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := slices.Clone(c.resources)
			for i, destroy := range c.quiet {
				testcall.Want(t, destroy(c.state, given))
				if got := ctest.Calls(); !slices.Equal(got, c.want) {
					t.Errorf("function %d: the C function was called with %v, want %v", i, got, c.want)
				}
			}
			if c.loud != nil {
				var got []ctest.Call
				ctest.OnDestroy = func(context, resource uintptr) { got = append(got, ctest.Call{context, resource}) }
				if err := c.loud(c.state, given); err != nil || !slices.Equal(got, c.want) {
					t.Errorf("the Go function was called with %v, want %v; %v", got, c.want, err)
				}
			}
			if !slices.Equal(given, c.resources) {
				t.Errorf("the slice became %v", given)
			}
		})
	}
}

// TestStatus destroys resources of which some fail. All are destroyed, and the first
// status that is not 0 becomes the error.
func TestStatus(t *testing.T) {
	for _, options := range [][]libc.Option{nil, {libc.NoCallback}} {
		var statuses []int
		destroy := libc.StatusDestructor(ctest.DestroyStatus, func(status int) error {
			statuses = append(statuses, status)
			return fmt.Errorf("status %d", status)
		}, options...)
		for _, c := range []struct {
			resources []uintptr
			says      string
		}{
			{[]uintptr{1}, ""},
			{[]uintptr{1007}, "status 7"},
			{[]uintptr{1, 2, 1009, 3, 1004}, "status 9"},
			{[]uintptr{999, 1000}, ""},
			{[]uintptr{1 << 20, 1}, "status -1"},
		} {
			err := destroy(nil, c.resources)
			if c.says == "" && err != nil || c.says != "" && (err == nil || err.Error() != c.says) {
				t.Errorf("%d: %v, want %q", c.resources, err, c.says)
			}
			if n := len(ctest.Calls()); n != len(c.resources) {
				t.Errorf("%d: %d are destroyed", c.resources, n)
			}
		}
		if !slices.Equal(statuses, []int{7, 9, -1}) {
			t.Errorf("checked %d", statuses)
		}
	}
}

// TestStatusFailures destroys resources whose functions return what is no failure for some and
// one for others, in calls of one and of many. A success does not hide a failure behind it.
func TestStatusFailures(t *testing.T) {
	failed := func(status int) error { return fmt.Errorf("status %d", status) }
	const zero, seven, nine, negative = 1, 1007, 1009, 1 << 20
	for _, c := range []struct {
		option    libc.Option
		resources []uintptr
		says      string
	}{
		{libc.NegativeFails, []uintptr{seven, nine, negative, zero}, "status -1"},
		{libc.NegativeFails, []uintptr{negative}, "status -1"},
		{libc.NegativeFails, []uintptr{seven, zero, nine}, ""},
		{libc.NegativeFails, []uintptr{zero}, ""},
		{libc.ZeroFails, []uintptr{seven, negative, zero, nine}, "status 0"},
		{libc.ZeroFails, []uintptr{zero}, "status 0"},
		{libc.ZeroFails, []uintptr{seven, negative, nine}, ""},
		{libc.ZeroFails, []uintptr{seven}, ""},
		{libc.ZeroFails, nil, ""},
	} {
		for _, options := range [][]libc.Option{{c.option}, {c.option, libc.NoCallback}, {libc.NoCallback, c.option}} {
			err := libc.StatusDestructor(ctest.DestroyStatus, failed, options...)(nil, c.resources)
			if c.says == "" && err != nil || c.says != "" && (err == nil || err.Error() != c.says) {
				t.Errorf("option %d, %d: %v, want %q", c.option, c.resources, err, c.says)
			}
			if n := len(ctest.Calls()); n != len(c.resources) {
				t.Errorf("%d: %d are destroyed", c.resources, n)
			}
		}
	}
}

// TestOtherResults destroys by functions whose result or parameter is of another type
// than void and void *.
func TestOtherResults(t *testing.T) {
	for i, fn := range ctest.OtherResults {
		destroy := libc.Destructor(fn)
		for _, resources := range [][]uintptr{{5}, {5, 6, 7}} {
			testcall.Want(t, destroy(nil, resources))
			got := ctest.Calls()
			if len(got) != len(resources) || got[0] != (ctest.Call{0, 5}) || got[len(got)-1] != (ctest.Call{0, resources[len(resources)-1]}) {
				t.Errorf("function %d: %v for %v", i, got, resources)
			}
		}
	}
}

// TestDestructorFrees destroys blocks of C with C's own function, from many
// goroutines.
func TestDestructorFrees(t *testing.T) {
	free := []release{libc.Destructor(ctest.Free), libc.Destructor(ctest.Free, libc.NoCallback)}
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
				free[g%2](nil, blocks)
			}
		})
	}
	all.Wait()
}

// TestDestructorWhileTheStackMoves releases an array of a goroutine's first
// stack, while callbacks make that stack grow and move, and other goroutines
// reuse the memory that it leaves.
func TestDestructorWhileTheStackMoves(t *testing.T) {
	destroy := libc.Destructor(ctest.DestroyIntoGo)
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
		destroy(nil, array[:])
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

// TestPanicOfADestructor wants the panic of a callback to reach the caller.
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
		libc.Destructor(ctest.DestroyIntoGo)(nil, []uintptr{1, 2, 3})
	}()
	if !slices.Equal(got, []uintptr{1, 2}) {
		t.Errorf("destroyed %v", got)
	}
}

func TestMisuseOfBatches(t *testing.T) {
	with := libc.ContextDestructor(ctest.DestroyWith)
	fail := func(int) error { return nil }
	for _, c := range []struct {
		op, fix string
		f       func()
	}{
		{"Destructor", "unsafe.Pointer(C.free)", func() { libc.Destructor(nil) }},
		{"Destructor", "pass NoCallback or nothing", func() { libc.Destructor(ctest.Destroy, 7) }},
		{"ContextDestructor", "unsafe.Pointer(C.free)", func() { libc.ContextDestructor(nil) }},
		{"ContextDestructor", "set Options.State", func() { with(nil, []uintptr{1}) }},
		{"ContextDestructor", "is a uintptr", func() { with(uintptr(5), []uintptr{1, 2, 3}) }},
		{"StatusDestructor", "unsafe.Pointer(C.free)", func() { libc.StatusDestructor(nil, fail) }},
		{"StatusDestructor", "check is nil", func() { libc.StatusDestructor(ctest.DestroyStatus, nil) }},
		{"StatusDestructor", "exclude each other", func() { libc.StatusDestructor(ctest.DestroyStatus, fail, libc.NegativeFails, libc.ZeroFails) }},
		{"Destructor", "is no Option", func() { libc.Destructor(ctest.Destroy, libc.NegativeFails) }},
		{"Constructor", "the address of one", func() { libc.Constructor(nil, nil) }},
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

func TestDestructorsAllocateNothing(t *testing.T) {
	resources := make([]uintptr, 64)
	for i := range resources {
		resources[i] = uintptr(i)
	}
	var state any = ctest.Context
	for name, destroy := range map[string]release{
		"alone":               libc.Destructor(ctest.Destroy),
		"alone, quiet":        libc.Destructor(ctest.Destroy, libc.NoCallback),
		"with context":        libc.ContextDestructor(ctest.DestroyWith),
		"with context, quiet": libc.ContextDestructor(ctest.DestroyWith, libc.NoCallback),
		"status":              libc.StatusDestructor(ctest.DestroyStatus, func(int) error { return nil }),
	} {
		if n := testing.AllocsPerRun(100, func() { destroy(state, resources) }); n != 0 {
			t.Errorf("%s: %v Go allocations", name, n)
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

func BenchmarkDestructor(b *testing.B) {
	// free of NULL, to measure the call
	for _, n := range []int{1, 256} {
		resources := make([]uintptr, n)
		for name, destroy := range map[string]release{
			"nocallback=true":  libc.Destructor(ctest.Free, libc.NoCallback),
			"nocallback=false": libc.Destructor(ctest.Free),
		} {
			b.Run(fmt.Sprintf("n=%d/%s", n, name), func(b *testing.B) {
				for b.Loop() {
					destroy(nil, resources)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/resource")
			})
		}
	}
}
