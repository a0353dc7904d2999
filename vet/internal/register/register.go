// Package register finds the calls that register functions with the collector.
package register

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// A Call is a call of runtime.SetFinalizer or runtime.AddCleanup that registers a function.
type Call struct {
	Unit *uses.Unit
	Call *ast.CallExpr
	Name string   // SetFinalizer or AddCleanup
	Ptr  ast.Expr // the object
	Func ast.Expr // the function
	Arg  ast.Expr // its argument, of AddCleanup
}

// OfCopy reports whether the object is a variable, or what it points to, and the function returns its value: what the caller has is another one, and keeps nothing
// alive.
func (c *Call) OfCopy() bool {
	value := func(e ast.Expr) types.Object { return c.Unit.ObjectOf(e) }
	x := ast.Unparen(c.Ptr)
	if addr, ok := x.(*ast.UnaryExpr); ok {
		x = addr.X
	} else {
		value = func(e ast.Expr) types.Object {
			if star, ok := ast.Unparen(e).(*ast.StarExpr); ok {
				return c.Unit.ObjectOf(star.X)
			}
			return nil
		}
	}
	v, found := c.Unit.ObjectOf(x), false
	c.Unit.Own(func(n ast.Node) {
		ret, ok := n.(*ast.ReturnStmt)
		named := ok && len(ret.Results) == 0 && c.Unit.IsResult(v) && ast.Unparen(c.Ptr) != x
		found = found || named || ok && slices.ContainsFunc(ret.Results, func(e ast.Expr) bool { return v != nil && value(e) == v })
	})
	return found
}

// Returned reports whether the object is a variable that each return statement of the function returns first, but for those that return nil.
func (c *Call) Returned() bool {
	v, all, found := c.Unit.ObjectOf(c.Ptr), true, false
	c.Unit.Own(func(n ast.Node) {
		if ret, ok := n.(*ast.ReturnStmt); ok && len(ret.Results) > 0 {
			is := v != nil && c.Unit.ObjectOf(ret.Results[0]) == v
			all, found = all && (is || types.ExprString(ret.Results[0]) == "nil"), found || is
		}
	})
	return all && found && c.Unit.Parent(c.Unit.Statement(c.Call)) == ast.Node(c.Unit.Body)
}

// Calls returns the calls in a package. SetFinalizer(x, nil) is none.
func Calls(p *source.Package) []Call {
	if !analyzer.Imports(p.Types, "runtime") {
		return nil
	}
	var list []Call
	for _, u := range uses.Units(p) {
		u.Own(func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return
			}
			switch f := p.Callee(call); {
			case source.IsFunc(f, "runtime", "SetFinalizer") && len(call.Args) == 2:
				if id, ok := ast.Unparen(call.Args[1]).(*ast.Ident); !ok || id.Name != "nil" {
					list = append(list, Call{u, call, f.Name(), call.Args[0], call.Args[1], nil})
				}
			case source.IsFunc(f, "runtime", "AddCleanup") && len(call.Args) == 3:
				list = append(list, Call{u, call, f.Name(), call.Args[0], call.Args[1], call.Args[2]})
			}
		})
	}
	return list
}
