//go:build cgo && linux && (amd64 || arm64) && !cheap_nocmem && !asan && !msan

package cmem

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
)

// TestTableGone looks for a table in a library that is gone, of which dlclose knows nothing.
func TestTableGone(t *testing.T) {
	n := cwork.TableGone()
	if n == 0 {
		t.Error("a table that is not mapped, or none before")
	}
	t.Log(n)
}

// TestTables compares the tables for unwinding that this package finds with those that libgcc does, also in a library
// that was loaded after the program began.
func TestTables(t *testing.T) {
	if !unwinds() {
		return // neither looks for tables
	}
	cwork.SQLiteForgets()
	n, wrong := cwork.Tables()
	if n < 10_000 || wrong != 0 {
		t.Errorf("%d addresses have a table, and %d another one", n, wrong)
	}
}

// TestOtherTables takes samples as with a C library whose unwinder takes a lock: with tables that this package finds,
// and without the unwinder. The first finds the same stack. The other one finds the library, and the same functions of
// Go.
func TestOtherTables(t *testing.T) {
	if !unwinds() {
		return // there is no unwinder to call
	}
	withRate(t, 1)
	was := cwork.TablesAs(cwork.NoTables)
	cwork.TablesAs(was)
	defer cwork.TablesAs(was)
	take := func(which int) (plain, back string) {
		defer cwork.TablesAs(cwork.TablesAs(which))
		const size = 7_777_000
		p, q := cwork.Alloc(5, size+which), cwork.Back(2, size+1000+which)
		plain, back = leaked(t, int64(size+which)), leaked(t, int64(size+1000+which))
		cwork.Free(p)
		cwork.Free(q)
		return plain, back
	}
	plain, back := take(was)
	for _, row := range []struct {
		which int
		short bool // C is only what has called malloc
	}{{cwork.TablesOfModules, false}, {cwork.NoTables, true}} {
		gotPlain, gotBack := take(row.which)
		wantPlain, wantBack := plain, back
		if row.short {
			wantPlain, wantBack = "? "+plain[strings.Index(plain, "github.com/"):], "? "+back[strings.Index(back, "github.com/"):]
			for _, between := range []string{" cworkGo ? ? ", " ? ? ? ", " ? ? "} { // C between Go
				wantBack = "? " + strings.ReplaceAll(wantBack[2:], between, " [called from C] ")
			}
		}
		if gotPlain != wantPlain {
			t.Errorf("tables %d: %q, want %q", row.which, gotPlain, wantPlain)
		}
		if gotBack != wantBack {
			t.Errorf("tables %d: %q, want %q", row.which, gotBack, wantBack)
		}
	}
}
