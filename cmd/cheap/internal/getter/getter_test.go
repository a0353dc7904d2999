package getter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// functions are those of C that the program calls: the type of the result, the parameters, the body, and
// the field that Go can read, "" if there is none.
var functions = []struct{ result, name, parameters, body, want string }{
	{"int", "number", "struct item *p", "return p->number;", "C.struct_item number"},
	{"unsigned", "natural", "const item *p", "return p->natural;", "C.item natural"},
	{"long", "longer", "struct item *p", "return p->number;", "C.struct_item number"},
	{"unsigned long", "longer_natural", "struct item *p", "return p->natural;", "C.struct_item natural"},
	{"int", "shorter", "struct item *p", "return (int)p->key;", "C.struct_item key"},
	{"int", "small", "struct item *p", "return p->small;", "C.struct_item small"},
	{"short", "little", "struct item *p", "return p->little;", "C.struct_item little"},
	{"unsigned char", "byte", "struct item *p", "return p->byte;", "C.struct_item byte"},
	{"_Bool", "truth", "struct item *p", "return p->truth;", "C.struct_item truth"},
	{"double", "real", "struct item *p", "return p->real;", "C.struct_item real"},
	{"float", "single", "struct item *p", "return p->single;", "C.struct_item single"},
	{"struct item *", "next", "struct item *p", "return p->next;", "C.struct_item next"},
	{"const char *", "text", "struct item *p", "return p->text;", "C.struct_item text"},
	{"int", "of_next", "struct item *p", "return p->next->inner.b;", "C.struct_item next.inner.b"},
	{"int", "inner", "struct item *p", "return p->inner.b;", "C.struct_item inner.b"},
	{"int", "element", "struct item *p", "return p->list[2];", "C.struct_item list[2]"},
	{"long", "second", "int n, struct item *p", "return p->key;", "C.struct_item key"},
	{"int", "keyword", "struct item *p", "return p->type;", "C.struct_item _type"},
	{"enum kind", "kind", "struct item *p", "return p->kind;", "C.struct_item kind"},
	{"int", "by_value", "node n", "return n.context[1];", "C.node context[1]"},
	{"const void *", "tree", "node n", "return n.tree;", "C.node tree"},
	{"int", "of_union", "struct item *p", "return p->either.number;", "C.struct_item either.number"},
	{"float", "of_union_too", "struct item *p", "return p->either.real;", "C.struct_item either.real"},
	{"unsigned", "inlined", "string s", "return s.value.pointer.length;", "C.string value.pointer.length"},
	{"char *", "text_of", "string s", "return s.value.pointer.text;", "C.string value.pointer.text"},
	{"int", "through", "struct item *p", "return in_file(p);", "C.struct_item number"},

	{"int", "sum", "struct item *p", "return p->number + 1;", ""},
	{"int", "two", "struct item *p", "return p->number + p->list[0];", ""},
	{"int", "masked", "struct item *p", "return p->natural & 0xff;", ""},
	{"int", "compared", "struct item *p", "return p->number != 0;", ""},
	{"int", "branch", "struct item *p", "return p ? p->number : 0;", ""},
	{"int", "checked", "struct item *p", "if (!p->next) abort(); return p->number;", ""},
	{"int", "indexed", "struct item *p, int i", "return p->list[i];", ""},
	{"int", "store", "struct item *p", "p->list[0]++; return p->number;", ""},
	{"int", "overwrites", "struct item *p", "p->list[0] = 1; return p->number;", ""},
	{"int", "sets_global", "struct item *p", "calls = 1; return p->number;", ""},
	{"int", "global", "struct item *p", "calls++; return p->number;", ""},
	{"int", "of_global", "struct item *p", "return calls;", ""},
	{"int", "called", "struct item *p", "return rand() ? p->number : p->number;", ""},
	{"int", "locked", "struct item *p", "return __atomic_fetch_add(&p->number, 0, __ATOMIC_SEQ_CST);", ""},
	{"int", "exchanged", "struct item *p", "return __sync_val_compare_and_swap(&p->number, 0, 0);", ""},
	{"int", "fenced", "struct item *p", "__atomic_thread_fence(__ATOMIC_SEQ_CST); return p->number;", ""},
	{"int", "is_volatile", "struct item *p", "return p->watched;", ""},
	{"int", "all_volatile", "volatile struct item *p", "return p->number;", ""},
	{"int", "is_atomic", "struct item *p", "return p->atomic;", ""},
	{"int", "reads_more", "struct item *p", "(void)*(volatile int *)&p->list[0]; return p->number;", ""},
	{"int", "loop", "struct item *p", "while (p->next) p = p->next; return p->number;", ""},
	{"int", "bits", "struct item *p", "return p->bits;", ""},
	{"int", "is_opaque", "struct opaque *p", "return *(int *)p;", ""},
	{"int", "is_void", "void *p", "return *(int *)p;", ""},
	{"int", "pointed", "int *p", "return *p;", ""},
	{"int", "argument", "int n", "return n;", ""},
	{"void *", "address", "struct item *p", "return &p->inner;", ""},
	{"unsigned", "bits_of_float", "struct item *p", "unsigned n; memcpy(&n, &p->single, 4); return n;", ""},
	{"long", "without_sign", "struct item *p", "return (unsigned)p->number;", ""},
	{"long", "with_sign", "struct item *p", "return (int)p->natural;", ""},
	{"int", "converted", "struct item *p", "return p->real;", ""},
	{"double", "to_double", "struct item *p", "return p->number;", ""},
	{"double", "wider", "struct item *p", "return p->single;", ""},
}

const types = `
#include <stdlib.h>
#include <string.h>
enum kind { one = 1, other };
typedef struct { int a, b; } pair;
typedef struct item {
	int number;
	unsigned natural;
	long key;
	signed char small;
	short little;
	unsigned char byte;
	_Bool truth;
	double real;
	float single;
	struct item *next;
	const char *text;
	pair inner;
	int list[4];
	int type;
	enum kind kind;
	volatile int watched;
	_Atomic int atomic;
	unsigned bits : 5;
	union { int number; float real; } either;
} item;
typedef struct { int context[4]; const void *id, *tree; } node;
typedef struct { union { struct { unsigned length; char prefix[4]; char *text; } pointer; struct { unsigned length; char text[12]; } inlined; } value; } string;
struct opaque;
`

// program makes a program that has the functions. They are in a file of C, in the preamble as static
// inline functions, or in a library.
func program(t *testing.T, where string) string {
	t.Helper()
	dir := t.TempDir()
	header, source, preamble := types+"extern int calls;\n", "", "#include \"library.h\"\n"
	calls := ""
	helper := "__attribute__((noinline)) static int in_file(struct item *p) { return p->number; }\n"
	if where != "inline" {
		source = "#include \"library.h\"\n" + helper
	} else {
		preamble += "static int in_file(struct item *p) { return p->number; }\n"
	}
	for _, f := range functions {
		head := fmt.Sprintf("%s f_%s(%s)", f.result, f.name, f.parameters)
		if where == "inline" {
			preamble += "static inline " + head + " { " + f.body + " }\n"
		} else {
			header += head + ";\n"
			source += head + " { " + f.body + " }\n"
		}
		var zeros []string
		for i, p := range strings.Split(f.parameters, ", ") {
			switch {
			case strings.HasPrefix(p, "node"), strings.HasPrefix(p, "string"):
				name, _, _ := strings.Cut(p, " ")
				zeros = append(zeros, "C."+name+"{}")
			case strings.HasPrefix(p, "int ") && !strings.Contains(p, "*"):
				zeros = append(zeros, fmt.Sprint(i))
			default:
				zeros = append(zeros, "nil")
			}
		}
		calls += fmt.Sprintf("\tC.f_%s(%s)\n", f.name, strings.Join(zeros, ", "))
	}
	lines := ""
	if where == "library" {
		lines = "#cgo LDFLAGS: -L${SRCDIR}/lib -lgetters\n"
	}
	files := map[string]string{
		"go.mod":    "module example.com/prog\n\ngo 1.24\n",
		"library.h": "#ifndef LIBRARY\n#define LIBRARY\n" + header + "#endif\n",
		"main.go":   "package main\n\n/*\n" + lines + preamble + "*/\nimport \"C\"\n\nfunc main() {\n" + calls + "}\n",
	}
	in := "library.c"
	if where == "library" {
		in = "lib/library.c"
		source = strings.ReplaceAll(source, "\"library.h\"", "\"../library.h\"")
	}
	files[in] = source + "int calls;\n"
	if where == "inline" {
		files[in] = "int calls;\n"
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func runIn(t *testing.T, dir string, name string, args ...string) {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, output)
	}
}

// TestFind builds programs, also for the other processor where there is a compiler for it: they are read,
// and not run.
func TestFind(t *testing.T) {
	t.Setenv("GOWORK", "off")
	cgo, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(cgo)) != "1" || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return // there is nothing to read
	}
	compilers := map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}
	if _, err := exec.LookPath(compilers[runtime.GOARCH]); err != nil {
		compilers[runtime.GOARCH] = "gcc"
	}
	for _, test := range []struct{ arch, where, flags string }{
		{runtime.GOARCH, "file", "-O2"},
		{runtime.GOARCH, "inline", "-O0"},
		{runtime.GOARCH, "library", "-Os"},
		{"amd64", "inline", "-O2 -fcf-protection=full"},
		{"arm64", "library", "-O2"},
		{"arm64", "inline", "-O0 -mbranch-protection=standard"},
	} {
		t.Run(test.arch+" "+test.where+" "+test.flags, func(t *testing.T) {
			compiler := compilers[test.arch]
			if _, err := exec.LookPath(compiler); err != nil {
				return // it is not installed
			}
			t.Setenv("GOARCH", test.arch)
			t.Setenv("CGO_ENABLED", "1")
			t.Setenv("CC", compiler)
			t.Setenv("CGO_CFLAGS", "-g "+test.flags)
			dir := program(t, test.where)
			var libraries []string
			if test.where == "library" {
				library := filepath.Join(dir, "lib", "libgetters.so")
				runIn(t, dir, compiler, append(strings.Fields(test.flags), "-shared", "-fPIC", "-o", library, "lib/library.c")...)
				libraries = []string{filepath.Join(dir, "none.so"), library}
			}
			runIn(t, dir, "go", "build", "-o", "prog", ".")
			p, err := Open(filepath.Join(dir, "prog"), libraries)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, f := range functions {
				got, err := p.Find("main._Cfunc_f_" + f.name)
				if f.want != "" && err != nil || f.want != strings.TrimSpace(got.Type+" "+got.Path) {
					t.Errorf("%s: %+v, %v, want %q", f.name, got, err, f.want)
				}
			}
		})
	}
}
