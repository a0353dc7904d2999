// Package load reads packages before cgo, for the analyzers of this module. It needs neither a C
// compiler nor the headers of C libraries: what comes from C has an invalid type.
package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/cheapgo/cheap/vet/internal/source"
)

// Config says what to load.
type Config struct {
	Dir   string   // where go list runs; the current directory if empty
	Env   []string // beside the environment of the process
	Tags  string   // build tags, separated by commas
	Tests bool     // test files as well

	// Overlay has the contents of files that are read in place of those in the file system.
	Overlay map[string][]byte
}

// A listed is a package as go list prints it.
type listed struct {
	ImportPath, ForTest, Name, Dir string

	Standard, DepOnly                bool
	GoFiles, CgoFiles                []string
	CFiles, CXXFiles, MFiles, HFiles []string
	Imports                          []string
	ImportMap                        map[string]string
	Module                           *packages.Module
	Error                            *struct{ Pos, Err string }
}

// ErrNone is wrapped by the error of Load if nothing matches the patterns.
var ErrNone = errors.New("no packages match")

// Load returns the packages that the patterns name. What they import is loaded as well; of the
// standard library only the declarations are, unless a pattern names it. A package with test files
// comes once, with them.
//
// A package that cannot be read, or imports one that is not there, is left out. The packages that
// import it are not. If only its test files are broken, it comes without them. Broken has an error for
// each, of one line that begins with the package's path.
func Load(config Config, patterns ...string) (pkgs []*packages.Package, broken []error, err error) {
	list, err := config.list(patterns)
	if err != nil {
		return nil, nil, err
	}
	plan := newPlan(list)
	loader := &loader{config: config, fset: token.NewFileSet(), done: map[string]*packages.Package{}}
	withoutTests := map[string]*listed{}
	for _, p := range list {
		if plan.withTests[p.ImportPath] {
			withoutTests[p.ImportPath] = p
		}
		if !plan.needed[p.ImportPath] || plan.missing[p.ImportPath] != nil && p.DepOnly {
			continue
		}
		pkg, err := loader.load(p, plan.missing)
		if err != nil {
			path, _, _ := strings.Cut(p.ImportPath, " ")
			broken = append(broken, fmt.Errorf("%s: %w", path, err))
			plain := withoutTests[p.ForTest]
			if plain == nil || strings.HasSuffix(p.Name, "_test") {
				continue
			}
			if pkg, err = loader.load(plain, plan.missing); err != nil {
				continue
			}
		}
		if plan.isRoot(p) {
			pkgs = append(pkgs, pkg)
		}
	}
	if len(pkgs) == 0 && len(broken) == 0 {
		return nil, nil, fmt.Errorf("%w %s", ErrNone, strings.Join(patterns, " "))
	}
	return pkgs, broken, nil
}

// A plan says which of the listed packages are loaded. All are by their paths.
type plan struct {
	withTests map[string]bool // comes with its test files as another package
	needed    map[string]bool // a root, or imported by a needed one: what only the main package of a test imports is not
	missing   map[string]error
}

func newPlan(list []*listed) *plan {
	plan := &plan{map[string]bool{}, map[string]bool{}, map[string]error{}}
	for _, p := range list {
		if !p.DepOnly && p.ForTest != "" && !strings.HasSuffix(p.Name, "_test") {
			plan.withTests[p.ForTest] = true
		}
	}
	for _, p := range slices.Backward(list) { // a package is behind what it imports
		if !plan.needed[p.ImportPath] && !plan.isRoot(p) {
			continue
		}
		plan.needed[p.ImportPath] = true
		for _, path := range p.Imports {
			plan.needed[path] = true
		}
		if p.Error != nil && p.Name == "" {
			plan.missing[p.ImportPath] = oneLine(p.Error.Err)
		}
	}
	return plan
}

// isRoot reports whether Load returns the package.
func (plan *plan) isRoot(p *listed) bool {
	main := p.Name == "main" && strings.HasSuffix(p.ImportPath, ".test")
	return !p.DepOnly && !main && (p.ForTest != "" || !plan.withTests[p.ImportPath])
}

// oneLine returns the first line of what go list prints, with the second one if the first announces it.
func oneLine(text string) error {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if next, _, _ := strings.Cut(rest, "\n"); strings.HasSuffix(line, ":") {
		line += " " + strings.TrimSpace(next)
	}
	return errors.New(line)
}

// list returns the packages and all that they import, each behind what it imports.
func (c Config) list(patterns []string) ([]*listed, error) {
	args := []string{"list", "-e", "-deps", "-json=ImportPath,ForTest,Name,Dir,Standard,DepOnly,GoFiles,CgoFiles,CFiles,CXXFiles,MFiles,HFiles,Imports,ImportMap,Module,Error"}
	if c.Tests {
		args = append(args, "-test")
	}
	if c.Tags != "" {
		args = append(args, "-tags="+c.Tags)
	}
	cmd := exec.Command("go", append(append(args, "--"), patterns...)...)
	cmd.Dir = c.Dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=1"), c.Env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the command go is not in PATH: cheapvet needs it to list packages")
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", oneLine(strings.TrimPrefix(stderr.String(), "go: ")))
	}
	var list []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		list = append(list, p)
	}
}

type loader struct {
	config Config
	fset   *token.FileSet
	done   map[string]*packages.Package
}

// load returns a package, unless it was listed with an error, cannot be read, or imports one that is
// missing.
func (l *loader) load(p *listed, missing map[string]error) (*packages.Package, error) {
	if p.Error != nil && !p.DepOnly {
		return nil, oneLine(p.Error.Err)
	}
	pkg, err := l.done[p.ImportPath], error(nil)
	if pkg == nil {
		pkg, err = l.check(p, !p.DepOnly)
	}
	if err != nil {
		delete(l.done, p.ImportPath)
	}
	for _, path := range p.Imports {
		if err == nil {
			err = missing[path]
		}
	}
	return pkg, err
}

// check parses a package and checks its types.
func (l *loader) check(p *listed, root bool) (*packages.Package, error) {
	pkg := &packages.Package{
		ID: p.ImportPath, Name: p.Name, PkgPath: p.ImportPath, Dir: p.Dir, Module: p.Module,
		Fset: l.fset, TypesInfo: source.NewInfo(), TypesSizes: types.SizesFor("gc", goarch()),
		Imports: map[string]*packages.Package{},
	}
	pkg.PkgPath, _, _ = strings.Cut(pkg.PkgPath, " ")
	l.done[p.ImportPath] = pkg
	if p.ImportPath == "unsafe" {
		pkg.Types = types.Unsafe
		return pkg, nil
	}
	files, err := l.parse(p, pkg, root)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(p.CFiles, p.CXXFiles, p.MFiles, p.HFiles) {
		pkg.OtherFiles = append(pkg.OtherFiles, filepath.Join(p.Dir, name))
	}
	for _, path := range p.Imports {
		if dep := l.done[path]; dep != nil {
			pkg.Imports[path] = dep
		}
	}
	config := types.Config{
		FakeImportC:      true,
		IgnoreFuncBodies: p.Standard && !root,
		Sizes:            pkg.TypesSizes,
		Error:            func(error) {}, // what comes from C has no type
		Importer: importer(func(path string) (*types.Package, error) {
			if actual, ok := p.ImportMap[path]; ok {
				path = actual
			}
			if dep := l.done[path]; dep != nil && dep.Types != nil {
				return dep.Types, nil
			}
			return nil, fmt.Errorf("no package %s", path)
		}),
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	pkg.Types, _ = config.Check(pkg.PkgPath, l.fset, files, pkg.TypesInfo)
	if !config.IgnoreFuncBodies {
		pkg.Syntax, pkg.CompiledGoFiles = files, pkg.GoFiles
	}
	return pkg, nil
}

// parse parses the Go files of a package, and enters their names. A file of a package that is no root
// may have errors.
func (l *loader) parse(p *listed, pkg *packages.Package, root bool) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		pkg.GoFiles = append(pkg.GoFiles, name)
		var src any
		if text, ok := l.config.Overlay[name]; ok {
			src = text
		}
		f, err := parser.ParseFile(l.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil && root {
			return nil, err
		}
		if f != nil {
			files = append(files, f)
		}
	}
	return files, nil
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

func goarch() string {
	if arch := os.Getenv("GOARCH"); arch != "" {
		return arch
	}
	return runtime.GOARCH
}
