package blackbox

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/own"
)

// A cHeap is a C heap of a test.
type cHeap struct {
	census.CHeap
	off string
}

func (h cHeap) Off() string          { return h.off }
func (h cHeap) Read() census.CCounts { return census.CCounts{Live: 9 << 20} }
func (h cHeap) Watch(int) func() (steady, lately []census.CSuspect) {
	return func() (_, _ []census.CSuspect) { return nil, nil }
}
func (h cHeap) Libraries(l []census.CLibrary) []census.CLibrary {
	return append(l, census.CLibrary{Name: "libb.so", Live: 1 << 20, Blocks: 1}, census.CLibrary{Name: "liba.so", Live: 8 << 20, Blocks: 2})
}

func (h cHeap) Top(n int) (all []census.CSuspect) {
	for i := range min(n, 9) {
		all = append(all, census.CSuspect{Library: fmt.Sprint("lib", i), Live: int64(9-i) << 20, Stack: "" +
			"leak_c\n\t/lib/liba.so\n_cgo_1_Cfunc_leak\n\t/bin/server\nmain._Cfunc_leak\n\t/src/_cgo_gotypes.go:50\n" +
			"main.leak\n\t/home/someone/server/main.go:7\nmain.main\n\t/home/someone/server/main.go:9\nruntime.main\n\t/go/proc.go:290\n"})
	}
	return all
}

//go:noinline
func makesOwners(pool *own.Pool, h *own.Handle[unsafe.Pointer], p unsafe.Pointer) error {
	return h.Own(pool, p, 3<<20)
}

//go:noinline
func makesBlocks(h *cheap.Heap) unsafe.Pointer { return h.Malloc(4 << 20) }

// TestRecord has a pool, a heap and a C heap. The record has their names, and of files only the last
// element.
func TestRecord(t *testing.T) {
	defer census.SetCHeap(census.SetCHeap(cHeap{}))
	defer inspect.SetRate(inspect.SetRate(1))
	pool := own.NewPool(own.Options{Name: "pictures", Release: func(any, []uintptr) error { return nil }})
	own.SetLeakLevel("pictures", own.LeaksAll)
	var memory [16]byte
	h := new(own.Handle[unsafe.Pointer])
	testcall.Must(t, makesOwners(pool, h, unsafe.Pointer(&memory)))
	defer h.Close()
	heap, err := cheap.NewHeap(cheap.HeapOptions{Name: "pages"})
	testcall.Must(t, err)
	defer heap.DestroyAll()
	makesBlocks(heap)

	l := &live{root: "/"}
	r := l.record(time.Now())
	has := func(list []Figure, name string, bytes int64) {
		t.Helper()
		for _, f := range list {
			if f.Name == name && f.Bytes >= bytes {
				return
			}
		}
		t.Errorf("there is no %s with %d in %+v", name, bytes, list)
	}
	has(r.Pools, "pictures", 3<<20)
	has(r.Heaps, "pages", 4<<20)
	has(r.Libraries, "liba.so", 8<<20)
	if r.Libraries[0].Name != "liba.so" {
		t.Errorf("the libraries are %+v", r.Libraries)
	}
	if len(r.C) != mostStacks || r.C[0].Bytes != 9<<20 || fmt.Sprint(r.C[0].Calls) != "[leak_c main.leak main.go:7 main.main main.go:9]" {
		t.Errorf("the stacks of C are %+v", r.C)
	}
	first := func(list []Stack, name, call string) {
		t.Helper()
		for _, s := range list {
			if s.Name == name && strings.Contains(s.Calls[0], call) {
				return
			}
		}
		t.Errorf("there is no %s of %s in %+v", call, name, list)
	}
	first(r.Owners, "pictures", "blackbox.makesOwners gather_test.go:")
	first(r.Blocks, "", "blackbox.makesBlocks gather_test.go:")
	if r.Verdict == "" {
		t.Error("no verdict")
	}
	if runtime.GOOS == "linux" && (r.Resident == 0 || len(r.Parts) < 3 || len(r.Notes) > 0) {
		t.Errorf("%+v", r)
	}
	for i := 1; i < len(r.Parts); i++ { // there are none where the system does not say what is resident
		if r.Parts[i-1].Bytes < r.Parts[i].Bytes {
			t.Errorf("the parts are not sorted: %+v", r.Parts)
		}
	}
	text := fmt.Sprintf("%+v", r)
	if strings.Contains(text, "/home/") || strings.Contains(text, "/src/") {
		t.Errorf("the record has paths: %s", text)
	}

	census.SetCHeap(cHeap{off: "it is off"})
	if r := (&live{root: "/"}).record(time.Now()); len(r.C) > 0 || !strings.Contains(strings.Join(r.Notes, " "), "Module cmem does nothing: it is off.") {
		t.Errorf("%+v", r)
	}
}

// TestCostly has a value that takes some of the time of a clock.
func TestCostly(t *testing.T) {
	var c costly[int]
	now := time.Now()
	n := 0
	find := func() int { n++; return n }
	if c.get(now, find) != 1 {
		t.Error("the first value is not found")
	}
	c.next = now.Add(time.Second) // as if it had taken a millisecond
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Second - 1, 1}, {time.Second, 2}} {
		if got := c.get(now.Add(row.after), find); got != row.want {
			t.Errorf("after %v: %d, want %d", row.after, got, row.want)
		}
	}
}
