package keepalive

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/cheapgo/cheap/vet/internal/uses"
)

// diesAround reports whether nothing uses a variable of a function around u behind n, which is in
// u: neither u itself, but for the literal except, nor, behind a place at which u may run, what is
// around it.
func (c *checker) diesAround(u *uses.Unit, v *types.Var, n ast.Node, except *ast.FuncLit) bool {
	lit, ok := u.Node.(*ast.FuncLit)
	if !ok || c.usedAfter(u, v, n, except) {
		return false
	}
	around := c.around(lit)
	if around == nil {
		return false
	}
	index := slices.Index(around.Params(), v)
	for _, p := range c.places(around, v, lit) {
		switch {
		case index < 0 && !around.Local(v):
			if c.diesAround(around, v, p, lit) {
				return true
			}
		case c.usedAfter(around, v, p, lit) || c.stored(around, v) || index >= 0 && c.callersKeep(around, index, 0):
		default:
			return true
		}
	}
	return false
}

// places returns where a literal may run for the last time, as far as u tells: in the call that it
// is an argument of, or behind a return. It returns nil where something else has the literal, and
// with it v, or where a return has v beside the literal.
func (c *checker) places(u *uses.Unit, v *types.Var, lit *ast.FuncLit) []ast.Node {
	var f types.Object
	switch p := u.Parent(lit).(type) {
	case *ast.CallExpr:
		switch u.Parent(p).(type) {
		case *ast.DeferStmt, *ast.GoStmt:
			return nil
		}
		if c.isUse(p, v) {
			return nil
		}
		if _, builtin := c.pkg.ObjectOf(p.Fun).(*types.Builtin); builtin || c.pkg.IsConversion(p) {
			return nil
		}
		return []ast.Node{p}
	case *ast.ReturnStmt:
		if c.beside(u, p, v, lit) {
			return nil
		}
		return []ast.Node{p}
	case *ast.AssignStmt:
		if len(p.Lhs) == 1 && len(p.Rhs) == 1 {
			f = c.pkg.ObjectOf(p.Lhs[0])
		}
	case *ast.ValueSpec:
		if len(p.Names) == 1 && len(p.Values) == 1 {
			f = c.pkg.Info.Defs[p.Names[0]]
		}
	}
	// A local variable that has only this literal.
	has, _ := f.(*types.Var)
	if has == nil || !u.Local(has) || len(c.pkg.Given(has)) != 1 {
		return nil
	}
	var list []ast.Node
	kept := false
	ast.Inspect(u.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || c.pkg.Info.Uses[id] != has {
			return true
		}
		switch p := u.Parent(id).(type) {
		case *ast.CallExpr:
			_, deferred := u.Parent(p).(*ast.DeferStmt)
			_, started := u.Parent(p).(*ast.GoStmt)
			kept = kept || p.Fun != id || deferred || started || c.around(p) != u
			if !c.usedAfter(u, has, p, nil) {
				list = append(list, p)
			}
		case *ast.ReturnStmt:
			kept = kept || c.around(p) != u || c.beside(u, p, v, lit)
			list = append(list, p)
		default:
			kept = true
		}
		return true
	})
	if kept {
		return nil
	}
	return list
}

// isUse reports whether a call is v.h.Use or v.h.TryUse, where h is an owner of package own: that
// keeps v alive until the literal has returned. v.w.h.Use keeps w alive, and not v.
func (c *checker) isUse(call *ast.CallExpr, v *types.Var) bool {
	method, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Use" && method.Sel.Name != "TryUse" {
		return false
	}
	field, ok := ast.Unparen(method.X).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	h, _ := c.pkg.Info.Uses[field.Sel].(*types.Var)
	return c.handles[h] && c.pkg.ObjectOf(field.X) == v
}

// beside reports whether a return has a variable in a result, but for a literal.
func (c *checker) beside(u *uses.Unit, ret *ast.ReturnStmt, v *types.Var, lit *ast.FuncLit) bool {
	return slices.ContainsFunc(ret.Results, func(e ast.Expr) bool { return ast.Unparen(e) != lit && u.Mentions(e, v) })
}

// around returns the unit that a node is in.
func (c *checker) around(n ast.Node) *uses.Unit {
	for n = c.pkg.Parent(n); n != nil; n = c.pkg.Parent(n) {
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			for _, u := range c.units {
				if u.Node == n {
					return u
				}
			}
		}
	}
	return nil
}
