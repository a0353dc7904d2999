package heapprofile

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/google/pprof/profile"
)

// TestProfile has a program at two places, a library, and a stack of C.malloc in a program without
// symbols.
func TestProfile(t *testing.T) {
	p := &Process{
		Mappings: []Mapping{
			{Start: 0x1000, End: 0x2000, File: "/lib/libfirst.so.1"},
			{Start: 0x5000, End: 0x6000, File: "/bin/program"},
			{Start: 0x9000, End: 0xa000, File: "/lib/libc.so.6"},
		},
		Program: "/bin/program",
		Peak:    true,
		Frames: func(pc uintptr) []Frame {
			name := map[uintptr]string{
				0x10001: "runtime.cgocall", 0x10002: "main._cgo_cmalloc", 0x10003: "main._Cfunc_f", 0x10004: "main.main", 0x10005: "runtime.cgocallback",
			}[pc]
			return []Frame{{Function: name, File: "main.go", Line: int(pc - 0x10000)}}
		},
	}
	sites := []Site{
		{C: []uintptr{0x9010, 0x1010, 0x5010}, Go: []uintptr{0x10001, 0x10003, 0x10004}, Allocs: 2, AllocBytes: 200, Frees: 1, FreeBytes: 100, PeakBytes: 150},
		{C: []uintptr{0x5020}, Go: []uintptr{0x10001, 0x10002, 0x10004}, Allocs: 1, AllocBytes: 50, PeakBytes: 50},
		{C: []uintptr{0x9010, 0}, Allocs: 1, AllocBytes: 7},
		{C: []uintptr{0x77777}, Allocs: 1, AllocBytes: 6},
		{C: []uintptr{0x5020}, Go: []uintptr{0x10001, 0x10003, 0x10005, 2, 0x1020, 0x5030, 0x10001, 0x10004, 0x10005, 0}, Allocs: 1, AllocBytes: 5},
		{C: []uintptr{0x5020}, Go: slices.Concat([]uintptr{threadName}, wordsOf("a thread of C")), Allocs: 1, AllocBytes: 4},
	}
	got, err := p.Profile(sites, 1)
	testcall.Must(t, err)
	// go tool pprof takes the first mapping for the program.
	if got.Mapping[0].File != "/bin/program" {
		t.Errorf("the first mapping is %v", got.Mapping[0])
	}
	var stacks []string
	for _, s := range got.Sample {
		names := []string{s.Label["library"][0]}
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, line.Function.Name)
			}
		}
		stacks = append(stacks, strings.Join(names, " "))
	}
	want := []string{
		"libfirst.so.1 libc.so.6+0x10 libfirst.so.1+0x10 program+0x10 main._Cfunc_f main.main", AskedByGo + " program+0x20 main._cgo_cmalloc main.main",
		"a library that was unloaded libc.so.6+0x10 [library that was unloaded]", "unknown [memory without a file]",
		"program program+0x20 main._Cfunc_f libfirst.so.1+0x20 program+0x30 main.main [called from C]",
		"program program+0x20 [thread a thread of C]",
	}
	if strings.Join(stacks, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", stacks, want)
	}
	if text := served(t, got); !strings.Contains(text, "libfirst.so.1+0x10") || !strings.Contains(text, "main._Cfunc_f") {
		t.Errorf("go tool pprof shows %s", text)
	}
	if v := got.Sample[0].Value; len(v) != 5 || v[0] != 2 || v[1] != 200 || v[2] != 1 || v[3] != 100 || v[4] != 150 {
		t.Errorf("values %v", v)
	}
	if l := p.Libraries(sites)[1]; l != (Library{Name: AskedByGo, Live: 50, Blocks: 1, Allocs: 50, Calls: 1, Peak: 50}) {
		t.Errorf("%+v", l)
	}
}

// wordsOf returns a name as a site has it.
func wordsOf(name string) (words []uintptr) {
	text := append([]byte(name), make([]byte, 16)...)[:16]
	for len(text) > 0 {
		if wordSize == 8 {
			words = append(words, uintptr(binary.NativeEndian.Uint64(text)))
		} else {
			words = append(words, uintptr(binary.NativeEndian.Uint32(text)))
		}
		text = text[wordSize:]
	}
	return words
}

// TestPlainName has symbols of C, C++ and Rust.
func TestPlainName(t *testing.T) {
	for symbol, want := range map[string]string{
		"sqlite3MemMalloc": "sqlite3MemMalloc",
		"_ZN6duckdb9DataChunk10InitializeERNS_9AllocatorE":                    "duckdb::DataChunk::Initialize",
		"_ZNSt6vectorIiSaIiEE7reserveEm":                                      "std::vector::reserve",
		"_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h0123456789abcdefE": "alloc::raw_vec::RawVec<T,A>::grow_one",
		"_RNvCs1234_7mycrate3foo":                                             "mycrate::foo",
		"_Znwm":                                                               "operator new",
	} {
		if got := plainName(symbol); got != want {
			t.Errorf("%s: %s, want %s", symbol, got, want)
		}
	}
}

// served returns what go tool pprof shows of a profile that a program serves. It asks the program for
// names of functions if the profile does not have all, and shows nothing if there is no answer.
func served(t *testing.T, p *profile.Profile) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/cheap/cmem" {
			http.NotFound(w, r)
		} else if err := p.Write(w); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-cum", server.URL+"/debug/cheap/cmem")
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("go tool pprof: %v", err)
	}
	return string(out)
}
