// Package source gives analyzers the Go files of a package as they were written, with the types
// that can be known without a C compiler.
//
// Drivers such as go vet hand an analyzer what cgo has made of a file. There C.free is a function
// with another name within a function literal, so analyzers of this module look at the files
// before cgo, as x/tools' cgocall does. What comes from C has an invalid type in them; all else
// has the types that it should have. A driver that has read the files before cgo itself, as
// package load does, has nothing to do twice.
package source

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/ctext"
)

// A Package is a package before cgo. It is not changed after it was made, so analyzers may use it
// at the same time.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Info  *types.Info
	Types *types.Package

	Cgo bool // a file imports "C"

	original *types.Package
	ctypes   map[string]bool
	cnames   map[string]bool       // what the package uses of C
	cused    map[string]ctext.Func // functions that the package uses and defines
	ctext    *ctext.Functions      // until the files are read

	declare  sync.Once // makes declared
	declared map[string]*Declaration

	once       sync.Once // makes the following
	parents    map[ast.Node]ast.Node
	values     map[types.Object][]ast.Expr
	declaredAs map[types.Object]ast.Expr // the types of variables
}

// Analyzer makes the *Package of a package.
var Analyzer = &analysis.Analyzer{
	Name:             "cgosource",
	Doc:              "read the files of a package before cgo",
	Run:              run,
	RunDespiteErrors: true,
	ResultType:       reflect.TypeFor[*Package](),
}

func run(pass *analysis.Pass) (any, error) {
	p := &Package{Fset: pass.Fset, Files: pass.Files, Info: pass.TypesInfo, Types: pass.Pkg, original: pass.Pkg}
	for _, f := range pass.Files {
		if importsC(f) {
			p.Cgo = true
		}
		if isTypes(pass.Pkg, f) {
			if err := p.recheck(pass); err != nil {
				return nil, err
			}
			break
		}
	}
	if p.Cgo {
		p.readC()
		others, read := pass.OtherFiles, pass.ReadFile
		if p.Types != p.original { // go vet does not name the files that cgo has had compiled
			others, read = p.beside(), os.ReadFile
		}
		p.readOther(others, read)
	}
	return p, nil
}

// beside returns the files in the folder of the package that belong to it on this system.
func (p *Package) beside() (names []string) {
	for _, f := range p.Files {
		if dir := filepath.Dir(p.Fset.File(f.FileStart).Name()); importsC(f) {
			list, _ := os.ReadDir(dir)
			for _, e := range list {
				if ok, _ := build.Default.MatchFile(dir, e.Name()); ok {
					names = append(names, filepath.Join(dir, e.Name()))
				}
			}
			break
		}
	}
	return names
}

// recheck parses the files before cgo, and checks the types of the whole package again.
func (p *Package) recheck(pass *analysis.Pass) error {
	imports := map[string]*types.Package{}
	p.Files, p.Cgo = nil, true
	for _, f := range pass.Files {
		if isTypes(pass.Pkg, f) {
			continue
		}
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if name, ok := pass.TypesInfo.PkgNameOf(spec), path != "C"; ok && name != nil {
				imports[path] = name.Imported()
			}
		}
		// A line directive of cgo leads to the file that it has read.
		name := pass.Fset.Position(f.Pos()).Filename
		if name != pass.Fset.File(f.FileStart).Name() {
			raw, err := parser.ParseFile(pass.Fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if errors.Is(err, fs.ErrNotExist) {
				// The go command takes what cgo has made of the same package in another folder, which is
				// gone, out of its cache. It runs a vet tool in the folder of the package.
				raw, err = parser.ParseFile(pass.Fset, filepath.Base(name), nil, parser.ParseComments|parser.SkipObjectResolution)
			}
			if err != nil {
				return fmt.Errorf("reading a file before cgo: %w", err)
			}
			if importsC(raw) {
				f = raw
			}
		}
		p.Files = append(p.Files, f)
	}
	p.Info = NewInfo()
	config := types.Config{
		FakeImportC: true,
		Sizes:       pass.TypesSizes,
		GoVersion:   pass.Pkg.GoVersion(),
		Error:       func(error) {}, // what comes from C has no type
		Importer: importer(func(path string) (*types.Package, error) {
			if imported := imports[path]; imported != nil {
				return imported, nil
			}
			if path == "unsafe" {
				return types.Unsafe, nil
			}
			return nil, fmt.Errorf("no package %s", path)
		}),
	}
	p.Types, _ = config.Check(pass.Pkg.Path(), pass.Fset, p.Files, p.Info)
	return nil
}

// isTypes reports whether f is the file with the types and the functions of C, which cgo writes.
// Its name may be any.
func isTypes(pkg *types.Package, f *ast.File) bool {
	obj := pkg.Scope().Lookup("_Cgo_ptr")
	return obj != nil && f.FileStart <= obj.Pos() && obj.Pos() < f.FileEnd
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// NewInfo returns an Info with all that the analyzers read.
func NewInfo() *types.Info {
	return &types.Info{
		Types:        map[ast.Expr]types.TypeAndValue{},
		Instances:    map[*ast.Ident]types.Instance{},
		Defs:         map[*ast.Ident]types.Object{},
		Uses:         map[*ast.Ident]types.Object{},
		Implicits:    map[ast.Node]types.Object{},
		Selections:   map[*ast.SelectorExpr]*types.Selection{},
		Scopes:       map[ast.Node]*types.Scope{},
		FileVersions: map[*ast.File]string{},
	}
}

func importsC(f *ast.File) bool {
	for _, spec := range f.Imports {
		if spec.Path.Value == `"C"` {
			return true
		}
	}
	return false
}

// Object returns the object of pass.Pkg that declares what obj does: facts belong to it. It is
// nil if there is none. Objects of other packages are returned as they are.
func (p *Package) Object(obj *types.Func) *types.Func {
	obj = obj.Origin()
	if obj.Pkg() != p.Types || p.Types == p.original {
		return obj
	}
	if recv := obj.Signature().Recv(); recv != nil {
		name := TypeName(recv.Type())
		if name == nil {
			return nil
		}
		original, _ := p.original.Scope().Lookup(name.Name()).(*types.TypeName)
		if original == nil {
			return nil
		}
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(original.Type()), true, p.original, obj.Name())
		f, _ := m.(*types.Func)
		return f
	}
	f, _ := p.original.Scope().Lookup(obj.Name()).(*types.Func)
	return f
}

// TypeObject returns the name in pass.Pkg of a type, as Object does for functions.
func (p *Package) TypeObject(name *types.TypeName) *types.TypeName {
	if name.Pkg() != p.Types || p.Types == p.original {
		return name
	}
	original, _ := p.original.Scope().Lookup(name.Name()).(*types.TypeName)
	return original
}

// TypeName returns the name of a named type, or of what a pointer to one points to, or nil.
func TypeName(t types.Type) *types.TypeName {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	if named, ok := t.(*types.Named); ok {
		return named.Origin().Obj()
	}
	return nil
}

// ObjectOf returns what an identifier, perhaps in parentheses, declares or uses, or nil.
func (p *Package) ObjectOf(e ast.Expr) types.Object {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		return p.Info.ObjectOf(id)
	}
	return nil
}

// Named returns the variable or the field that an expression names, perhaps by address, or nil.
func (p *Package) Named(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return p.Info.ObjectOf(e)
	case *ast.SelectorExpr:
		return p.Info.ObjectOf(e.Sel)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return p.Named(e.X)
		}
	}
	return nil
}

// Receiver returns the variable or the field that gets the value of an expression, or nil.
func (p *Package) Receiver(e ast.Expr) types.Object {
	switch s := p.Parent(e).(type) {
	case *ast.ValueSpec:
		for i, v := range s.Values {
			if v == e {
				return p.Info.Defs[s.Names[i]]
			}
		}
	case *ast.AssignStmt:
		for i, v := range s.Rhs {
			if v == e && len(s.Lhs) == len(s.Rhs) {
				return p.Named(s.Lhs[i])
			}
		}
	case *ast.KeyValueExpr:
		return p.Named(s.Key)
	}
	return nil
}

// Callee returns the function or method that is called, if that is known from the call alone:
// not for function values and methods of interfaces.
func (p *Package) Callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) {
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	return p.Func(fun)
}

// Func returns the function or method that an expression names, or nil.
func (p *Package) Func(e ast.Expr) *types.Func {
	var id *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		id = e
	case *ast.SelectorExpr:
		id = e.Sel
	default:
		return nil
	}
	f, _ := p.Info.Uses[id].(*types.Func)
	if f == nil || f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
		return nil
	}
	return f.Origin()
}

// IsFunc reports whether f is the function of that name in the package of that path.
func IsFunc(f *types.Func, path, name string) bool {
	return f != nil && f.Name() == name && f.Pkg() != nil && f.Pkg().Path() == path && f.Signature().Recv() == nil
}

// Parent returns the node that n is a part of, or nil.
func (p *Package) Parent(n ast.Node) ast.Node {
	p.once.Do(p.index)
	return p.parents[n]
}

// Values returns what declarations and assignments give a variable: for each of several results the
// call.
func (p *Package) Values(v types.Object) []ast.Expr {
	p.once.Do(p.index)
	return p.values[v]
}

// Given is Values without calls with several results.
func (p *Package) Given(v types.Object) []ast.Expr {
	return slices.DeleteFunc(slices.Clone(p.Values(v)), func(e ast.Expr) bool { return p.Receiver(e) != v })
}

// Literal returns the function literal that an expression is, or that its variable is given and
// nothing else, or nil.
func (p *Package) Literal(e ast.Expr) *ast.FuncLit {
	if list := p.Values(p.ObjectOf(e)); len(list) == 1 {
		e = list[0]
	}
	lit, _ := ast.Unparen(e).(*ast.FuncLit)
	return lit
}

func (p *Package) index() {
	p.parents, p.values, p.declaredAs = map[ast.Node]ast.Node{}, map[types.Object][]ast.Expr{}, map[types.Object]ast.Expr{}
	gets := func(e ast.Expr, i int, values []ast.Expr) {
		if v := p.ObjectOf(e); v != nil && len(values) > 0 {
			p.values[v] = append(p.values[v], values[min(i, len(values)-1)])
		}
	}
	for _, f := range p.Files {
		var stack []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			if len(stack) > 0 {
				p.parents[n] = stack[len(stack)-1]
			}
			stack = append(stack, n)
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, e := range n.Lhs {
					gets(e, i, n.Rhs)
				}
			case *ast.Field:
				for _, name := range n.Names {
					p.declaredAs[p.Info.Defs[name]] = n.Type
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					gets(name, i, n.Values)
					p.declaredAs[p.Info.Defs[name]] = n.Type
				}
			}
			return true
		})
	}
}
