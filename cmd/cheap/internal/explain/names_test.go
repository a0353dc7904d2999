package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// declared are the functions of a version of Go, as profiles name them.
type declared map[string]bool

// readDeclared reads the sources of the packages that the table names.
func readDeclared(t *testing.T, goroot string) declared {
	t.Helper()
	d := declared{}
	for _, pkg := range []string{"runtime", "sync", "internal/sync"} {
		files, err := filepath.Glob(filepath.Join(goroot, "src", filepath.FromSlash(pkg), "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no package %s", goroot, pkg)
		}
		for _, file := range files {
			switch {
			case strings.HasSuffix(file, "_test.go"):
			case strings.HasSuffix(file, ".go"):
				d.addGo(t, pkg, file)
			case strings.HasSuffix(file, ".s"):
				d.addAssembly(t, pkg, file)
			}
		}
	}
	return d
}

func (d declared) addGo(t *testing.T, pkg, file string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	testcall.Must(t, err)
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil && len(fn.Recv.List) == 1 {
			typ, star := fn.Recv.List[0].Type, false
			if s, ok := typ.(*ast.StarExpr); ok {
				typ, star = s.X, true
			}
			if generic, ok := typ.(*ast.IndexExpr); ok {
				typ = generic.X
			}
			if id, ok := typ.(*ast.Ident); ok && star {
				name = "(*" + id.Name + ")." + name
			} else if ok {
				name = id.Name + "." + name
			}
		}
		d[pkg+"."+name] = true
	}
}

var assembly = regexp.MustCompile(`(?m)^TEXT\s+([\w·∕/]+)`)

func (d declared) addAssembly(t *testing.T, pkg, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	testcall.Must(t, err)
	for _, m := range assembly.FindAllStringSubmatch(string(text), -1) {
		name := strings.ReplaceAll(strings.ReplaceAll(m[1], "∕", "/"), "·", ".")
		if strings.HasPrefix(name, ".") {
			name = pkg + name
		}
		d[name] = true
	}
}

// has reports whether a line of the table is of a function.
func (d declared) has(n name, ends bool) bool {
	pattern := n.pattern
	if base, _, found := strings.Cut(pattern, ".func"); found { // function literals in it
		pattern, ends = base, false
	}
	if !ends {
		return d[pattern]
	}
	for function := range d {
		if strings.HasPrefix(function, pattern) {
			return true
		}
	}
	return false
}

// TestNames compares the table with the sources of each version of Go that is here: no version
// may lack a name that it should have, and none may have one that it should not.
func TestNames(t *testing.T) {
	compared := 0
	for _, version := range []string{"1.24", "1.25", "1.26", "1.27"} {
		goroot := gorootOf(version)
		if goroot == "" {
			continue
		}
		compared++
		d := readDeclared(t, goroot)
		wildcards := map[*name]bool{}
		for _, n := range names.prefix {
			wildcards[n] = true
		}
		for i := range names.all {
			n := &names.all[i]
			pkg := packageOf(n.pattern)
			if pkg != "runtime" && pkg != "sync" && pkg != "internal/sync" {
				continue // cgo's names, and those of all system calls
			}
			should := n.first <= version && version <= n.last
			if got := d.has(*n, wildcards[n]); got != should {
				t.Errorf("%s in Go %s: declared: %v, in the table: %v", n.pattern, version, got, should)
			}
		}
	}
	if compared == 0 {
		t.Error("no version of Go was compared")
	}
}

// TestNamesOfCheap looks for the functions of this module that the table names.
func TestNamesOfCheap(t *testing.T) {
	const module = "github.com/cheapgo/cheap"
	d := declared{}
	for _, dir := range []string{"", "own", "own/internal/intake", "own/internal/worker", "own/internal/batch", "internal/watch/gcwatch", "libc"} {
		files, err := filepath.Glob(filepath.Join("../../../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %q", dir)
		}
		for _, file := range files {
			d.addGo(t, path.Join(module, dir), file)
		}
	}
	found := 0
	wildcards := map[*name]bool{}
	for _, n := range names.prefix {
		wildcards[n] = true
	}
	for i := range names.all {
		n := &names.all[i]
		if strings.HasPrefix(n.pattern, module) {
			found++
			if !d.has(*n, wildcards[n]) {
				t.Errorf("there is no %s", n.pattern)
			}
		}
	}
	if found == 0 {
		t.Error("the table has no name of this module")
	}
}

// gorootOf finds the sources of a minor version: those of the go command, or a toolchain in the
// module cache. It downloads nothing.
func gorootOf(version string) string {
	text, err := exec.Command("go", "env", "GOROOT", "GOVERSION", "GOMODCACHE").Output()
	fields := strings.Split(string(text), "\n")
	if err != nil || len(fields) < 3 {
		return ""
	}
	if strings.HasPrefix(fields[1], "go"+version+".") {
		return fields[0]
	}
	found, _ := filepath.Glob(filepath.Join(fields[2], "golang.org", "toolchain@*-go"+version+".*"))
	for _, goroot := range found {
		if _, err := os.Stat(filepath.Join(goroot, "src", "runtime", "proc.go")); err == nil {
			return goroot
		}
	}
	return ""
}

// TestNamesAreUsable looks for lines that can never be found.
func TestNamesAreUsable(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range names.all {
		if seen[n.pattern] {
			t.Errorf("%s is in the table twice", n.pattern)
		}
		seen[n.pattern] = true
		if n.mechanism == "" && n.purpose == "" {
			t.Errorf("%s says nothing", n.pattern)
		}
		if n.mechanism != "" && n.mechanism != mechTransition {
			mechanismIndex(n.mechanism) // panics for one that does not exist
		}
		if n.purpose != "" && purposeName(n.purpose) == "" {
			t.Errorf("%s has the purpose %q", n.pattern, n.purpose)
		}
		if path.Base(n.pattern) == "" || n.first > n.last {
			t.Errorf("%s: from %s to %s", n.pattern, n.first, n.last)
		}
	}
}

func TestFind(t *testing.T) {
	for function, want := range map[string]mechanism{
		"runtime.entersyscall":               mechTransition,
		"runtime.mallocgcSmallScanNoHeader":  mechAlloc,
		"runtime.mallocgcTinySC2":            mechAlloc,
		"main._Cfunc_noop":                   mechCrossing,
		"example.com/a/b%2ec._Cfunc_free":    mechCrossing,
		"main._Cfunc_CString":                mechGo,
		"main._cgoexp_0123456789ab_callback": mechCallback,
		"runtime.AddCleanup.func1":           mechRecord,
	} {
		if n := names.find(withoutTypes(function)); n == nil || n.mechanism != want {
			t.Errorf("%s: %+v, want %s", function, n, want)
		}
	}
	for _, function := range []string{"main.main", "main.(*T).entersyscall", "fmt.Println", ""} {
		if n := names.find(function); n != nil {
			t.Errorf("%s is known as %+v", function, n)
		}
	}
	if got := withoutTypes("runtime.AddCleanup[go.shape.struct { main.x [2]int },go.shape.int].func1"); got != "runtime.AddCleanup.func1" {
		t.Errorf("type parameters stay: %s", got)
	}
	if got := packageOf("example.com/a/b.(*T).M"); got != "example.com/a/b" {
		t.Errorf("package %q", got)
	}
}
