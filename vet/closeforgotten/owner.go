package closeforgotten

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// An owner is a call that makes one.
type owner struct {
	call *ast.CallExpr
	v    types.Object // the variable with the owner, nil if the result of the call has it
}

// owners returns the calls that make owners, with the local variables that get them.
func (c *checker) owners(u *uses.Unit) []owner {
	var list []owner
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		if f := c.pkg.Callee(call); f != nil && (c.makes[f] || f.Pkg() != c.pkg.Types && c.ImportObjectFact(f, new(Makes))) {
			list = append(list, owner{call, nil})
			return
		}
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || len(call.Args) == 0 {
			return
		}
		switch sel.Sel.Name {
		case "Own", "OwnWith", "Make": // o.Own(pool, ...)
		default:
			return
		}
		if !c.pools[root(c.pkg, call.Args[0])] && !c.pools[c.pkg.Named(call.Args[0])] {
			return
		}
		if v := root(c.pkg, sel.X); u.Local(v) && !c.alias(u, v) {
			list = append(list, owner{call, v})
		}
	})
	return list
}

// alias reports whether a variable points to what another one has, or is an element of a list.
func (c *checker) alias(u *uses.Unit, v types.Object) bool {
	found := false
	u.Own(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if len(n.Lhs) != len(n.Rhs) || c.pkg.ObjectOf(lhs) != v {
					continue
				}
				addr, ok := ast.Unparen(n.Rhs[i]).(*ast.UnaryExpr)
				if !ok || addr.Op != token.AND {
					continue
				}
				_, lit := ast.Unparen(addr.X).(*ast.CompositeLit)
				found = found || !lit
			}
		case *ast.RangeStmt:
			found = found || n.Value != nil && c.pkg.ObjectOf(n.Value) == v
		}
	})
	return found
}

// root returns the variable at the beginning of an expression: x of x.f.g.
func root(p *source.Package, e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return p.Info.ObjectOf(x)
		case *ast.SelectorExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		default:
			return nil
		}
	}
}
