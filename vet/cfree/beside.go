package cfree

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// findBeside finds the results of a function that it returns alive together with an error. Its caller loses such a
// result if it returns at the error. Only errors count that are there for certain:
//
//	if C.db_check(db) != 0 {
//		return db, errors.New("...")
//	}
func (c *checker) findBeside(u *uses.Unit) {
	if u.Obj == nil || len(c.results[u.Obj]) == 0 {
		return
	}
	of := u.Obj.Signature().Results()
	last := of.Len() - 1
	if last < 1 || c.asksNil(u, 1) || of.At(last).Type() != types.Universe.Lookup("error").Type() {
		return
	}
	var returns []*ast.ReturnStmt
	u.Own(func(n ast.Node) {
		if ret, ok := n.(*ast.ReturnStmt); ok {
			returns = append(returns, ret)
		}
	})
	for _, ret := range returns {
		if len(ret.Results) != last+1 || !c.isError(u, ret) {
			continue
		}
		for _, i := range c.results[u.Obj] {
			v := c.pkg.ObjectOf(ret.Results[i])
			if i < last && u.Local(v) && !slices.Contains(c.beside[u.Obj], i) && c.aliveAt(u, v, ret) {
				c.beside[u.Obj] = append(c.beside[u.Obj], i)
			}
		}
	}
}

// isError reports whether the last result of a return statement is an error for certain: a new one, one that a package declares, or a
// variable that is not nil by the if statement around it.
func (c *checker) isError(u *uses.Unit, ret *ast.ReturnStmt) bool {
	switch e := ast.Unparen(ret.Results[len(ret.Results)-1]).(type) {
	case *ast.CallExpr:
		f := c.pkg.Callee(e)
		return source.IsFunc(f, "errors", "New") || source.IsFunc(f, "fmt", "Errorf")
	case *ast.SelectorExpr:
		return isSentinel(c.pkg.Info.Uses[e.Sel])
	case *ast.Ident:
		if isSentinel(c.pkg.ObjectOf(e)) {
			return true
		}
		block, _ := u.Parent(ret).(*ast.BlockStmt)
		s, ok := u.Parent(block).(*ast.IfStmt)
		if !ok || s.Body != block {
			return false
		}
		cond, ok := ast.Unparen(s.Cond).(*ast.BinaryExpr)
		return ok && cond.Op == token.NEQ && c.pkg.ObjectOf(cond.X) == c.pkg.ObjectOf(e) && types.ExprString(cond.Y) == "nil" && len(block.List) == 1
	}
	return false
}

// isSentinel reports whether an object is a variable of a package whose name says that it is an error, such as ErrClosed.
func isSentinel(v types.Object) bool {
	return v != nil && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() && (len(v.Name()) > 3 && strings.EqualFold(v.Name()[:3], "err") || v.Name() == "EOF")
}

// validName matches the names of functions that say whether C has made something.
var validName = regexp.MustCompile(`(?i)^(\w*_)?(is_?|has_?|not_?)*(valid|invalid|nil|null|none|empty|zero|ok|open|alive|exists)$`)

// asksNil reports whether a function asks for a result that C has not made, perhaps: it compares something other than an error with
// nil, or calls a function that does so or whose name says so, as in !t.valid().
func (c *checker) asksNil(u *uses.Unit, depth int) (found bool) {
	isNil := func(e ast.Expr) bool { return types.ExprString(e) == "nil" }
	isErr := func(e ast.Expr) bool {
		return types.Identical(c.pkg.Info.TypeOf(e), types.Universe.Lookup("error").Type())
	}
	u.Own(func(n ast.Node) {
		switch e := n.(type) {
		case *ast.BinaryExpr:
			if e.Op == token.EQL || e.Op == token.NEQ {
				found = found || isNil(e.Y) && !isErr(e.X) || isNil(e.X) && !isErr(e.Y)
			}
		case *ast.CallExpr:
			f := c.pkg.Callee(e)
			switch name := c.pkg.C(e.Fun); {
			case name != "":
				found = found || validName.MatchString(name)
			case f != nil && isBool(f.Signature().Results()):
				found = found || validName.MatchString(f.Name()) || depth > 0 && c.byFunc[f] != nil && c.asksNil(c.byFunc[f], depth-1)
			}
		}
	})
	return found
}

func isBool(results *types.Tuple) bool {
	return results.Len() == 1 && types.Identical(results.At(0).Type().Underlying(), types.Typ[types.Bool])
}

// aliveAt reports whether a way leads from an allocation that a variable gets to a return statement, on which the variable is
// not freed, has no other value, and is not without use because the call that made it has failed.
func (c *checker) aliveAt(u *uses.Unit, v types.Object, ret *ast.ReturnStmt) bool {
	for _, from := range c.made(u, v) {
		search := uses.Search{From: from, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{v: true}, To: ret}
		if call, ok := from.(*ast.CallExpr); ok {
			if err, of := u.LastResult(call); of > 1 {
				search.Err = err
			}
		}
		fate := u.Fate(v, false, c.calls)
		for _, use := range slices.Concat(fate.Uses, fate.Inner) {
			_, returns := use.Node.(*ast.ReturnStmt)
			if around := use.Node.Pos() <= from.Pos() && from.End() <= use.Node.End(); !returns && !around {
				search.Stop[use.Node] = true
			}
		}
		if u.Find(search) == ast.Node(ret) {
			return true
		}
	}
	return false
}

// made returns what a variable gets that is an allocation, or an object that is made there.
func (c *checker) made(u *uses.Unit, v types.Object) (list []ast.Expr) {
	for _, a := range c.allocations(u) {
		if use := u.Assigned(a.call, a.index, a.inner, c.calls); use.Role == uses.Names && !use.Inner && use.Var == v {
			list = append(list, a.call)
		}
	}
	if !c.isObject(v.Type()) {
		return list
	}
	for _, def := range c.definitions(u, v) {
		if _, ok := ast.Unparen(def).(*ast.Ident); !ok && c.wraps(u, def, 0) {
			list = append(list, def)
		}
	}
	return list
}
