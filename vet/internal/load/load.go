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
	DepsErrors                       []*struct{ Err string }
}

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
	withTests := map[string]bool{}
	for _, p := range list {
		if !p.DepOnly && p.ForTest != "" && !strings.HasSuffix(p.Name, "_test") {
			withTests[p.ForTest] = true
		}
	}
	isRoot := func(p *listed) bool {
		main := p.Name == "main" && strings.HasSuffix(p.ImportPath, ".test")
		return !p.DepOnly && !main && (p.ForTest != "" || !withTests[p.ImportPath])
	}
	// What only the main package of a test imports is not needed.
	needed := map[string]bool{}
	missing := map[string]error{}
	for _, p := range slices.Backward(list) {
		if !needed[p.ImportPath] && !isRoot(p) {
			continue
		}
		needed[p.ImportPath] = true
		for _, path := range p.Imports {
			needed[path] = true
		}
		if p.Error != nil && p.Name == "" {
			missing[p.ImportPath] = oneLine(p.Error.Err)
		}
	}
	loader := &loader{config: config, fset: token.NewFileSet(), done: map[string]*packages.Package{}}
	check := func(p *listed) (*packages.Package, error) {
		if p.Error != nil && !p.DepOnly {
			return nil, oneLine(p.Error.Err)
		}
		pkg, err := loader.done[p.ImportPath], error(nil)
		if pkg == nil {
			pkg, err = loader.check(p, !p.DepOnly)
		}
		if err != nil {
			delete(loader.done, p.ImportPath)
		}
		for _, path := range p.Imports {
			if err == nil {
				err = missing[path]
			}
		}
		return pkg, err
	}
	withoutTests := map[string]*listed{}
	for _, p := range list {
		if withTests[p.ImportPath] {
			withoutTests[p.ImportPath] = p
		}
		if !needed[p.ImportPath] || missing[p.ImportPath] != nil && p.DepOnly {
			continue
		}
		pkg, err := check(p)
		if err != nil {
			path, _, _ := strings.Cut(p.ImportPath, " ")
			broken = append(broken, fmt.Errorf("%s: %w", path, err))
			plain := withoutTests[p.ForTest]
			if plain == nil || strings.HasSuffix(p.Name, "_test") {
				continue
			}
			if pkg, err = check(plain); err != nil {
				continue
			}
		}
		if isRoot(p) {
			pkgs = append(pkgs, pkg)
		}
	}
	if len(pkgs) == 0 && len(broken) == 0 {
		return nil, nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	return pkgs, broken, nil
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

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

func goarch() string {
	if arch := os.Getenv("GOARCH"); arch != "" {
		return arch
	}
	return runtime.GOARCH
}
