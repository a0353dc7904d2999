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

// imports says what each package of the root module may import beside the
// standard library: packages of the module by their path within it, others by
// their full path. Packages are named from the bottom up; nothing points back.
// The tests of a package may import what it may, itself, and what testsOnly
// says.
//
// "C" is cgo. Where it is not allowed the package works with CGO_ENABLED=0.
var imports = map[string][]string{
	"internal/sizeclass":   {},
	"internal/pointerfree": {},
	"internal/race":        {},
	"internal/percpu":      {},
	"internal/account":     {},
	"internal/osmem":       {"golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	"internal/span":        {"internal/osmem"},

	".": {
		"internal/account", "internal/osmem", "internal/percpu", "internal/pointerfree",
		"internal/race", "internal/sizeclass", "internal/span",
	},

	"own":      {".", "internal/account", "internal/osmem", "internal/percpu", "internal/pointerfree", "internal/race"},
	"pace":     {".", "internal/account"},
	"libc":     {"C", "."},
	"cgoalloc": {"C", ".", "libc"},
	"cgoparam": {"."},

	// For tests.
	"cheaptest":           {"."},
	"internal/shadow":     {},
	"internal/repotest":   {},
	"libc/internal/ctest": {"C"},

	// For docs/guide.md.
	"libc/internal/guide": {"C", ".", "libc", "own"},
}

// testsOnly says what the tests of a package may import beyond that.
var testsOnly = map[string][]string{
	".":         {"internal/shadow"},
	"libc":      {"cheaptest", "libc/internal/ctest"},
	"cgoalloc":  {"cheaptest"},
	"cgoparam":  {"cheaptest"},
	"cheaptest": {"own"},
	"pace":      {"own"},
}

// A goPackage is what go list prints of a package, as far as it matters here.
type goPackage struct {
	ImportPath, Dir string

	GoFiles, CgoFiles, IgnoredGoFiles []string
	TestGoFiles, XTestGoFiles         []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out := command(t, root(t), nil, "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
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
				may = slices.Concat(allowed, testsOnly[name], []string{name})
			}
			for _, path := range importsOf(t, filepath.Join(p.Dir, file)) {
				used[path] = true
				if !isStandard(path) && !slices.Contains(may, path) {
					t.Errorf("%s imports %q, which package %s may not", filepath.Join(name, file), path, name)
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
