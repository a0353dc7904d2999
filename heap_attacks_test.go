package cheap

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/testchild"
)

var updateAttacks = flag.Bool("attacks.update", false, "write what TestAttacks finds to docs/attacks.md")

// An attack is a mistake of a program.
type attack struct {
	name string
	f    func(a *attacked)
	why  string // what else is to be said of its row
}

// An attacked is a heap with a block of a size.
type attacked struct {
	h    *Heap
	size int
	p    unsafe.Pointer

	behind unsafe.Pointer // the block behind p
}

// rawBytes returns n bytes from p on.
func rawBytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// malloc returns another block of the same size.
func (a *attacked) malloc() unsafe.Pointer { return a.h.Malloc(a.size) }

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

var attacks = []attack{
	{"a block is freed twice", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Free(a.p)
	}, ""},
	{"a block is freed twice, a thousand others are freed between", func(a *attacked) {
		var all []unsafe.Pointer
		for range 1000 {
			all = append(all, a.malloc())
		}
		a.h.Free(a.p)
		for _, p := range all {
			a.h.Free(p)
		}
		a.h.Free(a.p)
	}, ""},
	{"a block is freed twice, by two goroutines one after the other", func(a *attacked) {
		elsewhere(func() { a.h.Free(a.p) })
		elsewhere(func() { a.h.Free(a.p) })
	}, ""},
	{"a block is freed twice, Trim runs between", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Trim()
		a.h.Free(a.p)
	}, ""},
	{"a block is freed, allocated again, and freed by its first owner", func(a *attacked) {
		a.h.Free(a.p)
		for range 10_000 {
			if p := a.malloc(); p == a.p {
				break
			}
		}
		a.h.Free(a.p)
	}, "the address is that of a live block"},
	{"Realloc of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		a.h.Realloc(a.p, 2*a.size)
	}, ""},
	{"UsableSize of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		a.h.UsableSize(a.p)
	}, ""},
	{"Free of the middle of a block", func(a *attacked) { a.h.Free(unsafe.Add(a.p, a.size/2&^7)) }, ""},
	{"Free of an address that is not a multiple of 8", func(a *attacked) { a.h.Free(unsafe.Add(a.p, 3)) }, ""},
	{"Free of a block of another heap", func(a *attacked) {
		other, _ := NewHeap(HeapOptions{})
		other.Free(a.p)
	}, ""},
	{"Free of Go memory", func(a *attacked) { a.h.Free(unsafe.Pointer(new([4096]byte))) }, ""},
	{"Free of a local variable", func(a *attacked) {
		var local [64]byte
		a.h.Free(unsafe.Pointer(&local))
	}, ""},
	{"Free of a number, 0x123456789000", func(a *attacked) { a.h.Free(osmem.Pointer(uintptr(0x1234_5678) << (12 * (unsafe.Sizeof(a.p) / 8)))) }, ""},
	{"Free of a block after Destroy", func(a *attacked) {
		a.h.DestroyAll()
		a.h.Free(a.p)
	}, ""},
	{"a write of 1 byte behind a block", func(a *attacked) {
		rawBytes(a.p, a.h.UsableSize(a.p)+1)[a.h.UsableSize(a.p)] ^= 0x5A
		a.h.Free(a.p)
	}, "the byte belongs to a neighbour or to no block"},
	{"a write of 8 bytes behind a block, whose neighbour is free", func(a *attacked) {
		n := a.h.UsableSize(a.p)
		if a.behind != unsafe.Add(a.p, n) && n < 1<<20 {
			panic("the block behind is elsewhere")
		}
		a.h.Free(a.behind)
		for i := range 8 {
			rawBytes(a.p, n+8)[n+i] ^= 0x5A
		}
	}, ""},
	{"a write to the first 8 bytes of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		for i := range 8 {
			rawBytes(a.p, 8)[i] ^= byte(0x11 * (i + 1))
		}
	}, ""},
	{"a write of 1 byte to the first 8 of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		rawBytes(a.p, 8)[5] ^= 0x40
	}, ""},
	{"a write of 1 byte to the second half of a freed block", func(a *attacked) {
		a.h.Free(a.p)
		rawBytes(a.p, a.size)[a.size*3/4] ^= 0x5A
	}, ""},
	{"a write to a freed block that another P has freed", func(a *attacked) {
		elsewhere(func() { a.h.Free(a.p) })
		for i := range 8 {
			rawBytes(a.p, 8)[i] ^= byte(0x11 * (i + 1))
		}
	}, ""},
	{"a freed block is inverted in place", func(a *attacked) {
		a.h.Free(a.p)
		b := rawBytes(a.p, min(a.size, 1024))
		for i := range b {
			b[i] ^= 0xFF
		}
	}, ""},
	{"another block's contents are copied over a freed block", func(a *attacked) {
		q := a.malloc()
		a.h.Free(q)
		a.h.Free(a.p)
		copy(rawBytes(a.p, 16), rawBytes(q, 16))
	}, ""},
	{"a read of a freed block returns what was there", func(a *attacked) {
		b := rawBytes(a.p, a.size)
		for i := range b {
			b[i] = 0x77
		}
		a.h.Free(a.p)
		if b[a.size-1] != 0x77 {
			panic(errNoticed)
		}
	}, "\"now\" means that the contents are gone"},
	{"a write to a block that was freed and allocated again", func(a *attacked) {
		a.h.Free(a.p)
		q := a.malloc()
		rawBytes(a.p, 1)[0] = 1
		a.h.Free(q)
	}, "the memory is that of a live block"},
	{"a write behind the new end after Realloc to half", func(a *attacked) {
		p := a.h.Realloc(a.p, a.size/2)
		n := a.h.UsableSize(p)
		if p != a.p || n >= a.size {
			rawBytes(a.p, a.size)[a.size-1] = 1
			a.h.Free(p)
			return
		}
		rawBytes(p, n+1)[n] = 1
		a.h.Free(p)
	}, "a block that stays in place keeps its room"},
}

var errNoticed = errors.New("noticed")

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

// run runs an attack, and prints what came of it.
func (a attack) run(size int) {
	h, err := NewHeap(HeapOptions{})
	if err != nil {
		panic(err)
	}
	x := &attacked{h: h, size: size}
	x.malloc() // stays, so that its span does
	x.p, x.behind = x.malloc(), x.malloc()
	try := func(f func()) (found bool) {
		defer func() {
			v := recover()
			if e, ok := v.(*MisuseError); ok {
				fmt.Println(e)
				found = true
			} else if v == errNoticed {
				found = true
			} else if _, ok := v.(interface{ Addr() uintptr }); ok {
				fmt.Println("verdict: fault") // of the attack itself
				os.Exit(0)
			} else if v != nil {
				panic(v)
			}
		}()
		f()
		return false
	}
	debug.SetPanicOnFault(true)
	at := try(func() { a.f(x) })
	debug.SetPanicOnFault(false)
	switch {
	case at:
		fmt.Println("verdict: now")
	case try(x.aftermath):
		fmt.Println("verdict: later")
	default:
		fmt.Println("verdict: no")
	}
}

var attackSizes = []int{16, 1 << 10, 1 << 20}

const (
	attackFile   = "docs/attacks.md"
	attackMarker = "| attack | "
)

// attackColumn is which group of three columns of the table is for this build, -1
// if none is.
func attackColumn() int {
	switch {
	case unsafe.Sizeof(uintptr(0)) != 8 || percpu.Portable:
		return -1
	case race.Build && osmem.GoBacked:
		return 2
	case race.Build || osmem.GoBacked:
		return -1
	case checking:
		return 1
	}
	return 0
}

// TestAttacks runs each attack in a process of its own, and compares what came of
// it with the table in docs/attacks.md.
func TestAttacks(t *testing.T) {
	column := attackColumn()
	if column < 0 {
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
	for _, a := range attacks {
		cells := table[a.name]
		if len(cells) < 9 {
			cells = []string{"?", "?", "?", "?", "?", "?", "?", "?", "?"}
		}
		cells = cells[:9]
		for i, size := range attackSizes {
			t.Run(fmt.Sprintf("%s/%d", a.name, size), func(t *testing.T) {
				output, status := testchild.Run(t, func() { a.run(size) })
				verdict := "crash"
				if _, after, ok := strings.Cut(output, "verdict: "); ok && status == 0 {
					verdict = strings.TrimSpace(after)
				}
				at := 3*column + i
				if cells[at] != verdict && !*updateAttacks {
					t.Errorf("%s: %s, the table says %s\n%s", a.name, verdict, cells[at], output)
				}
				cells[at] = verdict
			})
		}
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
	} else if text != string(data) && !t.Failed() {
		t.Errorf("%s does not have the attacks of this test; run go test -run=TestAttacks -attacks.update", attackFile)
	}
}
