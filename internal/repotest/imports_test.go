package repotest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports says what each package of the root module, and the drop-in, may import beside the
// standard library: packages of the module by their path within it, others by
// their full path. Packages are named from the bottom up; nothing points back.
// The tests of a package may import what it may, itself, and what testsOnly
// says.
//
// "C" is cgo. Where it is not allowed the package works with CGO_ENABLED=0.
var imports = map[string][]string{
	"internal/sizeclass":     {},
	"internal/sizeclass/gen": {},
	"internal/pointerfree":   {},
	"internal/percpu":        {},
	"internal/account":       {},
	"internal/stacks":        {},
	"internal/leaks":         {},
	"internal/sample":        {"internal/stacks"},
	"internal/poison":        {},
	"internal/osmem":         {"internal/poison", "golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	"internal/race":          {"internal/osmem"},
	"internal/bump":          {},
	"internal/procfs":        {},
	"internal/cxxheader":     {},
	"internal/figure":        {},
	"internal/charts":        {},
	"internal/heappage":      {"internal/charts", "internal/figure"},
	"internal/census":        {"internal/sizeclass"},
	"internal/gcwatch":       {"internal/percpu", "internal/race"},
	"internal/span":          {"internal/gcwatch", "internal/osmem"},
	"internal/cgroup":        {"internal/procfs"},
	"internal/resident": {
		"internal/account", "internal/census", "internal/cgroup", "internal/figure", "internal/osmem", "internal/procfs", "internal/span", "golang.org/x/sys/unix",
	},
	"internal/guard":      {"internal/gcwatch", "internal/osmem", "internal/sample", "internal/span"},
	"internal/heap/fill":  {},
	"internal/heap/block": {},
	"internal/giveback":   {"internal/account", "internal/gcwatch", "internal/procfs", "internal/resident", "internal/span"},

	// One heap knows nothing of what is over it.
	"internal/heap": {
		"internal/account", "internal/census", "internal/gcwatch", "internal/guard", "internal/heap/block", "internal/heap/fill", "internal/osmem", "internal/percpu", "internal/poison",
		"internal/procfs", "internal/race", "internal/sample", "internal/sizeclass", "internal/span",
	},
	".": {
		"internal/bump", "internal/gcwatch", "internal/heap", "internal/heap/fill", "internal/leaks", "internal/osmem", "internal/percpu",
		"internal/pointerfree", "internal/poison", "internal/span",
	},

	"own/internal/bell":     {},
	"own/internal/batch":    {".", "internal/account", "internal/gcwatch", "internal/leaks", "internal/osmem", "internal/race", "internal/span", "internal/stacks", "own/internal/bell"},
	"own/internal/callback": {"internal/gcwatch", "internal/osmem", "own/internal/batch"},
	"own/internal/worker":   {"internal/account", "internal/gcwatch", "own/internal/batch", "own/internal/bell"},
	"own/internal/window":   {"internal/osmem", "internal/percpu", "internal/race", "own/internal/batch"},
	"own/internal/intake": {
		".", "internal/account", "internal/census", "internal/gcwatch", "internal/osmem", "internal/percpu",
		"internal/sample", "own/internal/batch", "own/internal/window",
	},
	"own": {
		".", "internal/account", "internal/bump", "internal/census", "internal/gcwatch", "internal/leaks", "internal/osmem", "internal/pointerfree",
		"internal/sample", "own/internal/intake", "own/internal/batch", "own/internal/callback", "own/internal/worker",
	},
	"pace":        {".", "internal/account", "internal/cgroup", "internal/gcwatch", "internal/giveback", "internal/procfs", "internal/race", "internal/resident", "internal/span"},
	"libc":        {"C", ".", "internal/account", "internal/procfs"},
	"libc/arenas": {"C", "internal/account", "internal/cgroup", "internal/giveback", "libc"},
	"calls":       {"C", ".", "internal/gcwatch"},
	"libc/cxx":    {"internal/cxxheader"},

	// For modules of this repository.
	"internal/symbols":         {},
	"internal/pagejson":        {},
	"internal/result":          {"internal/figure"},
	"internal/replay/trace":    {},
	"internal/replay/resident": {"internal/procfs"},
	"internal/replay/peers":    {"C", ".", "internal/replay/trace", "libc"},
	"internal/replay/expand":   {},
	"internal/replay/preload":  {"internal/replay/peers"},
	"internal/replay/recorded": {"internal/replay/trace"},
	"internal/replay":          {".", "internal/replay/peers", "internal/replay/resident", "internal/replay/trace"},
	"internal/cside":           {"C", "calls"},

	"asan": {"C", "internal/poison"},

	// A module of its own. A replace line may give it the path of another module, from which
	// nothing internal can be imported.
	"x/cgoalloc": {"C", ".", "libc"},

	// For tests; see forTests.
	"cheaptest":           {".", "internal/shadow"},
	"internal/shadow":     {},
	"internal/testcall":   {},
	"internal/testchild":  {"internal/testwait"},
	"internal/testenv":    {},
	"internal/testheap":   {"internal/gcwatch", "internal/osmem", "internal/procfs", "internal/race", "internal/sample", "internal/span", "internal/testcall", "internal/testchild", "internal/testwait"},
	"internal/testtrace":  {},
	"internal/testwait":   {},
	"internal/repotest":   {},
	"internal/ctouch":     {"C"},
	"libc/internal/ctest": {"C"},

	"internal/result/resulttest": {"internal/result"},

	"calls/internal/ctest": {"C", "calls"},
	"calls/callgen":        {},

	"libc/internal/cxxtest": {"C", "internal/cxxheader"},

	"own/internal/ctest": {"C", ".", "libc", "own"},

	// For docs/guide.md.
	"libc/internal/guide":         {"C", ".", "libc", "own"},
	"libc/internal/guide/widgets": {"C", ".", "libc", "own"},
}

// forTests are packages that only tests and packages for tests import, even where
// imports says otherwise. The same is true of package testing.
var forTests = []string{"cheaptest", "internal/shadow", "internal/testcall", "internal/testchild", "internal/testenv", "internal/testheap", "internal/testtrace", "internal/testwait", "internal/repotest", "internal/ctouch", "internal/result/resulttest", "libc/internal/ctest", "libc/internal/cxxtest", "calls/internal/ctest", "own/internal/ctest"}

// testsOnly says what the tests of a package may import beyond that.
var testsOnly = map[string][]string{
	".":                   {"asan", "internal/account", "internal/guard", "internal/race", "internal/sample", "internal/shadow", "internal/sizeclass", "internal/testchild", "internal/testheap"},
	"internal/heap/block": {"internal/testheap"},
	"internal/heap":       {"asan", "internal/shadow", "internal/testchild", "internal/testheap"},
	"asan":                {".", "cheaptest", "internal/ctouch", "internal/testchild"},
	"internal/ctouch":     {".", "internal/testchild"},
	"own":                 {"internal/cside", "internal/percpu", "internal/race", "internal/testchild", "internal/testtrace", "libc", "own/internal/bell"},
	"internal/cside":      {"."},
	"libc":                {"cheaptest", "internal/testchild", "libc/internal/ctest"},
	"calls":               {"calls/internal/ctest"},
	"own/internal/intake": {"own/internal/worker"},
	"x/cgoalloc":          {"cheaptest"},
	"cheaptest":           {"own"},
	"libc/arenas":         {"internal/testchild"},
	"pace":                {"internal/testchild", "libc", "libc/arenas", "own"},

	"internal/gcwatch": {"internal/testchild"},

	"internal/osmem": {"internal/procfs"},

	"internal/span": {"internal/procfs", "internal/testchild"},

	"libc/internal/cxxtest": {"internal/testchild", "libc", "own"},

	"own/internal/ctest": {"internal/gcwatch", "internal/race", "internal/testcall", "internal/testwait"},

	"libc/internal/guide": {"pace"},

	"libc/internal/guide/widgets": {"internal/testwait"},
}

// A goPackage is what go list prints of a package, as far as it matters here.
type goPackage struct {
	ImportPath, Dir string

	GoFiles, CgoFiles, IgnoredGoFiles []string
	TestGoFiles, XTestGoFiles         []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out := command(t, root(t), nil, "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...", "./x/cgoalloc/...")
	var list []goPackage
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// TestImports looks at all files, whatever system and build tags they are for.
func TestImports(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		name := "."
		if p.ImportPath != modulePath {
			name = strings.TrimPrefix(p.ImportPath, modulePath+"/")
		}
		seen[name] = true
		allowed, ok := imports[name]
		if !ok {
			t.Errorf("package %s is not in the table; say what it may import", name)
			continue
		}
		used := map[string]bool{}
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			may := allowed
			if strings.HasSuffix(file, "_test.go") {
				may = slices.Concat(allowed, testsOnly[name], []string{name, "internal/testcall", "internal/testenv", "internal/testwait"}) // any test may
			}
			for _, path := range importsOf(t, filepath.Join(p.Dir, file)) {
				used[path] = true
				if !isStandard(path) && !slices.Contains(may, path) {
					t.Errorf("%s imports %q, which package %s may not", filepath.Join(name, file), path, name)
				}
				if (path == "testing" || slices.Contains(forTests, path)) && !strings.HasSuffix(file, "_test.go") && !slices.Contains(forTests, name) {
					t.Errorf("%s imports %q, and is not for tests", filepath.Join(name, file), path)
				}
			}
		}
		for _, path := range slices.Concat(allowed, testsOnly[name]) {
			if !used[path] {
				t.Errorf("package %s may import %q, and does not; take it out of the table", name, path)
			}
		}
	}
	for name := range imports {
		if !seen[name] {
			t.Errorf("there is no package %s; take it out of the table", name)
		}
	}
}

// TestLinkname looks for uses of the runtime's internals. One package has them, two files of module cmem, and
// what cheap explain adds to the program that it builds.
func TestLinkname(t *testing.T) {
	t.Parallel()
	const only = "internal/percpu/"
	others := []string{"cmem/inline.go", "cmem/internal/asmcall/asmcall.go", "cmd/cheap/internal/explain/inside/inside.go.txt"}
	found := false
	textFiles(t, func(name, text string) {
		switch {
		case !strings.Contains("\n"+text, "\n//go:linkname "):
		case strings.HasPrefix(name, only):
			found = true
		case !slices.Contains(others, name):
			t.Errorf("%s has a go:linkname; they belong in %s", name, only)
		}
	})
	if !found {
		t.Errorf("no file in %s has a go:linkname", only)
	}
}

// importsOf returns the imports of a file, those of the module shortened as in
// the table.
func importsOf(t *testing.T, name string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range f.Imports {
		paths = append(paths, importPath(t, spec))
	}
	return paths
}

func importPath(t *testing.T, spec *ast.ImportSpec) string {
	t.Helper()
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		t.Fatal(err)
	}
	if path == modulePath {
		return "."
	}
	return strings.TrimPrefix(path, modulePath+"/")
}

// isStandard reports whether path, shortened as in the table, is of the
// standard library: its first element has no dot. Packages of the module look
// the same, and are in the table.
func isStandard(path string) bool {
	if _, ours := imports[path]; ours || path == "C" {
		return false
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
