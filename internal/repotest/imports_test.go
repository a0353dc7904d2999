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

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// imports says what each package of the root module, and the drop-in, may import beside the
// standard library: packages of the module by their path within it, others by
// their full path. Packages are named from the bottom up; nothing points back.
// The tests of a package may import what it may, itself, and what testsOnly
// says.
//
// "C" is cgo. Where it is not allowed the package works with CGO_ENABLED=0.
var imports = map[string][]string{
	"internal/mem/sizeclass":     {},
	"internal/mem/sizeclass/gen": {},
	"internal/mem/pointerfree":   {},
	"internal/mem/percpu":        {},
	"internal/mem/account":       {},
	"internal/watch/stacks":      {},
	"internal/watch/leaks":       {},
	"internal/watch/sample":      {"internal/watch/stacks"},
	"internal/mem/poison":        {},
	"internal/mem/osmem":         {"internal/mem/poison", "golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	"internal/mem/race":          {"internal/mem/osmem"},
	"internal/mem/bump":          {},
	"internal/watch/procfs":      {},
	"internal/cxxheader":         {},
	"internal/page/figure":       {},
	"internal/page/charts":       {},
	"internal/page/heappage":     {"internal/page/charts", "internal/page/figure"},
	"internal/watch/census":      {"internal/mem/sizeclass"},
	"internal/watch/gcwatch":     {"internal/mem/percpu", "internal/mem/race"},
	"internal/mem/span":          {"internal/watch/gcwatch", "internal/mem/osmem"},
	"internal/watch/cgroup":      {"internal/watch/procfs"},
	"internal/watch/resident": {
		"internal/mem/account", "internal/watch/census", "internal/watch/cgroup", "internal/page/figure", "internal/page/symbols", "internal/mem/osmem", "internal/watch/procfs", "internal/mem/span", "golang.org/x/sys/unix",
	},
	"internal/watch/guard":  {"internal/watch/gcwatch", "internal/mem/osmem", "internal/watch/sample", "internal/mem/span"},
	"internal/heap/fill":    {},
	"internal/heap/block":   {},
	"internal/mem/giveback": {"internal/mem/account", "internal/watch/gcwatch", "internal/watch/procfs", "internal/watch/resident", "internal/mem/span"},

	// One heap knows nothing of what is over it.
	"internal/heap": {
		"internal/mem/account", "internal/watch/census", "internal/watch/gcwatch", "internal/watch/guard", "internal/heap/block", "internal/heap/fill", "internal/mem/osmem", "internal/mem/percpu", "internal/mem/poison",
		"internal/watch/procfs", "internal/mem/race", "internal/watch/sample", "internal/mem/sizeclass", "internal/mem/span",
	},
	".": {
		"internal/mem/bump", "internal/watch/gcwatch", "internal/heap", "internal/heap/fill", "internal/watch/leaks", "internal/mem/osmem", "internal/mem/percpu",
		"internal/mem/pointerfree", "internal/mem/poison", "internal/mem/span",
	},

	"own/internal/bell":     {},
	"own/internal/batch":    {".", "internal/mem/account", "internal/watch/gcwatch", "internal/watch/leaks", "internal/mem/osmem", "internal/mem/race", "internal/mem/span", "internal/watch/stacks", "own/internal/bell"},
	"own/internal/callback": {"internal/watch/gcwatch", "internal/mem/osmem", "own/internal/batch"},
	"own/internal/worker":   {"internal/mem/account", "internal/watch/gcwatch", "own/internal/batch", "own/internal/bell"},
	"own/internal/window":   {"internal/mem/osmem", "internal/mem/percpu", "internal/mem/race", "own/internal/batch"},
	"own/internal/intake": {
		".", "internal/mem/account", "internal/watch/census", "internal/watch/gcwatch", "internal/mem/osmem", "internal/mem/percpu",
		"internal/watch/sample", "own/internal/batch", "own/internal/window",
	},
	"own": {
		".", "internal/mem/account", "internal/mem/bump", "internal/watch/census", "internal/watch/gcwatch", "internal/watch/leaks", "internal/mem/osmem", "internal/mem/pointerfree",
		"internal/watch/sample", "own/internal/intake", "own/internal/batch", "own/internal/callback", "own/internal/worker",
	},
	"pace":        {".", "internal/mem/account", "internal/watch/cgroup", "internal/watch/gcwatch", "internal/mem/giveback", "internal/watch/procfs", "internal/mem/race", "internal/watch/resident", "internal/mem/span"},
	"libc":        {"C", ".", "internal/mem/account", "internal/watch/procfs"},
	"libc/arenas": {"C", "internal/mem/account", "internal/watch/cgroup", "internal/mem/giveback", "libc"},
	"calls":       {"C", ".", "internal/watch/gcwatch"},
	"libc/cxx":    {"internal/cxxheader"},

	// For modules of this repository.
	"internal/page/symbols":    {},
	"internal/page/pagejson":   {},
	"internal/page/result":     {"internal/page/figure"},
	"internal/replay/trace":    {},
	"internal/replay/resident": {"internal/watch/procfs"},
	"internal/replay/peers":    {"C", ".", "internal/replay/trace", "libc"},
	"internal/replay/expand":   {},
	"internal/replay/preload":  {"internal/replay/peers"},
	"internal/replay/recorded": {"internal/replay/trace"},
	"internal/replay":          {".", "internal/replay/peers", "internal/replay/resident", "internal/replay/trace"},
	"internal/test/cside":      {"C", "calls"},

	"asan": {"C", "internal/mem/poison"},

	// A module of its own. A replace line may give it the path of another module, from which
	// nothing internal can be imported.
	"x/cgoalloc": {"C", ".", "libc"},

	// For tests; see forTests.
	"cheaptest":               {".", "internal/test/shadow"},
	"internal/test/shadow":    {},
	"internal/test/testcall":  {},
	"internal/test/testchild": {"internal/test/testwait"},
	"internal/test/testenv":   {},
	"internal/test/testheap":  {"internal/watch/gcwatch", "internal/mem/osmem", "internal/watch/procfs", "internal/mem/race", "internal/watch/sample", "internal/mem/span", "internal/test/shadow", "internal/test/testcall", "internal/test/testchild", "internal/test/testwait"},
	"internal/test/testtrace": {},
	"internal/test/testwait":  {},
	"internal/repotest":       {},
	"internal/test/ctouch":    {"C"},
	"libc/internal/ctest":     {"C"},

	"internal/page/result/resulttest": {"internal/page/result"},

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
var forTests = []string{"cheaptest", "internal/test/shadow", "internal/test/testcall", "internal/test/testchild", "internal/test/testenv", "internal/test/testheap", "internal/test/testtrace", "internal/test/testwait", "internal/repotest", "internal/test/ctouch", "internal/page/result/resulttest", "libc/internal/ctest", "libc/internal/cxxtest", "calls/internal/ctest", "own/internal/ctest"}

// testsOnly says what the tests of a package may import beyond that.
var testsOnly = map[string][]string{
	".":                    {"asan", "internal/mem/account", "internal/watch/guard", "internal/mem/race", "internal/watch/sample", "internal/test/shadow", "internal/mem/sizeclass", "internal/test/testchild", "internal/test/testheap"},
	"internal/heap/block":  {"internal/test/testheap"},
	"internal/heap":        {"asan", "internal/test/shadow", "internal/test/testchild", "internal/test/testheap"},
	"asan":                 {".", "cheaptest", "internal/test/ctouch", "internal/test/testchild"},
	"internal/test/ctouch": {".", "internal/test/testchild"},
	"own":                  {"internal/test/cside", "internal/mem/percpu", "internal/mem/race", "internal/test/testchild", "internal/test/testtrace", "libc", "own/internal/bell"},
	"internal/test/cside":  {"."},
	"libc":                 {"cheaptest", "internal/test/testchild", "libc/internal/ctest"},
	"calls":                {"calls/internal/ctest"},
	"own/internal/intake":  {"own/internal/worker"},
	"x/cgoalloc":           {"cheaptest"},
	"cheaptest":            {"own"},
	"libc/arenas":          {"internal/test/testchild"},
	"pace":                 {"internal/test/testchild", "libc", "libc/arenas", "own"},

	"internal/watch/gcwatch": {"internal/test/testchild"},

	"internal/mem/osmem": {"internal/watch/procfs"},

	"internal/mem/span": {"internal/watch/procfs", "internal/test/testchild"},

	"libc/internal/cxxtest": {"internal/test/testchild", "libc", "own"},

	"own/internal/ctest": {"internal/watch/gcwatch", "internal/mem/race", "internal/test/testcall", "internal/test/testwait"},

	"libc/internal/guide": {"pace"},

	"libc/internal/guide/widgets": {"internal/test/testwait"},
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
				may = slices.Concat(allowed, testsOnly[name], []string{name, "internal/test/testcall", "internal/test/testenv", "internal/test/testwait"}) // any test may
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

// TestLinkname looks for uses of the runtime's internals. One package has them, three files of module cmem,
// what cheap explain adds to the program that it builds, and one that is recorded in tests, which has odd labels.
func TestLinkname(t *testing.T) {
	t.Parallel()
	const only = "internal/mem/percpu/"
	others := []string{"cmem/inline.go", "cmem/unixmmap.go", "cmem/internal/asmcall/asmcall.go", "cmd/cheap/internal/explain/inside/inside.go.txt", "cmd/cheap/testdata/record/main.go"}
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
	testcall.Must(t, err)
	var paths []string
	for _, spec := range f.Imports {
		paths = append(paths, importPath(t, spec))
	}
	return paths
}

func importPath(t *testing.T, spec *ast.ImportSpec) string {
	t.Helper()
	path, err := strconv.Unquote(spec.Path.Value)
	testcall.Must(t, err)
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
