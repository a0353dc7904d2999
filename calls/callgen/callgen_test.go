package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// needCompiler skips a test where there is no C compiler.
func needCompiler(t *testing.T) {
	out, err := exec.Command("go", "env", "CC").Output()
	testcall.Must(t, err)
	if _, err := exec.LookPath(strings.Fields(string(out))[0]); err != nil {
		t.Skip("there is no C compiler")
	}
}

// TestCommitted writes the file of the tests of package calls again.
func TestCommitted(t *testing.T) {
	needCompiler(t)
	dir := filepath.Join("..", "internal", "ctest")
	source, err := os.ReadFile(filepath.Join(dir, "mock.go"))
	testcall.Must(t, err)
	_, line, _ := strings.Cut(string(source), "calls/callgen ")
	line, _, _ = strings.Cut(line, "\n")
	want, err := os.ReadFile(filepath.Join(dir, "lists.go"))
	testcall.Must(t, err)
	t.Chdir(dir)
	t.Setenv("GOPACKAGE", "ctest")
	out := filepath.Join(t.TempDir(), "lists.go")
	args := strings.Fields(strings.Replace(line, "-o lists.go", "", 1))
	j := job{out: "lists.go", include: args[1], strip: args[3], typ: "Calls", pkg: "ctest", names: args[4:]}
	got, err := j.generate()
	testcall.Must(t, err)
	if !bytes.Equal(got, want) {
		os.WriteFile(out, got, 0o666)
		t.Errorf("lists.go is not what callgen writes; run go generate ./calls/internal/ctest")
	}
}

// A prototype is a declaration, and the method that is written for it, or why there is none. In
// each text % stands for the number of the prototype.
type prototype struct{ name, c, method, refused string }

var prototypes = []prototype{
	{"f%", "int f%(void);", "func (c Calls) F%() calls.Result {", ""},
	{"f%", "void f%(void);", "func (c Calls) F%() {", ""},
	{"f%", "long f%(unsigned long x, size_t n, char c, _Bool b);", "func (c Calls) F%(x uint64, n uint64, c0 int8, b bool) calls.Result {", ""},
	{"f%", "struct s%; void f%(struct s% *p, const struct s% *q, struct s% **r, void *type);", "func (c Calls) F%(p *C.struct_s%, q *C.struct_s%, r0 unsafe.Pointer, type0 unsafe.Pointer) {", ""},
	{"f%", "typedef struct s% t%; typedef struct s% *handle; void f%(t% *p, const t% *q, handle h);", "func (c Calls) F%(p *C.t%, q *C.t%, h C.handle) {", ""},
	{"f%", "void f%(void (*done)(void *), int, double d[3]);", "func (c Calls) F%(a0 unsafe.Pointer, a1 int32, a2 unsafe.Pointer) {", ""},
	{"f%", "void f%(void (*done)(void *), int (*why)(int, int), double values[3]);", "func (c Calls) F%(done unsafe.Pointer, why unsafe.Pointer, values unsafe.Pointer) {", ""},
	{"lib_do_it", "float lib_do_it(float a_b, double B);", "func (c Calls) DoIt(aB float32, b float64) calls.Result {", ""},
	{"f%", "enum e% { A = -1 }; enum u% { B }; enum e% f%(enum u% x);", "func (c Calls) F%(x uint32) calls.Result {", ""},
	{"f%", "static inline unsigned char f%(signed char x) { return x; }", "func (c Calls) F%(x int8) calls.Result {", ""},
	{"f%", "struct s%; typedef struct s% type; typedef struct s% *func; void f%(type *p, func q, struct s% *map);", "func (c Calls) F%(p *C.struct_s%, q *C.struct_s%, map0 *C.struct_s%) {", ""},
	{"f%", "double f%(int uint64, float float64);", "func (c Calls) F%(uint640 int32, float640 float32) calls.Result {", ""},
	{"_", "int _(int x);", "func (c Calls) F(x int32) calls.Result {", ""},
	{"f%", "typedef int type%(int); type% f%;", "func (c Calls) F%(a0 int32) calls.Result {", ""},
	{"f%", "struct s% { int x; }; int f%(struct s% *p);\n#define f%(p) ((p)->x)", "func (c Calls) F%(p *C.struct_s%) calls.Result {", ""},

	{"f%", "int f%(const char *format, ...);", "", "f%: it is variadic"},
	{"f%", "int f%();", "", "f%: it is variadic, or declared without a prototype"},
	{"f%", "struct point { int x, y; }; void f%(int a, struct point p);", "", "f%: parameter 2 is a struct that is passed by value"},
	{"f%", "typedef struct { int x; } t%; t% f%(void);", "", "f%: the result is a struct that is passed by value"},
	{"f%", "union u% { int x; }; void f%(union u% x);", "", "f%: parameter 1 is a union that is passed by value"},
	{"f%", "void f%(long double x);", "", "f%: parameter 1 is of a type that a word does not hold"},
	{"f%", "double _Complex f%(void);", "", "f%: the result is of a type that a word does not hold"},
	{"f%", "void f%(__int128 x);", "", "f%: parameter 1 is of a type that a word does not hold"},
	{"f%", "extern int f%;", "", "f% is not a function"},
	{"f%", "extern int (*f%)(int);", "", "f% is not a function, but of the type *func(int) int"},
	{"f%", "typedef int f%(int);", "", "f%:1:"},
	{"f%", "#define f%(x) (x)", "", "f%:1:"},
	{"nonesuch", "", "", "nonesuch:1:"},
	{"f;int", "", "", "\"f;int\" is not the name of a function"},
	{"list", "int list(void);", "", "the field List"},
	{"f%", "void f%(" + strings.Repeat("int, ", 32) + "int);", "", "f%: it has 33 parameters"},
}

// outcome says which prototypes callgen reads in one run: those that it writes, those that it refuses
// together, and those that the compiler refuses. Two end the run by themselves.
func (p prototype) outcome() string {
	switch {
	case p.method != "":
		return "written"
	case strings.HasSuffix(p.refused, ":1:"):
		return "not compiled"
	case p.name == "f;int" || p.name == "list":
		return p.name
	}
	return "refused"
}

// TestPrototypes reads prototypes of all kinds.
func TestPrototypes(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	header := "#include <stddef.h>\n"
	all := map[string][]prototype{} // by outcome
	for i, p := range prototypes {
		for _, text := range []*string{&p.name, &p.c, &p.method, &p.refused} {
			*text = strings.ReplaceAll(*text, "%", strconv.Itoa(i))
		}
		header += p.c + "\n"
		all[p.outcome()] = append(all[p.outcome()], p)
	}
	testcall.Must(t, os.WriteFile(filepath.Join(dir, "f.h"), []byte(header), 0o666))
	for outcome, some := range all {
		out := filepath.Join(dir, "lists.go")
		args := []string{"-include", "f.h", "-strip", "lib_", "-package", "p", "-o", out}
		for _, p := range some {
			args = append(args, p.name)
		}
		var stderr bytes.Buffer
		code, want := run(args, &stderr), 1
		text := stderr.String()
		if outcome == "written" {
			want = 0
			file, err := os.ReadFile(out)
			testcall.Want(t, err)
			text += string(file)
		}
		if code != want {
			t.Errorf("%s: status %d, want %d", outcome, code, want)
		}
		for _, p := range some {
			if !strings.Contains(text, p.method+p.refused) {
				t.Errorf("%s: no %s in\n%s", p.c, p.method+p.refused, text)
			}
		}
	}
}

// TestPreamble reads the preamble of a Go file, with flags for the compiler.
func TestPreamble(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	write := func(name, text string) {
		testcall.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	write("binding.go", "//go:build linux && cgo\n\npackage binding\n\n// #cgo CFLAGS: -DTYPE=short\n// #cgo noescape f\n// #cgo nonesuch CFLAGS: -DTYPE=long\n// /* A function. */\n// static TYPE f(TYPE x) { return x; }\nimport \"C\"\n")
	write("other.go", "package binding\n\n/*\n#cgo CFLAGS: -DOTHER=1\n*/\nimport \"C\"\n")
	out := filepath.Join(dir, "lists.go")
	var stderr bytes.Buffer
	if code := run([]string{"-from", filepath.Join(dir, "binding.go"), "-type", "Batch", "-o", out, "f"}, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	text, err := os.ReadFile(out)
	testcall.Must(t, err)
	for _, part := range []string{
		"//go:build linux && cgo\n", "package binding\n", "// static TYPE f(TYPE x) { return x; }\n",
		"type Batch struct{ List *calls.List }", "func (c Batch) F(x int16) calls.Result",
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if strings.Contains(string(text), "#cgo") {
		t.Errorf("the #cgo lines were copied, which are true of the whole package:\n%s", text)
	}
}

// TestUsage gives wrong arguments.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"f"}, {"-from", "a.go"}, {"-from", "a.go", "-include", "a.h", "f"}, {"-nonesuch"}, {"-from", "a.go", "-cgo", "LDFLAGS: -lm", "f"}, {"-include", "a.h", "-type", "a b", "f"}, {"-include", "a.h", "-package", "a-b", "f"}} {
		if code := run(args, &bytes.Buffer{}); code != 2 {
			t.Errorf("%q: status %d, want 2", args, code)
		}
	}
	if code := run([]string{"-from", "nonesuch.go", "f"}, &bytes.Buffer{}); code != 1 {
		t.Errorf("status %d for a file that does not exist", code)
	}
}

// TestRefused gives several functions that are refused: each is named.
func TestRefused(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	testcall.Must(t, os.WriteFile(filepath.Join(dir, "f.h"), []byte("int f(int, ...); int g(int); extern int h; long double i(void);\n"), 0o666))
	var stderr bytes.Buffer
	code := run([]string{"-include", "f.h", "-package", "p", "-o", filepath.Join(dir, "lists.go"), "f", "g", "h", "i"}, &stderr)
	if lines := strings.Split(strings.TrimSpace(stderr.String()), "\n"); code != 1 || len(lines) != 3 {
		t.Errorf("status %d, and %q, want a line for f, h and i", code, lines)
	}
	if _, err := os.Stat(filepath.Join(dir, "lists.go")); err == nil {
		t.Error("a file was written")
	}
}

// TestNamesOfMethods has two functions whose methods would have one name.
func TestNamesOfMethods(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	testcall.Must(t, os.WriteFile(filepath.Join(dir, "f.h"), []byte("int f(int); int f_args(int); int g(void); int g_args(void);\n"), 0o666))
	out := filepath.Join(dir, "lists.go")
	var stderr bytes.Buffer
	if code := run([]string{"-include", "f.h", "-package", "p", "-o", out, "f", "f_args"}, &stderr); code != 1 || !strings.Contains(stderr.String(), "FArgs has the name of f\n") {
		t.Errorf("status %d: %s", code, stderr.String())
	}
	if code := run([]string{"-include", "f.h", "-package", "p", "-o", out, "g", "g_args"}, &stderr); code != 0 {
		t.Error(stderr.String())
	}
}

// TestLinks builds a program of packages that record calls of functions of the same names: two
// that had no Go file before, and one with two types. A function has a macro of its name, and some
// have the names that variables in the code of callgen could have.
func TestLinks(t *testing.T) {
	needCompiler(t)
	// The libraries of C may be for this processor only.
	host, err := exec.Command("go", "env", "GOHOSTARCH").Output()
	testcall.Must(t, err)
	t.Setenv("GOARCH", strings.TrimSpace(string(host)))
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	testcall.Must(t, err)
	for _, name := range []string{"go.mod", "go.sum"} { // what the module requires, its program requires
		text, err := os.ReadFile(filepath.Join(root, name))
		testcall.Must(t, err)
		const module = "module github.com/cheapgo/cheap\n"
		write(name, strings.Replace(string(text), module, "module links\n\nrequire github.com/cheapgo/cheap v0.0.0\n\nreplace github.com/cheapgo/cheap => "+strconv.Quote(root)+"\n", 1))
	}
	write("main.go", "package main\n\nimport (\n\t\"links/one\"\n\t\"links/two\"\n)\n\nfunc main() { _, _, _ = one.Calls{}, two.Calls{}, two.Others{} }\n")
	for _, args := range []string{"one Calls", "two Calls", "two Others"} {
		pkg, typ, _ := strings.Cut(args, " ")
		write(filepath.Join(pkg, "f.h"), `struct s { int x; };
static int f(struct s *p) { return p->x; }
#define f(p) ((p)->x)
static int run(int append) { return append; }
static double w(double uint64, int float64) { return uint64 + float64; }
static void op(void) {}
`)
		var stderr bytes.Buffer
		if code := run([]string{"-include", "f.h", "-package", pkg, "-type", typ, "-o", filepath.Join(dir, pkg, typ+".go"), "f", "run", "w", "op"}, &stderr); code != 0 {
			t.Fatal(stderr.String())
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-o", os.DevNull) // so that the build cache has the packages the next time
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
