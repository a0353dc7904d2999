package symbols

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// build builds a small program with these flags, and returns its name.
func build(t *testing.T, program string, flags ...string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	testcall.Must(t, os.WriteFile(source, []byte("package main\n\nfunc main() { println(1) }\n"), 0o666))
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", program}, flags, []string{source})...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestDebugFile has a program without symbols, and a file with those, in the folder for such files.
func TestDebugFile(t *testing.T) {
	t.Parallel()
	debug := t.TempDir()
	folder := filepath.Join(debug, ".build-id", "12")
	testcall.Must(t, os.MkdirAll(folder, 0o777))
	program := build(t, filepath.Join(t.TempDir(), "main"), "-ldflags=-s -B=0x123456")
	whole, err := Read(build(t, filepath.Join(folder, "3456.debug"), "-ldflags=-B=0x123456"), true)
	testcall.Must(t, err)
	if none, err := read(program, true, t.TempDir()); err != nil || len(none.functions) != 0 {
		t.Fatalf("%d functions without the file; %v", len(none.functions), err)
	}
	if table, err := read(program, true, debug); err != nil || len(whole.functions) == 0 || !slices.Equal(table.functions, whole.functions) {
		t.Errorf("%d functions, want %d; %v", len(table.functions), len(whole.functions), err)
	}
}

// TestRead builds a program, and looks for a function by its offset in the file. The file of this
// test has no symbols: go test leaves them out.
func TestRead(t *testing.T) {
	t.Parallel()
	program := build(t, filepath.Join(t.TempDir(), "main"))
	f, err := elf.Open(program)
	testcall.Must(t, err)
	defer f.Close()
	all, err := f.Symbols()
	testcall.Must(t, err)
	const name = "main.main"
	at := Value(all, name)
	if at == 0 || Value(all, "no such symbol") != 0 {
		t.Fatalf("%#x", at)
	}
	table, err := Read(program, true)
	testcall.Must(t, err)
	for _, l := range table.Loads {
		if at < l.Vaddr || at >= l.Vaddr+l.Filesz {
			continue
		}
		offset := at - l.Vaddr + l.Off
		if got := table.At(offset + 1); got != name {
			t.Errorf("%q, want %q", got, name)
		}
		if got := table.At(offset - 1); got == name {
			t.Errorf("%q before its beginning", got)
		}
		without, err := Read(program, false)
		testcall.Must(t, err)
		if got := without.At(offset + 1); got != "" {
			t.Errorf("%q, without the functions of Go", got)
		}
		return
	}
	t.Errorf("no segment has %#x", at)
}

// TestNext has the same table.
func TestNext(t *testing.T) {
	t.Parallel()
	table := Table{
		Loads:     []elf.ProgHeader{{Off: 0x100, Vaddr: 0x5000, Filesz: 0x50}},
		functions: []function{{0x5000, 0x5010, "__libc_malloc"}, {0x5000, 0x5010, "malloc"}, {0x5020, 0x5030, "free"}},
	}
	for offset, want := range map[uint64]string{0xff: "", 0x100: "free", 0x118: "free", 0x120: "", 0x200: ""} {
		if got := table.Next(offset); got != want {
			t.Errorf("behind %#x is %q, want %q", offset, got, want)
		}
	}
}

// TestAt has a function with two names, a gap, a file that is loaded elsewhere, and no file.
func TestAt(t *testing.T) {
	t.Parallel()
	table := Table{
		Loads:     []elf.ProgHeader{{Off: 0x100, Vaddr: 0x5000, Filesz: 0x50}},
		functions: []function{{0x5000, 0x5010, "__libc_malloc"}, {0x5000, 0x5010, "malloc"}, {0x5020, 0x5200, "free"}},
	}
	got := map[uint64]string{}
	for _, offset := range []uint64{0xff, 0x100, 0x10f, 0x110, 0x120, 0x14f, 0x150, 0x5000} {
		got[offset] = table.At(offset)
	}
	want := map[uint64]string{0xff: "", 0x100: "malloc", 0x10f: "malloc", 0x110: "", 0x120: "free", 0x14f: "free", 0x150: "", 0x5000: ""}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := Read("/no/such/file", true); err == nil {
		t.Error("no error of a file that is not there")
	}
}

func TestAllocatorOf(t *testing.T) {
	for function, want := range map[string]string{
		"duckdb_je_pages_map": "jemalloc (duckdb_je_)", "je_malloc": "jemalloc", "_rjem_je_extent_alloc_mmap": "jemalloc (_rjem_je_)",
		"_rjem_malloc": "jemalloc (_rjem_)", "_mi_os_alloc": "mimalloc", "mi_malloc": "mimalloc", "tc_malloc": "tcmalloc",
		"_ZN8tcmalloc7SysAllocEm": "tcmalloc", "malloc": "", "project_map": "", "": "",
	} {
		if got := AllocatorOf(function); got != want {
			t.Errorf("%q: %q, want %q", function, got, want)
		}
	}
}

// TestAllocatorIn has a library that ld makes of a text, whose linker keeps "malloc" as the end of another name.
func TestAllocatorIn(t *testing.T) {
	t.Parallel()
	for i, row := range []struct{ text, want string }{
		{"int a(void) { return 1; } int je_malloc;", ""},
		{"void *malloc(unsigned long n); void *mi_malloc(unsigned long n) { return malloc(n); }", "mimalloc is in 1.so, beside malloc: what it maps is seen, and not its blocks"},
		{"void *malloc(unsigned long n) { return 0; } void *x_je_malloc(unsigned long n) { return malloc(n); }", "jemalloc (x_je_) is in 2.so, as malloc"},
		{"void *malloc(unsigned long n) { return 0; } void *cmem_malloc(void) { return 0; } void *je_malloc(void) { return 0; }", "jemalloc is in 3.so, beside malloc: what it maps is seen, and not its blocks"},
	} {
		file := filepath.Join(t.TempDir(), strconv.Itoa(i)+".so")
		cc := exec.Command("cc", "-shared", "-fno-builtin", "-nostdlib", "-x", "c", "-o", file, "-")
		cc.Stdin = strings.NewReader(row.text)
		if out, err := cc.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := AllocatorIn(file, file); got.Line != row.want {
			t.Errorf("%q: %q, want %q", row.text, got.Line, row.want)
		}
	}
}
