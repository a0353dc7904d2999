package own

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/testchild"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/ledger"
)

// pointerForms are the methods that return a resource as a pointer. Each calls f
// with it.
var pointerForms = []struct {
	name, instead string
	call          func(o *Owner, f func(unsafe.Pointer))
}{
	{"Use", "UseHandle", func(o *Owner, f func(unsafe.Pointer)) { o.Use(f) }},
	{"Resource", "Handle", func(o *Owner, f func(unsafe.Pointer)) { f(o.Resource()) }},
	{"Disown", "DisownHandle", func(o *Owner, f func(unsafe.Pointer)) {
		if p, err := o.Disown(); err == nil {
			f(p)
		}
	}},
}

// TestHandlesNeverBecomePointers has numbers that the runtime does not accept in
// a pointer. It would end the program when it copies a stack with the one, or
// collects with the other.
func TestHandlesNeverBecomePointers(t *testing.T) {
	for _, form := range pointerForms {
		t.Run(form.name, func(t *testing.T) {
			output, status := testchild.Run(t, func() {
				p := NewPool(Options{Name: "texture", Release: func([]uintptr) {}})
				for _, number := range []uintptr{7, ledger.LeastAddress - 1, freed()} {
					var o Owner
					if err := p.OwnHandle(&o, number, 0, 16); err != nil {
						fmt.Println(err)
					}
					var e *cheap.MisuseError
					err, _ := catch(func() {
						form.call(&o, func(resource unsafe.Pointer) {
							hold(func() unsafe.Pointer { return resource })
						})
					}).(error)
					if !errors.As(err, &e) || seen != nil {
						fmt.Printf("handle %#x: %v\n", number, err)
					}
				}
			})
			if status != 0 || output != "" {
				t.Errorf("status %d:\n%s", status, output)
			}
		})
	}
}

// hold has a pointer in a local variable while the stack is copied, and while the
// collector looks at it. In arguments the runtime does not look for small numbers.
//
//go:noinline
func hold(get func() unsafe.Pointer) {
	p := get()
	deeper(200)
	runtime.GC()
	seen = p
}

// seen gets the pointers that must not be made.
var seen unsafe.Pointer

// freed returns an address in a part of the Go heap that is free.
func freed() uintptr {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(make([]byte, 8<<20))))
	for range 3 {
		runtime.GC()
	}
	return address
}

// deeper has the stack copied, which begins with a few KiB.
//
//go:noinline
func deeper(n int) (sum byte) {
	var frame [1 << 10]byte
	if n > 0 {
		frame[n] = deeper(n - 1)
	}
	return frame[n] + frame[len(frame)-1]
}

// TestHandleForms makes handles in each way. The pointer forms refuse them with
// nothing changed, and the forms for handles return them.
func TestHandleForms(t *testing.T) {
	const n = 40 // some batches
	next := uintptr(0)
	count := func(r []uintptr) (int, error) {
		for i := range r {
			next++
			r[i] = next
		}
		return len(r), nil
	}
	var parent Owner
	parents := NewPool(Options{Release: func([]uintptr) {}})
	if err := parents.OwnHandle(&parent, 1, 0, 16); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		o    Options
		own  func(p *Pool, o *Owner) error
	}{
		{"OwnHandle", Options{}, func(p *Pool, o *Owner) error { return p.OwnHandle(o, 7, 0, 16) }},
		{"OwnHandle, large", Options{}, func(p *Pool, o *Owner) error { return p.OwnHandle(o, 7, 0, 1<<20) }},
		{"OwnHandle, two words", Options{Words: 2}, func(p *Pool, o *Owner) error { return p.OwnHandle(o, 7, 8, 16) }},
		{"OwnHandle, Parent", Options{Parent: &parent}, func(p *Pool, o *Owner) error { return p.OwnHandle(o, 7, 0, 16) }},
		{"OwnHandleUnder", Options{}, func(p *Pool, o *Owner) error { return p.OwnHandleUnder(o, &parent, 7, 0, 16) }},
		{"Make", Options{Construct: count, Handles: true}, (*Pool).Make},
		{"Make, two words", Options{Construct: func(r []uintptr) (int, error) { n, _ := count(r); return n / 2, nil }, Words: 2}, (*Pool).Make},
		{"Make, Parent", Options{Construct: count, Handles: true, Parent: &parent}, (*Pool).Make},
		{"Make, Trace", Options{Construct: count, Handles: true, Trace: true}, (*Pool).Make},
	} {
		for _, unshared := range []bool{false, true} {
			t.Run(row.name, func(t *testing.T) {
				next = 0
				released := map[uintptr]int{}
				row.o.Name, row.o.Unshared = "texture", unshared
				row.o.Release = func(r []uintptr) {
					for i := 0; i < len(r); i += max(row.o.Words, 1) {
						released[r[i]]++
					}
				}
				p := NewPool(row.o)
				for range n {
					var o Owner
					if err := row.own(p, &o); err != nil {
						t.Fatal(err)
					}
					number, _ := o.Handle()
					if number == 0 {
						t.Fatal("no handle")
					}
					for _, form := range pointerForms {
						mustMisuse(t, "texture."+form.name, func() {
							form.call(&o, func(unsafe.Pointer) { t.Error("called") })
						}, "handle", form.instead)
					}
					o.UseHandle(func(r, _ uintptr) {
						if r != number {
							t.Errorf("UseHandle: %d, want %d", r, number)
						}
					})
					if o.Closed() || released[number] != 0 && number != 7 {
						t.Error("a refusal closed the owner")
					}
					if number%2 == 0 {
						if r, _, err := o.DisownHandle(); r != number || err != nil {
							t.Errorf("DisownHandle: %d, %v; want %d", r, err, number)
						}
						if released[number] != 0 {
							t.Error("disowned and released")
						}
					} else {
						o.Close()
					}
					// A mistake is one also after the end.
					for _, form := range pointerForms {
						mustMisuse(t, "texture."+form.name, func() { form.call(&o, func(unsafe.Pointer) {}) }, form.instead)
					}
					if r, context := o.Handle(); r != 0 || context != 0 {
						t.Errorf("Handle of a closed owner: %d, %d", r, context)
					}
				}
				mustDestroy(t, p)
				for number, k := range released {
					if k != 1 && number != 7 {
						t.Errorf("%d released %d times", number, k)
					}
				}
			})
		}
	}
	parent.Close()
	mustDestroy(t, parents)
}

// TestPointersBesideHandles has both in one pool and one batch.
func TestPointersBesideHandles(t *testing.T) {
	for _, o := range []Options{{}, {Words: 2}, {Batch: 1}, {Unshared: true}} {
		o.Release = func([]uintptr) {}
		p := NewPool(o)
		var resource [1]byte
		owners := make([]Owner, 100)
		for i := range owners {
			var err error
			if i%3 == 0 {
				err = p.OwnHandle(&owners[i], 7, 0, 16)
			} else {
				err = p.Own(&owners[i], unsafe.Pointer(&resource), 16)
			}
			if err != nil {
				t.Fatal(err)
			}
			intake.Resize(owners[i].ref.Token().Ledger, owners[i].ref.Index, 100+i)
		}
		for i := range owners {
			if i%3 == 0 {
				mustMisuse(t, "own.Owner.Resource", func() { owners[i].Resource() }, "Handle")
				owners[i].Close()
				continue
			}
			owners[i].Use(func(r unsafe.Pointer) {
				if r != unsafe.Pointer(&resource) || owners[i].Resource() != r {
					t.Errorf("owner %d: %p", i, r)
				}
			})
			if r, err := owners[i].Disown(); r != unsafe.Pointer(&resource) || err != nil {
				t.Errorf("Disown: %p, %v", r, err)
			}
		}
		mustDestroy(t, p)
	}
}

// TestConstructedNumbers has a constructor that makes numbers in a pool of
// pointers. They are released, with the numbers beside them.
func TestConstructedNumbers(t *testing.T) {
	var resource [1]byte
	address := uintptr(unsafe.Pointer(&resource))
	for _, number := range []uintptr{1, ledger.LeastAddress - 1} {
		made, released := 0, map[uintptr]int{}
		p := NewPool(Options{
			Name: "texture",
			Construct: func(r []uintptr) (int, error) {
				for i := range r {
					r[i] = address
				}
				r[len(r)-1] = number
				made += len(r)
				return len(r), nil
			},
			Release: func(r []uintptr) {
				for _, r := range r {
					released[r]++
				}
			},
		})
		var o Owner
		mustMisuse(t, "texture.Make", func() { p.Make(&o) }, fmt.Sprintf("%#x", number), "Options.Handles", "UseHandle")
		if !o.Closed() || released[number] != 1 || released[address] != made-1 {
			t.Errorf("%d were made, released: %v", made, released)
		}
		mustStats(t, p, Stats{})
		mustDestroy(t, p)
	}
}

// TestOwnRefusesSmallNumbers passes what is no address to Own and OwnUnder. Such a
// pointer may end the program before Own looks at it, unless the runtime is told
// not to check.
func TestOwnRefusesSmallNumbers(t *testing.T) {
	output, status := testchild.Run(t, func() {
		w := newWorld(t, 1)
		p := w.pool(Options{Name: "texture"})
		m := w.own(t, p, 16)
		numbers := []uintptr{1, ledger.LeastAddress - 1}
		for i := range numbers {
			var o Owner
			for _, f := range []func(){
				func() { p.Own(&o, *(*unsafe.Pointer)(unsafe.Pointer(&numbers[i])), 16) },
				func() { p.OwnUnder(&o, &m.Owner, *(*unsafe.Pointer)(unsafe.Pointer(&numbers[i])), 16) },
			} {
				if v := fmt.Sprint(catch(f)); !strings.Contains(v, "texture.Own: the resource") || !strings.Contains(v, "OwnHandle") {
					fmt.Println(v)
				}
			}
		}
	}, "GODEBUG=invalidptr=0")
	if status != 0 || output != "" {
		t.Errorf("status %d:\n%s", status, output)
	}
}
