package callbackcycle

/*
#include <stdint.h>

typedef struct button button;
button *button_new(void);
void button_on_click(button *b, uintptr_t data);
void button_call(button *b, uintptr_t data);
*/
import "C"

import (
	"runtime"
	"runtime/cgo"
	"sync"

	"github.com/cheapgo/cheap/own"
)

type Button struct{ c *C.button } // want Button:`owns`

func (b *Button) free()    {}
func (b *Button) clicked() {}

func newButton() *Button {
	b := &Button{C.button_new()}
	runtime.SetFinalizer(b, (*Button).free)
	return b
}

// A Toggle is a Button.
type Toggle struct {
	*Button
	on bool
}

// A Window has an owner.
type Window struct { // want Window:`owns`
	h own.Handle[*C.button]
	n int
}

type plain struct{ n int }

// OnClick keeps f.
func (b *Button) OnClick(f func()) { // want OnClick:`keeps .0.`
	C.button_on_click(b.c, C.uintptr_t(cgo.NewHandle(f)))
}

// OnClickOf keeps f through OnClick.
func OnClickOf(b *Button, f func()) { b.OnClick(func() { f() }) } // want OnClickOf:`keeps .1.`

type entry struct{ f any }

// OnBoth keeps f, in a local variable first.
func (b *Button) OnBoth(f func()) { // want OnBoth:`keeps .0.`
	e := entry{}
	e = entry{f}
	boxed := entry{f: f}
	entries[1] = boxed
	println(e.f)
}

var entries = map[int]entry{}

// Assign keeps what is in e.
func Assign(b *Button, e entry) { entries[2] = e } // want Assign:`keeps .1.`

// Each calls f.
func (b *Button) Each(f func()) { f() }

var (
	registry = map[int]func(){}
	values   sync.Map
	list     []func()
	shared   = newButton()
)

func literals(b *Button, t *Toggle, w *Window, p *plain) {
	cgo.NewHandle(func() { b.clicked() })                  // want `the function refers to b, and a cgo.Handle keeps it for C`
	cgo.NewHandle(b.clicked)                               // want `the method value b.clicked refers to b`
	cgo.NewHandle(func() { println(t.on) })                // want `refers to t`
	cgo.NewHandle(func() { w.h.Close() })                  // want `refers to w`
	cgo.NewHandle(struct{ f func() }{func() { b.free() }}) // want `refers to b`
	cgo.NewHandle(func() { println(p.n) })
	cgo.NewHandle(func() { shared.clicked() })
	f := func() { b.clicked() } // want `refers to b`
	cgo.NewHandle(f)
	g := func() { b.clicked() }
	g = nil
	cgo.NewHandle(g)
	var k = func() { b.clicked() } // want `refers to b`
	cgo.NewHandle(k)
	var m func()
	m = func() { b.clicked() } // want `refers to b`
	cgo.NewHandle(m)
}

func registries(b *Button, w *Window) {
	registry[1] = func() { b.clicked() }     // want `refers to b, and a map of the package keeps it for C`
	values.Store(1, w.close)                 // want `the method value w.close refers to w`
	list = append(list, func() { b.free() }) // want `a slice of the package`
	local := map[int]func(){}
	local[1] = func() { b.clicked() }
	registry[2] = func() {}
}

func (w *Window) close() { w.h.Close() }

func through(b, other *Button, w *Window) {
	b.OnClick(func() { b.clicked() }) // want `refers to b, and OnClick keeps it for C`
	b.OnClick(func() { other.clicked() })
	b.OnClick(b.clicked)                 // want `the method value b.clicked`
	OnClickOf(b, func() { b.clicked() }) // want `refers to b, and OnClickOf keeps it for C`
	b.Each(func() { b.clicked() })
	Assign(b, entry{func() { b.clicked() }}) // want `refers to b, and Assign keeps it for C`
}

func short(b *Button) {
	h := cgo.NewHandle(func() { b.clicked() })
	defer h.Delete()
	C.button_call(b.c, C.uintptr_t(h))
}

func shortVar(b *Button) {
	var h = cgo.NewHandle(func() { b.clicked() })
	C.button_call(b.c, C.uintptr_t(h))
	h.Delete()
}

// states have what keeps their owner.
func states(w, other *Window, p *C.button, pool *own.Pool, d deep) {
	w.h.OwnWith(pool, p, own.With{State: func() { w.close() }}) // want `the function refers to w, and own.With keeps it for C`
	w.h.OwnWith(pool, p, own.With{Size: 1, State: w.close})     // want `the method value w.close refers to w`
	w.h.OwnWith(pool, p, own.With{State: w})                    // want `the state refers to w`
	w.h.OwnWith(pool, p, own.With{State: &deep{of: w}})         // want `the state refers to w`
	w.h.OwnWith(pool, p, own.With{State: &w.n})                 // want `the state refers to w`
	w.h.OwnWith(pool, p, own.With{State: any(w)})               // want `the state refers to w`
	f := func() { w.close() }                                   // want `the function refers to w`
	w.h.OwnWith(pool, p, own.With{State: f})
	w.h.OwnWith(pool, p, own.With{State: w.n})
	w.h.OwnWith(pool, p, own.With{State: func() { other.close() }, Parent: other.h.Owner()})
	w.h.OwnWith(pool, p, own.With{State: other, Parent: w.h.Owner()})
	w.h.OwnWith(pool, p, own.With{State: stateOf(w)})
	made := &Window{}
	made.h.OwnWith(pool, p, own.With{State: made}) // want `the state refers to made`
}

type deep struct{ of *Window }

func stateOf(*Window) any { return nil }

// Init keeps f as the state.
func (w *Window) Init(p *C.button, pool *own.Pool, f func()) { // want Init:`keeps .2.`
	w.h.OwnWith(pool, p, own.With{State: f})
}

func inits(w, other *Window, p *C.button, pool *own.Pool) {
	w.Init(p, pool, func() { w.close() }) // want `the function refers to w, and Init keeps it for C`
	w.Init(p, pool, func() { other.close() })
}

// NewWindow has a parent, to which f may refer.
func NewWindow(parent *Window, p *C.button, pool *own.Pool, f func()) *Window {
	w := new(Window)
	w.h.OwnWith(pool, p, own.With{State: f, Parent: parent.h.Owner()})
	return w
}

func news(parent *Window, p *C.button, pool *own.Pool) {
	NewWindow(parent, p, pool, func() { parent.close() })
}
