package cheap

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/watch/guard"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// An attack is a mistake of a program.
type attack struct {
	name string
	f    func(a *attacked)
	why  string // what else is to be said of its row
}

// attacks are the rows of the table.
var attacks = slices.Concat(freeAttacks, writeAttacks)

// An attacked is a heap with a block of a size.
type attacked struct {
	h    *Heap
	size int

	before, p, behind unsafe.Pointer // three blocks in a row; p is the one that is attacked

	side pageSide // where guarded blocks lie
}

// A pageSide says at which end of its pages a guarded block lies, for one that does not fill them.
type pageSide int

const (
	noSide    pageSide = iota // blocks are not guarded
	pageStart                 // accesses before the block fault, and none behind it
	pageEnd                   // the other way round
)

// sides are those of guarded blocks of a size.
func sides(size int) []pageSide {
	if sample.GuardRate() == 0 || size > guard.Largest {
		return []pageSide{noSide}
	}
	return []pageSide{pageStart, pageEnd}
}

// sideOf returns at which end of its pages the block lies, or noSide if it is not guarded.
func sideOf(p unsafe.Pointer) pageSide {
	b, _, ok := guard.Find(uintptr(p))
	switch {
	case !ok || !b.Live:
		return noSide
	case b.Start%osmem.PageSize == 0:
		return pageStart
	}
	return pageEnd
}

// malloc returns another block of the same size. If it is guarded it lies at the side that is
// wanted: a heap chooses one at random.
func (a *attacked) malloc() unsafe.Pointer {
	for {
		p := a.h.Malloc(a.size)
		if at := sideOf(p); a.side == noSide || at == noSide || at == a.side {
			return p
		}
		a.h.Free(p)
	}
}

// mallocs returns n more blocks.
func (a *attacked) mallocs(n int) (all []unsafe.Pointer) {
	for range n {
		all = append(all, a.malloc())
	}
	return all
}

// elsewhere runs f on another goroutine, mostly on another P. A panic of f is one of
// elsewhere.
func elsewhere(f func()) {
	done := make(chan any)
	go func() {
		runtime.LockOSThread()
		defer func() { done <- recover() }()
		f()
	}()
	if v := <-done; v != nil {
		panic(v)
	}
}

// onAnotherP runs f on another goroutine and on another P, because this goroutine keeps
// its own meanwhile. A panic of f is one of onAnotherP.
func onAnotherP(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	var done atomic.Bool
	var v any
	go func() {
		v = testcall.Catch(f)
		done.Store(true)
	}()
	for !done.Load() { // not yielding
	}
	if v != nil {
		panic(v)
	}
}

// What an attack panics with, beside a MisuseError.
var (
	errNoticed = errors.New("noticed") // the program has seen it
	errRefusal = errors.New("refused") // the call has returned nil
)

// aftermath does what a program does next, in which the damage may be found.
func (a *attacked) aftermath() {
	var all []unsafe.Pointer
	for range min(5000, 32<<20/a.size) { // twice what a quarantine has
		if p := a.malloc(); p != nil {
			all = append(all, p)
		}
	}
	for _, p := range all {
		a.h.Free(p)
	}
	a.h.Trim()
	a.h.DestroyAll()
}

// attackEnded is printed when a call has made its mistake, and the process lives.
const attackEnded = "the program goes on"

// run runs an attack on a block of size bytes, and returns what came of it. Of a guarded block
// that is the weaker answer of those for both sides.
func (a attack) run(size int) (found string) {
	defer SetDecay(SetDecay(-1)) // what is found does not depend on how long it takes
	weakest := []string{"no", "later", "now", "fault", "nil"}
	for _, side := range sides(size) {
		if v := a.runAt(size, side); found == "" || slices.Index(weakest, v) < slices.Index(weakest, found) {
			found = v
		}
	}
	return found
}

func (a attack) runAt(size int, side pageSide) (found string) {
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		panic(err)
	}
	x := &attacked{h: h, size: size, side: side}
	x.malloc()      // stays, so that its span does
	for range 100 { // the goroutine may move to another P, with another cache
		x.before, x.p, x.behind = x.malloc(), x.malloc(), x.malloc()
		n := h.UsableSize(x.p)
		if heap.Checks() || side != noSide { // there is something between them
			break
		}
		if unsafe.Add(x.before, n) == x.p && unsafe.Add(x.p, n) == x.behind {
			break
		}
	}
	verdict := func(f func()) (found string) {
		defer func() {
			switch v := recover().(type) {
			case nil:
			case *MisuseError:
				fmt.Println(v)
				found = "now"
			case interface{ Addr() uintptr }:
				found = "fault"
			default:
				switch v {
				case errNoticed:
					found = "now"
				case errRefusal:
					found = "nil"
				default:
					panic(v)
				}
			}
		}()
		f()
		return ""
	}
	testheap.Deep(200, func() {}) // the stack does not grow while a small number is on it
	debug.SetPanicOnFault(true)
	found = verdict(func() { a.f(x) })
	debug.SetPanicOnFault(false)
	fmt.Println(attackEnded)
	if found == "" {
		switch verdict(x.aftermath) {
		case "":
			found = "no"
		case "now":
			found = "later"
		default:
			panic("a fault that is not of the attack itself")
		}
	}
	if side != noSide {
		verdict(func() { h.DestroyAll() }) // the next run needs the slots
	}
	return found
}

// TestFreedMapping uses what is no longer there, or never was: at a freed block of 16 MiB,
// or behind one, there is no memory.
func TestFreedMapping(t *testing.T) {
	if osmem.GoBacked {
		return // Go memory
	}
	for name, at := range map[string]func(h *Heap) (p unsafe.Pointer){
		"freed": func(h *Heap) unsafe.Pointer {
			p := h.Malloc(span.OwnMapping)
			h.Free(p)
			return unsafe.Add(p, 12_345)
		},
		"its end, freed": func(h *Heap) unsafe.Pointer {
			p := h.Malloc(span.OwnMapping)
			h.Free(p)
			return unsafe.Add(p, span.OwnMapping-1)
		},
		"of a destroyed heap": func(h *Heap) unsafe.Pointer {
			p := h.Malloc(span.OwnMapping)
			h.DestroyAll()
			return p
		},
		"behind the end": func(h *Heap) unsafe.Pointer {
			return unsafe.Add(h.Malloc(span.OwnMapping), span.OwnMapping)
		},
	} {
		for _, write := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/write=%v", name, write), func(t *testing.T) {
				output, status := testchild.Run(t, func() {
					h, err := NewHeap(HeapOptions{})
					if err != nil {
						panic(err)
					}
					p := (*byte)(at(h))
					if write {
						*p = 1
					} else {
						fmt.Println("it is", *p)
					}
				})
				if status != 2 || !testheap.Faulted(output) {
					t.Errorf("status %d:\n%s", status, output)
				}
			})
		}
	}
}
