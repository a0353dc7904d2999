package own

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// TestNumbers makes numbers in each way.
func TestNumbers(t *testing.T) {
	const n = 40 // some batches
	next := uint16(0)
	count := func(r []uintptr) (int, error) {
		for i := range r {
			next++
			r[i] = uintptr(next)
		}
		return len(r), nil
	}
	var parent Number[int8]
	parents := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
	testcall.Must(t, parent.Own(parents, -1, 16))
	for _, row := range []struct {
		name string
		o    Options
		own  func(p *Pool, n *Number[uint16]) error
	}{
		{"Own", Options{}, func(p *Pool, n *Number[uint16]) error { next++; return n.Own(p, next, 16) }},
		{"Own, large", Options{}, func(p *Pool, n *Number[uint16]) error { next++; return n.Own(p, next, 1<<20) }},
		{"Own, Parent", Options{Parent: parent.Owner()}, func(p *Pool, n *Number[uint16]) error { next++; return n.Own(p, next, 16) }},
		{"OwnWith", Options{}, func(p *Pool, n *Number[uint16]) error {
			next++
			return n.OwnWith(p, next, With{Size: 16, Parent: parent.Owner()})
		}},
		{"Make", Options{Construct: count}, func(p *Pool, n *Number[uint16]) error { return n.Make(p) }},
		{"Make, Trace", Options{Construct: count, Trace: true}, func(p *Pool, n *Number[uint16]) error { return n.Make(p) }},
	} {
		for _, unshared := range []bool{false, true} {
			t.Run(row.name, func(t *testing.T) {
				next = 0
				times := map[uintptr]int{}
				row.o.Name, row.o.Unshared, row.o.Numbers = "texture", unshared, true
				row.o.Release = released(func(r []uintptr) {
					for _, r := range r {
						times[r]++
					}
				})
				p := NewPool(row.o)
				disowned := map[uintptr]bool{}
				for range n {
					var o Number[uint16]
					testcall.Must(t, row.own(p, &o))
					number, open := o.Value()
					if number == 0 || !open {
						t.Fatal("no number")
					}
					o.Use(func(r uint16) {
						if r != number {
							t.Errorf("Use: %d, want %d", r, number)
						}
					})
					if err := o.TryUse(func(r uint16) error {
						if r != number {
							t.Errorf("TryUse: %d, want %d", r, number)
						}
						return errors.ErrUnsupported
					}); err != errors.ErrUnsupported {
						t.Error(err)
					}
					o.KeepAlive()
					o.Resize(100)
					if o.Closed() || times[uintptr(number)] != 0 {
						t.Error("a refusal closed the owner")
					}
					switch number % 3 {
					case 0:
						if r, err := o.Disown(); r != number || err != nil {
							t.Errorf("Disown: %d, %v; want %d", r, err, number)
						}
						disowned[uintptr(number)] = true
					case 1:
						o.Close()
					default:
						if err := o.CloseWait(context.Background()); err != nil || times[uintptr(number)] != 1 {
							t.Errorf("CloseWait: %v, released %d times", err, times[uintptr(number)])
						}
					}
					if r, open := o.Value(); r != 0 || open || !o.Closed() {
						t.Errorf("Value of a closed one: %d, %v", r, open)
					}
					if _, err := o.Disown(); err != ErrClosed {
						t.Errorf("Disown of a closed one: %v", err)
					}
					if err := o.TryUse(func(uint16) error { t.Error("called"); return nil }); err != ErrClosed {
						t.Errorf("TryUse of a closed one: %v", err)
					}
					mustMisuse(t, "texture.Use", func() { o.Use(func(uint16) {}) }, "closed")
				}
				mustDestroy(t, p)
				for number := uintptr(1); number <= n; number++ {
					if want := map[bool]int{false: 1}[disowned[number]]; times[number] != want {
						t.Errorf("%d released %d times, want %d", number, times[number], want)
					}
				}
			})
		}
	}
	parent.Close()
	mustDestroy(t, parents)
}

// TestHandle does with typed pointers what Numbers do with others.
func TestHandle(t *testing.T) {
	type image struct{ pixels [3]byte }
	images := make([]image, 200)
	for _, unshared := range []bool{false, true} {
		times := map[uintptr]int{}
		p := NewPool(Options{Name: "image", Unshared: unshared, Release: released(func(r []uintptr) {
			for _, r := range r {
				times[r]++
			}
		})})
		var parent Handle[unsafe.Pointer]
		testcall.Must(t, parent.Own(p, unsafe.Pointer(&images[0]), 10))
		for i := 1; i < len(images); i++ {
			var h Handle[*image]
			own := h.Own
			if i%2 == 0 {
				own = func(p *Pool, m *image, size int) error {
					return h.OwnWith(p, m, With{Size: size, Parent: parent.Owner()})
				}
			}
			want := &images[i]
			if !h.Closed() || h.Pointer() != nil {
				t.Fatal("the zero Handle owns something")
			}
			testcall.Must(t, own(p, want, 10))
			copied := h
			if h.Pointer() != want || copied != h {
				t.Fatalf("%p, want %p", h.Pointer(), want)
			}
			copied.Use(func(m *image) {
				if m != want {
					t.Errorf("Use: %p, want %p", m, want)
				}
			})
			if err := h.TryUse(func(m *image) error {
				if m != want {
					t.Errorf("TryUse: %p, want %p", m, want)
				}
				return errors.ErrUnsupported
			}); err != errors.ErrUnsupported {
				t.Error(err)
			}
			h.Resize(20)
			h.KeepAlive()
			if i%3 == 0 {
				if m, err := h.Disown(); m != want || err != nil {
					t.Errorf("Disown: %p, %v", m, err)
				}
				times[uintptr(unsafe.Pointer(want))]++
			} else if i%3 == 1 {
				h.Close()
			} else if err := h.CloseWait(context.Background()); err != nil {
				t.Error(err)
			}
			if times[uintptr(unsafe.Pointer(want))] != 1 || !copied.Closed() || copied.Pointer() != nil {
				t.Errorf("image %d is released %d times", i, times[uintptr(unsafe.Pointer(want))])
			}
			if m, err := h.Disown(); m != nil || err != ErrClosed {
				t.Errorf("Disown of a closed one: %p, %v", m, err)
			}
			if err := h.TryUse(func(*image) error { t.Error("called"); return nil }); err != ErrClosed {
				t.Errorf("TryUse of a closed one: %v", err)
			}
			mustMisuse(t, "image.Use", func() { h.Use(func(*image) {}) }, "closed")
		}
		parent.Close()
		mustDestroy(t, p)
	}
	runtime.KeepAlive(images)
}

// TestWrongKindOfResource passes pointers where numbers belong, and the other way
// round.
func TestWrongKindOfResource(t *testing.T) {
	construct := func(r []uintptr) (int, error) { return 0, errors.ErrUnsupported }
	pointers := NewPool(Options{Name: "image", Construct: construct, Release: released(func([]uintptr) {})})
	numbers := NewPool(Options{Name: "texture", Numbers: true, Construct: construct, Release: released(func([]uintptr) {})})
	var resource [16]byte
	var o object
	var h Handle[*[16]byte]
	var n Number[int]
	var wrong Handle[uintptr]
	for i, f := range []func(){
		func() { o.Own(numbers, unsafe.Pointer(&resource), 1) },
		func() { o.OwnWith(numbers, unsafe.Pointer(&resource), With{Size: 1, Parent: o.Owner()}) },
		func() { h.Own(numbers, &resource, 1) },
		func() { h.OwnWith(numbers, &resource, With{Size: 1, Parent: o.Owner()}) },
		func() { h.Make(numbers) },
		func() { n.Own(pointers, 5, 1) },
		func() { n.OwnWith(pointers, 5, With{Size: 1, Parent: o.Owner()}) },
		func() { n.Make(pointers) },
		func() { wrong.Own(pointers, 4096, 1) },
		func() { wrong.Make(pointers) },
	} {
		var e *cheap.MisuseError
		if err, _ := testcall.Catch(f).(error); !errors.As(err, &e) || !strings.Contains(e.Reason, "Number") {
			t.Errorf("case %d: %v", i, err)
		}
	}
	if !o.Closed() || !h.Closed() || !n.Closed() || !wrong.Closed() {
		t.Error("a refused resource is owned")
	}
	mustDestroy(t, pointers)
	mustDestroy(t, numbers)
	if unsafe.Sizeof(uintptr(0)) == 4 {
		p := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
		var n Number[uint64]
		mustMisuse(t, "own.Handle.Own", func() { n.Own(p, 1<<32, 1) }, "does not fit")
	}
}

// TestCloseWait closes a resource in Use, one with a child, and one whose release
// waits for Drain. CloseWait returns when it is released, or when its context is done.
func TestCloseWait(t *testing.T) {
	for _, row := range []struct {
		name string
		o    Options
		keep func(w *world, p *Pool, m *thing) (end func())
	}{
		{"in Use", Options{}, func(_ *world, _ *Pool, m *thing) func() {
			inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(left)
				m.Use(func(unsafe.Pointer) { close(inside); <-leave })
			}()
			<-inside
			return func() { close(leave); <-left }
		}},
		{"child", Options{}, func(w *world, p *Pool, m *thing) func() {
			child := w.create(10)
			o := new(object)
			testcall.Want(t, o.OwnWith(p, child.pointer(), With{Size: 10, Parent: m.Owner()}))
			return func() { o.Close() }
		}},
		{"Drain", Options{Run: new(Queue).Run()}, func(_ *world, p *Pool, m *thing) func() { return func() { drainPool(p, 0) } }},
		{"Thread", Options{Run: Thread(0)}, nil},
		{"nothing", Options{}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, 4)
			p := w.pool(row.o)
			m := w.own(t, p, 10)
			if row.keep == nil {
				testcall.Want(t, m.CloseWait(context.Background()))
				mustBeReleased(t, m.cell, "when CloseWait returned")
				mustDestroy(t, p)
				return
			}
			end := row.keep(w, p, m)
			if err := m.CloseWait(doneAfter(1)); !errors.Is(err, context.Canceled) {
				t.Errorf("CloseWait: %v", err)
			}
			if !m.Closed() || m.cell.deaths.Load() != 0 {
				t.Error("not closed, or released")
			}
			end()
			mustBeReleased(t, m.cell, "after the end")
			m = w.own(t, p, 10)
			end = row.keep(w, p, m)
			testcall.Want(t, m.CloseWait(whenWaiting(end)))
			mustBeReleased(t, m.cell, "when CloseWait returned")
			mustDestroy(t, p)
		})
	}
	m := NewMemory(nil, MemoryOptions{})
	b, err := m.NewBytes(16)
	testcall.Must(t, err)
	b.Use(func([]byte) {
		if err := b.owner.CloseWait(doneAfter(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("CloseWait of a block in Use: %v", err)
		}
	})
	if b, err = m.NewBytes(16); err != nil {
		t.Fatal(err)
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	go b.Use(func([]byte) { close(inside); <-leave })
	<-inside
	if err := b.owner.CloseWait(whenWaiting(func() { close(leave) })); err != nil {
		t.Errorf("CloseWait of a block: %v", err)
	}
	mustDestroyMemory(t, m)
}

// TestConstructedNumbers has a constructor that makes numbers in a pool of
// pointers. They are released, with the numbers beside them.
func TestConstructedNumbers(t *testing.T) {
	var resource [1]byte
	address := uintptr(unsafe.Pointer(&resource))
	for _, number := range []uintptr{1, batch.LeastAddress - 1} {
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
			Release: func(_ any, r []uintptr) error {
				for _, r := range r {
					released[r]++
				}
				return nil
			},
		})
		var o object
		mustMisuse(t, "texture.Make", func() { o.Make(p) }, fmt.Sprintf("%#x", number), "Options.Numbers", "Number")
		if !o.Closed() || released[number] != 1 || released[address] != made-1 {
			t.Errorf("%d were made, released: %v", made, released)
		}
		mustStats(t, p, Stats{})
		mustDestroy(t, p)
	}
}

// TestOwnRefusesSmallNumbers passes what is no address to Own and OwnWith. Such a
// pointer may end the program before Own looks at it, unless the runtime is told
// not to check.
func TestOwnRefusesSmallNumbers(t *testing.T) {
	output, status := testchild.Run(t, func() {
		w := newWorld(t, 1)
		p := w.pool(Options{Name: "texture"})
		m := w.own(t, p, 16)
		numbers := []uintptr{1, batch.LeastAddress - 1}
		for i := range numbers {
			var o object
			for _, f := range []func(){
				func() { o.Own(p, *(*unsafe.Pointer)(unsafe.Pointer(&numbers[i])), 16) },
				func() {
					o.OwnWith(p, *(*unsafe.Pointer)(unsafe.Pointer(&numbers[i])), With{Size: 16, Parent: m.Owner()})
				},
			} {
				if v := fmt.Sprint(testcall.Catch(f)); !strings.Contains(v, "texture.Own: the resource") || !strings.Contains(v, "Options.Numbers") {
					fmt.Println(v)
				}
			}
		}
	}, "GODEBUG=invalidptr=0")
	if status != 0 || output != "" {
		t.Errorf("status %d:\n%s", status, output)
	}
}

// TestHandleOfNoPointer has handles of types that are none of a pointer, of one word or not.
func TestHandleOfNoPointer(t *testing.T) {
	p := newWorld(t, 1).pool(Options{Size: 1})
	for typ, f := range map[string]func(){
		"int8":        func() { new(Handle[int8]).Own(p, 1, 0) },
		"uintptr":     func() { new(Handle[uintptr]).Own(p, 1<<20, 0) },
		"interface {": func() { new(Handle[any]).Own(p, new(int), 0) },
		"struct {}":   func() { new(Handle[struct{}]).Own(p, struct{}{}, 0) },
		"string":      func() { new(Handle[string]).OwnWith(p, "a", With{State: 1}) },
		"chan int":    func() { new(Handle[chan int]).Own(p, make(chan int), 0) },
		"func()":      func() { new(Handle[func()]).Make(p) },
	} {
		mustMisuse(t, "own.Handle", f, typ, "is not the type of a pointer")
	}
}
