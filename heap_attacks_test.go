package cheap

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/span"
	"github.com/cheapgo/cheap/internal/testchild"
)

var updateAttacks = flag.Bool("attacks.update", false, "write what TestAttacks finds to docs/attacks.md")

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
}

// rawBytes returns n bytes from p on.
func rawBytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// malloc returns another block of the same size.
func (a *attacked) malloc() unsafe.Pointer { return a.h.Malloc(a.size) }

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
		v = catch(f)
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
	for range min(5000, 64<<20/a.size) {
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

// run runs an attack on a block of size bytes, and returns what came of it.
func (a attack) run(size int) (found string) {
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		panic(err)
	}
	x := &attacked{h: h, size: size}
	x.malloc()      // stays, so that its span does
	for range 100 { // the goroutine may move to another P, with another cache
		x.before, x.p, x.behind = x.malloc(), x.malloc(), x.malloc()
		n := h.UsableSize(x.p)
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
	deep(200, func() {}) // the stack does not grow while a small number is on it
	debug.SetPanicOnFault(true)
	found = verdict(func() { a.f(x) })
	debug.SetPanicOnFault(false)
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
				if status != 2 || !strings.Contains(output, "SIGSEGV") && !strings.Contains(output, "SIGBUS") {
					t.Errorf("status %d:\n%s", status, output)
				}
			})
		}
	}
}

var attackSizes = []int{16, 1 << 10, 1 << 20}

const (
	attackFile   = "docs/attacks.md"
	attackMarker = "| attack | "
)

// An attackColumn is a group of three columns of the table, with the environment that the
// processes for it have.
type attackColumn struct {
	group int
	env   []string
}

// attackColumns are those for this build.
func attackColumns() []attackColumn {
	switch {
	case unsafe.Sizeof(uintptr(0)) != 8 || percpu.Portable:
		return nil
	case race.Build && osmem.GoBacked:
		return []attackColumn{{2, nil}}
	case race.Build || osmem.GoBacked:
		return nil
	case checking:
		return []attackColumn{{1, nil}}
	}
	return []attackColumn{{0, nil}, {3, []string{"CHEAP_CHECK=stacks"}}}
}

// attackGroups is how many there are.
const attackGroups = 4

// TestAttacks runs each attack in a process of its own, and compares what came of
// it with the table in docs/attacks.md. Whatever the table says, no process crashes, and
// no wrong pointer goes unnoticed without a reason.
func TestAttacks(t *testing.T) {
	columns := attackColumns()
	if columns == nil {
		return
	}
	data, err := os.ReadFile(attackFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	head := strings.Index(text, attackMarker)
	if head < 0 {
		t.Fatalf("%s has no table", attackFile)
	}
	lines := strings.Split(text[head:], "\n")
	table := map[string][]string{}
	end := 2
	for ; strings.HasPrefix(lines[end], "|"); end++ {
		cells := strings.Split(strings.Trim(lines[end], "| "), " | ")
		table[cells[0]] = cells[1:]
	}
	var rows []string
	for n, a := range attacks {
		cells := table[a.name]
		for len(cells) <= 3*attackGroups {
			cells = append(cells, "?")
		}
		cells = cells[:3*attackGroups]
		t.Run(a.name, func(t *testing.T) {
			if testchild.Emulated() && n%4 != 0 {
				return // a process takes ten times as long
			}
			for _, column := range columns {
				output, _ := testchild.Run(t, func() {
					for _, size := range slices.Backward(attackSizes) { // so that a large block is fresh
						fmt.Printf("verdict of %d: %s\n", size, a.run(size))
					}
				}, column.env...)
				for i, size := range attackSizes {
					verdict := "crash"
					if _, after, ok := strings.Cut(output, fmt.Sprintf("verdict of %d: ", size)); ok {
						verdict, _, _ = strings.Cut(after, "\n")
					}
					if verdict == "crash" || n < len(freeAttacks) && a.why == "" && verdict != "now" && verdict != "nil" {
						t.Errorf("%d bytes: %s, whatever the table says\n%s", size, verdict, output)
					}
					at := 3*column.group + i
					if cells[at] != verdict && !*updateAttacks {
						t.Errorf("%d bytes: %s, the table says %s\n%s", size, verdict, cells[at], output)
					}
					cells[at] = verdict
				}
			}
		})
		why := a.why
		if why == "" {
			why = " "
		}
		rows = append(rows, "| "+a.name+" | "+strings.Join(cells, " | ")+" | "+why+" |")
	}
	if testchild.Is() {
		return
	}
	text = text[:head] + strings.Join(lines[:2], "\n") + "\n" + strings.Join(rows, "\n") + "\n" + strings.Join(lines[end:], "\n")
	if *updateAttacks {
		if err := os.WriteFile(attackFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if readme, err := os.ReadFile("README.md"); err != nil || !strings.Contains(string(readme), fmt.Sprintf(" %d mistakes", len(attacks))) {
		t.Errorf("README.md does not say that there are %d mistakes: %v", len(attacks), err)
	}
	if text != string(data) && !t.Failed() {
		t.Errorf("%s does not have the attacks of this test; run go test -run=TestAttacks -attacks.update", attackFile)
	}
}
