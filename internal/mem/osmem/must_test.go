package osmem

import (
	"strings"
	"testing"
)

// TestPreconditions calls each function with an address or a size that is wrong by one byte, by
// the header of a block, and by half a page.
func TestPreconditions(t *testing.T) {
	size := 4 * PageSize
	addr, err := Reserve(size, PageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer Release(addr, size)
	// what returns an error for a right call as well: the system is not asked
	ignore := func(error) {}
	type function struct {
		name string
		call func(addr, size uintptr)
	}
	functions := []function{
		{"Commit", func(a, n uintptr) { ignore(Commit(a, n)) }},
		{"Decommit", Decommit},
		{"Revoke", func(a, n uintptr) { ignore(Revoke(a, n, false)) }},
		{"Release", Release},
		{"Remap", func(a, n uintptr) { ignore(Remap(a, addr, n)) }},
		{"Remap", func(a, n uintptr) { ignore(Remap(addr, a, n)) }},
		{"Writable", func(a, n uintptr) { ignore(Writable(a, n)) }},
		{"SmallPages", SmallPages},
		{"Apart", Apart},
		{"Name", func(a, n uintptr) { Name(a, n, Heap) }},
	}
	for _, off := range []uintptr{1, 128, PageSize / 2, PageSize - 1} {
		for _, f := range functions {
			wantPanic(t, "osmem."+f.name, "addr", func() { f.call(addr+off, PageSize) })
			wantPanic(t, "osmem."+f.name, "size", func() { f.call(addr, PageSize+off) })
		}
		wantPanic(t, "osmem.Reserve", "size", func() { _, err := Reserve(PageSize+off, PageSize); ignore(err) })
		wantPanic(t, "osmem.Map", "size", func() { _, err := Map(off); ignore(err) })
		wantPanic(t, "osmem.MapSparse", "size", func() { _, err := MapSparse(off); ignore(err) })
	}
	for _, align := range []uintptr{0, 3, 3 * PageSize, PageSize + 1} {
		wantPanic(t, "osmem.Reserve", "align", func() { _, err := Reserve(PageSize, align); ignore(err) })
	}
	if GoBacked {
		// Here what is not reserved is known.
		wantPanic(t, "osmem.Commit", "addr", func() { ignore(Commit(addr, size+PageSize)) })
		wantPanic(t, "osmem.Decommit", "addr", func() { Decommit(addr+PageSize, size) })
		wantPanic(t, "osmem.Release", "addr", func() { Release(addr, size-PageSize) })
		wantPanic(t, "osmem.Release", "addr", func() { Release(addr+PageSize, size-PageSize) })
	}
}

// wantPanic calls f and wants the panic of op that arg is wrong.
func wantPanic(t *testing.T, op, arg string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text, _ := recover().(string); !strings.HasPrefix(text, "cheap: "+op+": "+arg+" is 0x") {
			t.Errorf("%s with a wrong %s: %q", op, arg, text)
		}
	}()
	f()
}
