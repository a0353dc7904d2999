// Package perobject defines an Analyzer that finds registrations with the collector for single
// objects of C.
//
// # Analyzer perobject
//
// perobject: report a finalizer or a cleanup for each object of C
//
// A registration with the collector for each object costs about as much as ten pairs of malloc and
// free, and each collection visits each of them. The analyzer reports runtime.SetFinalizer and
// runtime.AddCleanup with a function that ends in a call of C which releases something: a function,
// a method such as (*T).Free, a method value or a literal, through calls of functions in Go and
// through a go statement:
//
//	runtime.SetFinalizer(image, (*Image).free) // C.image_free
//
// An owner of package own does the same for a fifth to a third of the time: own.Handle in a field
// of the type, and the function of C as Options.Release.
//
// It says nothing if the function releases something that is not of C. Whether a function of C
// releases is seen from its name, as in free, destroy, unref, close and finalize.
//
// The findings are of these kinds: finalizer and cleanup.
package perobject

import (
	_ "embed"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/register"
	"github.com/cheapgo/cheap/vet/internal/source"
)

//go:embed perobject.go
var doc string

// Analyzer reports registrations with the collector for single objects of C.
var Analyzer = analyzer.New("perobject", doc, run, new(Releases))

// Releases marks functions that end in a call of C which releases something.
type Releases struct {
	C string // the name of the function of C
}

// AFact marks facts.
func (*Releases) AFact() {}

func (f *Releases) String() string { return "releases by C." + f.C }

type checker struct {
	*analysis.Pass
	pkg    *source.Package
	bodies map[*types.Func]*ast.BlockStmt
	known  map[*types.Func]string // with other for functions that release something else as well
}

// other stands for what is not of C, and underway for a function whose body is being looked at.
const other, underway = "-", "?"

func run(pass *analysis.Pass, pkg *source.Package) {
	c := &checker{Pass: pass, pkg: pkg, bodies: map[*types.Func]*ast.BlockStmt{}, known: map[*types.Func]string{}}
	calls := register.Calls(pkg)
	if len(calls) == 0 && !pkg.Cgo {
		return
	}
	for _, f := range pkg.Files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				if fn, ok := pkg.Info.Defs[d.Name].(*types.Func); ok {
					c.bodies[fn] = d.Body
				}
			}
		}
	}
	for _, call := range calls {
		if values := pkg.Values(pkg.ObjectOf(call.Ptr)); len(values) == 1 {
			if _, of := pkg.Result(values[0]); of != "" {
				continue // memory of C, for which SetFinalizer ends the program
			}
		}
		name := ""
		if lit := pkg.Literal(call.Func); lit != nil {
			name = c.body(lit.Body)
		} else if f := pkg.Func(call.Func); f != nil {
			name = c.function(f)
		} else {
			name = pkg.C(call.Func)
		}
		if name == "" || name == other {
			continue
		}
		kind := "finalizer"
		if call.Name == "AddCleanup" {
			kind = "cleanup"
		}
		analyzer.Report(pass, call.Call, kind, "a %s for each object, which ends in C.%s: an own.Handle does this for a fifth to a third of the time", kind, name)
	}
	if pkg.Cgo {
		for f := range c.bodies {
			if obj := pkg.Object(f); obj != nil && f.Exported() {
				if name := c.function(f); name != "" && name != other {
					pass.ExportObjectFact(obj, &Releases{name})
				}
			}
		}
	}
}

// function returns the name of the function of C that a function calls to release something, other if it releases something else as
// well, or the empty string.
func (c *checker) function(f *types.Func) string {
	body, ok := c.bodies[f]
	if !ok {
		var fact Releases
		if f.Pkg() != nil && f.Pkg() != c.pkg.Types && c.ImportObjectFact(f, &fact) {
			return fact.C
		}
		return ""
	}
	if name, ok := c.known[f]; ok {
		return name
	}
	c.known[f] = underway // what a recursive call finds
	c.known[f] = c.body(body)
	return c.known[f]
}

func (c *checker) body(body *ast.BlockStmt) string {
	name := ""
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || name == other {
			return name != other
		}
		by := c.pkg.C(call.Fun)
		if f := c.pkg.Callee(call); by != "" && !c.pkg.Releases(by) {
			by = ""
		} else if b, ok := c.pkg.ObjectOf(call.Fun).(*types.Builtin); ok && (b.Name() == "close" || b.Name() == "delete") || isValue(c.pkg, call) || f != nil && (f.Name() == "Unpin" || f.Name() == "Delete" && f.Pkg() != nil && f.Pkg().Path() == "runtime/cgo") {
			by = other
		} else if f != nil {
			switch by = c.function(f); {
			case by == underway:
				by = ""
			case by == "" && c.pkg.Releases(f.Name()) && !analyzer.Declares("runtime", f) && !c.callsC(f):
				by = other
			}
		}
		if name == "" || by == other {
			name = by
		}
		return true
	})
	return name
}

// isValue reports whether a call is of what a variable or a field has, such as a context.CancelFunc.
func isValue(p *source.Package, call *ast.CallExpr) bool {
	e := ast.Unparen(call.Fun)
	if sel, ok := e.(*ast.SelectorExpr); ok {
		e = sel.Sel
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = p.Info.Uses[id].(*types.Var)
	return ok
}

// callsC reports whether the body of a function calls C, so that what it releases by its name is of C, perhaps.
func (c *checker) callsC(f *types.Func) bool {
	if body := c.bodies[f]; body != nil {
		for n := range ast.Preorder(body) {
			if call, ok := n.(*ast.CallExpr); ok && c.pkg.C(call.Fun) != "" {
				return true
			}
		}
	}
	return false
}
