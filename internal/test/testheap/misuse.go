package testheap

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A Misuse has the fields of a MisuseError.
type Misuse interface{ ~misuse }

type misuse = struct {
	Op     string
	Addr   uintptr
	Reason string
}

// WantMisuse runs f, which must panic with an *E whose text begins with "cheap: op: " and contains
// each of the words.
func WantMisuse[E Misuse](t *testing.T, op string, f func(), words ...string) {
	t.Helper()
	v := testcall.Catch(f)
	if _, ok := v.(*E); !ok || !strings.HasPrefix(v.(error).Error(), "cheap: "+op+": ") {
		t.Errorf("panic value %v, want a MisuseError of %s", v, op)
		return
	}
	for _, w := range words {
		if text := v.(error).Error(); !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// MustAccuse runs f, which has to panic with an *E of op about addr that says each of the words.
func MustAccuse[E Misuse](t testing.TB, op string, addr uintptr, f func(), words ...string) {
	t.Helper()
	v := testcall.Catch(f)
	p, ok := v.(*E)
	if !ok {
		t.Errorf("%s of %#x: panic value %v, want a MisuseError", op, addr, v)
		return
	}
	e := misuse(*p)
	if e.Addr != addr || e.Op != op || v.(error).Error() != "cheap: "+op+": "+e.Reason {
		t.Errorf("%#v, want %s about %#x", e, op, addr)
	}
	for _, w := range words {
		if !strings.Contains(e.Reason, w) {
			t.Errorf("%s of %#x: %q does not say %q", op, addr, e.Reason, w)
		}
	}
}

// A Resizer is a heap or a Local.
type Resizer interface {
	Free(ptr unsafe.Pointer)
	UsableSize(ptr unsafe.Pointer) int
	Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer
	TryRealloc(ptr unsafe.Pointer, size int) (unsafe.Pointer, error)
}

// Accusers are the calls of a heap and of a Local that take a pointer to a live block.
func Accusers(h, l Resizer) map[string]func(p unsafe.Pointer) {
	all := map[string]func(p unsafe.Pointer){}
	for name, a := range map[string]Resizer{"Heap": h, "Local": l} {
		all[name+".Free"] = a.Free
		all[name+".UsableSize"] = func(p unsafe.Pointer) { a.UsableSize(p) }
		all[name+".Realloc"] = func(p unsafe.Pointer) { a.Realloc(p, 10) }
		all[name+".TryRealloc"] = func(p unsafe.Pointer) { _, _ = a.TryRealloc(p, 10) }
	}
	return all
}

// MustAccuseAll gives addr, which is the start of no live block of h, to every call that takes a
// pointer. l is a Local of h.
func MustAccuseAll[E Misuse, S Stats](t *testing.T, h interface {
	Resizer
	Owns(ptr unsafe.Pointer) bool
	Stats() S
}, l Resizer, addr uintptr, words ...string) {
	t.Helper()
	before := counts(h.Stats())
	words = append(words, fmt.Sprintf("%#x", addr))
	for op, f := range Accusers(h, l) {
		MustAccuse[E](t, op, addr, func() { f(osmem.Pointer(addr)) }, words...)
	}
	if h.Owns(osmem.Pointer(addr)) {
		t.Errorf("Owns(%#x)", addr)
	}
	if after := counts(h.Stats()); after.Blocks != before.Blocks || after.Bytes != before.Bytes || after.Mallocs != before.Mallocs {
		t.Errorf("%#x has changed the counts from %+v to %+v", addr, before, after)
	}
}

// FaultAt returns the address at which f faults, or 0.
func FaultAt(t testing.TB, f func()) (addr uintptr) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	v := testcall.Catch(f)
	if v == nil {
		return 0
	}
	fault, ok := v.(interface{ Addr() uintptr })
	if !ok {
		t.Fatalf("it panics with %v", v)
	}
	return fault.Addr()
}
