//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/google/pprof/profile"
)

// leaked returns the stack that has n bytes in use, as text.
func leaked(t *testing.T, n int64) string {
	t.Helper()
	p, err := Profile()
	testcall.Must(t, err)
	found := ""
	for _, s := range p.Sample {
		if s.Value[3] == n {
			for name := range stacks(&profile.Profile{Sample: []*profile.Sample{s}}) {
				found = name
			}
		}
	}
	if found == "" {
		t.Errorf("no stack has %d bytes", n)
	}
	return found
}

// goPart returns what follows the addresses and functions of C.
func goPart(stack string) string {
	at := strings.Index(stack, "github.com/cheapgo/cheap/")
	if at < 0 {
		return ""
	}
	return strings.ReplaceAll(stack[at:], "github.com/cheapgo/cheap/cmem", "")
}

// TestJunk has frame pointers that are none, as C without frame pointers has: an unwinder that
// follows them reads beyond the stack of C, into Go's memory (duckdb/duckdb#22630), and where C
// calls Go, from the stack of Go into that of C (golang/go#59830).
func TestJunk(t *testing.T) {
	withRate(t, 1)
	for _, through := range []bool{false, true} {
		for k := 0; ; k++ {
			size := 1_000_000 + 1000*k
			if through {
				size += 500_000
			}
			p := cwork.Junk(k, through, size)
			if p == nil {
				if k < 8 {
					t.Errorf("only %d kinds", k)
				}
				break
			}
			s := goPart(leaked(t, int64(size)))
			cwork.Free(p)
			want := "/internal/cwork._Cfunc_cwork_junk /internal/cwork.Junk .TestJunk testing.tRunner testing.(*T).Run.gowrap1 runtime.goexit"
			if through {
				// Between the two are functions of C, of which a program without symbols has no names.
				between := "? "
				if !unwinds() {
					between = "[called from C] "
				}
				inner, rest, _ := strings.Cut(s, " _cgoexp_")
				_, outer, _ := strings.Cut(rest, between)
				for strings.HasPrefix(outer, "? ") {
					outer = outer[len("? "):]
				}
				if inner != "/internal/cwork._Cfunc_cwork_deep /internal/cwork.cworkGo" {
					t.Errorf("kind %d: %q", k, s)
				}
				s = outer
			}
			if s != want {
				t.Errorf("kind %d, through Go %t: %q, want %q", k, through, s, want)
			}
		}
	}
}

// TestOddCallers allocates below functions of other kinds. The part of C ends where a function has no
// table for unwinding, and on a stack of the program's own.
func TestOddCallers(t *testing.T) {
	for _, row := range []struct {
		name string
		f    func(int) unsafe.Pointer
	}{
		{"no table", cwork.Without},
		{"coroutine", cwork.Coroutine},
		{"assembly of Go", cwork.Assembly},
		{"JIT", func(n int) unsafe.Pointer { return cwork.JIT(n, 3000) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			withRate(t, 1) // of this thread
			const size = 3_333_333
			withRate(t, 1) // of this goroutine's thread
			p := row.f(size)
			if p == nil {
				return
			}
			s := leaked(t, size)
			cwork.Free(p)
			if in := goPart(s); !strings.HasPrefix(in, "/internal/") || !strings.HasSuffix(in, "testing.tRunner testing.(*T).Run.gowrap1 runtime.goexit") {
				t.Errorf("%q", s)
			}
		})
	}
}

// TestHandMade has stacks that the program has made by itself, as libraries for coroutines do,
// whose first return address is none. The unwinder would read there.
func TestHandMade(t *testing.T) {
	withRate(t, 1)
	data := new([100]uintptr)
	for i, junk := range []uintptr{0, 1, 0x1000, 0xdeaddeaddeaddead, 1 << 47, math.MaxUint64, uintptr(unsafe.Pointer(data))} {
		size := 5_000_000 + i*1000
		p := cwork.HandMade(junk, size)
		if p == nil {
			return
		}
		s := leaked(t, int64(size))
		cwork.Free(p)
		// Two functions, of which a program without symbols has no names; and the goroutine.
		c := "? ? github.com/"
		if !unwinds() {
			c = "? github.com/"
		}
		if in := goPart(s); !strings.HasPrefix(s, c) || !strings.HasPrefix(in, "/internal/cwork._Cfunc_cwork_handmade ") {
			t.Errorf("%#x: %q", junk, s)
		}
	}
	runtime.KeepAlive(data)
}

// TestSQLite forgets databases of SQLite, as the system has it: the profile names the line that has
// opened them, and the library.
func TestSQLite(t *testing.T) {
	testenv.Skip(t, "musl emulator", "the library is linked with the glibc of this processor")
	withRate(t, 1)
	const times = 20
	_, file, line, _ := runtime.Caller(0)
	for range times {
		if !cwork.SQLiteForgets() {
			t.Skip("SQLite is not installed")
		}
	}
	p, err := Profile()
	testcall.Must(t, err)
	sum, statements := int64(0), int64(0)
	for _, s := range p.Sample {
		prepares := false
		for _, l := range s.Location {
			for _, at := range l.Line {
				prepares = prepares || at.Function.Name == "sqlite3_prepare_v2"
				if at.Function.Filename == file && at.Line == int64(line+2) && strings.HasPrefix(s.Label["library"][0], "libsqlite3.so.0") {
					sum += s.Value[3]
					if prepares {
						statements += s.Value[3]
					}
				}
			}
		}
	}
	if sum < times*8000 || statements < times*1000 { // SQLite 3.40.1: 17,168 and 2,840 each
		t.Errorf("%d bytes in use, %d of statements", sum, statements)
	}
	libraries, err := Libraries()
	testcall.Must(t, err)
	if i := slices.IndexFunc(libraries, func(l Library) bool { return strings.HasPrefix(l.Name, "libsqlite3.so.0") }); i < 0 || libraries[i].Live < sum || libraries[i].Live > sum+10_000 {
		t.Errorf("%v, want %d of SQLite", libraries, sum)
	}
	t.Log(sum/times, "bytes each,", statements/times, "of a statement")
}

// TestSignals has a signal handler allocate.
func TestSignals(t *testing.T) {
	for _, rate := range []int{1, 2000} {
		withRate(t, rate)
		if n := cwork.Signals(2000); n != 2000 {
			t.Errorf("rate %d: the handler has allocated %d times", rate, n)
		}
	}
}

// TestForeign frees blocks that malloc of the program has not returned, and the other way around.
func TestForeign(t *testing.T) {
	for _, rate := range []int{1, 2000, 0} {
		withRate(t, rate)
		if s := cwork.Foreign(); s != "" {
			t.Errorf("rate %d: %s", rate, s)
		}
	}
}

// TestExit ends a process as C does, with functions that allocate.
func TestExit(t *testing.T) {
	if os.Getenv("CMEM_EXIT") != "" {
		withRate(t, 1)
		cwork.Exit()
	}
	args := append(strings.Fields(os.Getenv("CHEAP_TEST_EXEC")), os.Args[0], "-test.run=^TestExit$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "CMEM_EXIT=1")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "late\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestZero has blocks of no bytes: each is an object. At a rate of 16 one in 16.5 is sampled, and
// stands for so many.
func TestZero(t *testing.T) {
	for rate, near := range map[int]int64{1: 0, 16: 120} { // 4 standard deviations
		zero(t, rate, near)
	}
}

func zero(t *testing.T, rate int, near int64) {
	withRate(t, rate)
	before := ReadStats().Bytes
	var ps []unsafe.Pointer
	for range 16000 {
		ps = append(ps, cwork.Site(1<<12|5+rate, 0))
	}
	p, err := Profile()
	testcall.Must(t, err)
	found := false
	for _, s := range p.Sample {
		n := s.Value[2]
		found = found || s.Value[3] == 0 && s.Value[1] == 0 && 16000-16*near <= n && n <= 16000+16*near
	}
	if !found {
		t.Errorf("rate %d: no stack has 16,000 blocks of no bytes", rate)
	}
	if n := ReadStats().Bytes - before; n < 0 || n > 50_000 {
		t.Errorf("rate %d: %d bytes", rate, n)
	}
	for _, p := range ps {
		cwork.Free(p)
	}
}
