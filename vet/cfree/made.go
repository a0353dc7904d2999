package cfree

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"github.com/cheapgo/cheap/vet/internal/uses"
)

// makesObject matches the names of functions of C whose result somebody has to release.
var makesObject = regexp.MustCompile(`(?i)(open|new|create|alloc|init|parse|load|dup|clone|copy|make|start|connect|begin|prepare)`)

// checkObjects reports what a function of C has made, where the function releases it, or puts it into a field which the package releases,
// but not on the way to some return.
func (c *checker) checkObjects(u *uses.Unit) {
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		name := c.pkg.C(call.Fun)
		if makesObject.MatchString(name) && !lends.MatchString(name) && !c.pkg.Allocates(name) && !c.pkg.IsConversion(call) && !c.pkg.Declared(name).Borrowed() {
			c.checkObject(u, call, name)
		}
	})
}

// checkObject looks for a return at which an object of C is lost.
func (c *checker) checkObject(u *uses.Unit, call *ast.CallExpr, name string) {
	use := u.Assigned(call, 0, c.calls)
	if use.Role != uses.Names || use.Inner || len(c.pkg.Values(use.Var)) != 1 {
		return
	}
	fate := u.Fate(use.Var, false, c.calls)
	search := uses.Search{From: call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{}, Overwrites: map[ast.Node]bool{}}
	freed, field := false, false
	for _, use := range slices.Concat(fate.Uses, fate.Inner) {
		if use.Node == call || use.Role == uses.Writes {
			continue
		}
		search.Stop[use.Node] = true
		freed = freed || use.Role == uses.Frees
		field = field || use.Role == uses.Keeps && use.Field != nil && len(c.freed[use.Field]) > 0
		if use.Role == uses.Keeps && use.Node.Pos() < call.Pos() {
			return
		}
	}
	if !freed && !field {
		return
	}
	for _, v := range fate.Vars {
		search.Nil[v] = true
	}
	search.Err, _ = u.LastResult(call)
	ret, ok := u.Find(search).(*ast.ReturnStmt)
	if !ok || c.failed(u, ret, use.Var) || !freed && (len(ret.Results) == 0 || !c.isError(u, ret)) {
		return
	}
	c.lostAt(call, ret, "object", "C."+name, "")
}

// failed reports whether a return is under a condition that compares a variable, or asks whether it is valid: there is nothing to release.
func (c *checker) failed(u *uses.Unit, ret ast.Node, v types.Object) bool {
	found := false
	for n := u.Parent(ret); n != nil && n != u.Node; n = u.Parent(n) {
		s, ok := n.(*ast.IfStmt)
		if !ok {
			continue
		}
		ast.Inspect(s.Cond, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.LOR { // v == nil || status != OK
					x, ok := ast.Unparen(n.X).(*ast.BinaryExpr)
					found = found || ok && types.ExprString(x.Y) == "nil" && c.pkg.Variable(x.X) == v && !u.Mentions(n.Y, v)
				}
				if n.Op != token.LAND && n.Op != token.LOR && types.ExprString(n.Y) != "nil" { // the search knows nil
					found = found || c.pkg.Variable(n.X) == v || c.pkg.Variable(n.Y) == v
				}
			case *ast.CallExpr:
				name := c.pkg.C(n.Fun)
				if f := c.pkg.Callee(n); f != nil {
					name = f.Name()
				}
				found = found || name != "" && validName.MatchString(name) && u.Mentions(n, v)
			}
			return true
		})
	}
	return found
}
