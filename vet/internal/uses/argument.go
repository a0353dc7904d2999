package uses

import (
	"go/ast"
	"go/types"
	"strings"
)

// argument says what becomes of an argument of a call, or that the result has it too.
func (u *Unit) argument(call *ast.CallExpr, arg ast.Node, inner bool, roles ArgumentRole) (use Use, on bool) {
	if call.Fun == arg {
		return Use{Role: Looks, Node: call}, false
	}
	if u.IsConversion(call) {
		if u.copies(call) {
			return Use{Role: Looks, Node: call}, false
		}
		return Use{}, true
	}
	index := 0
	for i, a := range call.Args {
		if a == arg {
			index = i
		}
	}
	if b, ok := u.ObjectOf(call.Fun).(*types.Builtin); ok {
		return u.builtin(call, b.Name(), index, inner)
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if b, ok := u.Info.Uses[sel.Sel].(*types.Builtin); ok {
			return u.builtin(call, b.Name(), index, inner)
		}
	}
	if _, ok := u.Parent(call).(*ast.GoStmt); ok {
		return Use{Role: Keeps, Node: call}, false
	}
	if name := u.C(call.Fun); name != "" {
		return Use{Role: u.cCall(call, name, inner), Node: call}, false
	}
	switch name := check(call); {
	case strings.HasPrefix(name, "Nil"):
		return Use{Role: Keeps, Node: call}, false // the test wants that there is none
	case name != "":
		return Use{Role: Looks, Node: call}, false
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && u.Info.Types[sel.X].IsType() {
		index-- // T.Method(receiver)
	}
	return Use{Role: roles(u, call, u.Callee(call), index, inner), Node: call}, false
}

// check returns the name of the function that is called if it is one of a package that checks
// results in tests, as far as the name of the package tells: it may not be there.
func check(call *ast.CallExpr) string {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := sel.X.(*ast.Ident); ok && (id.Name == "require" || id.Name == "assert" || id.Name == "ensure") {
		return sel.Sel.Name
	}
	return ""
}

// copies reports whether a conversion makes a copy: of a slice to a string, or the other way.
func (u *Unit) copies(call *ast.CallExpr) bool {
	to, from := u.Info.TypeOf(call.Fun), u.Info.TypeOf(call.Args[0])
	if to == nil || from == nil {
		return false
	}
	return isString(to) != isString(from) && (isSlice(to) || isSlice(from))
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func isSlice(t types.Type) bool {
	_, ok := t.Underlying().(*types.Slice)
	return ok
}

func (u *Unit) builtin(call *ast.CallExpr, name string, index int, inner bool) (use Use, on bool) {
	switch name {
	case "append":
		if index == 0 {
			return Use{}, true
		}
		if call.Ellipsis.IsValid() && !inner {
			return Use{Role: Looks, Node: call}, false
		}
		if s, ok := u.Parent(call).(*ast.AssignStmt); ok && len(s.Lhs) == 1 {
			return u.assigned(s, s.Lhs[0], carrier{inner: true}), false
		}
		return Use{Role: Keeps, Node: call}, false
	case "Slice", "String", "StringData", "SliceData", "Add":
		return Use{}, index == 0
	case "panic":
		return Use{Role: Keeps, Node: call}, false
	}
	return Use{Role: Looks, Node: call}, false
}

// cCall says what a call of C does to its arguments.
func (u *Unit) cCall(call *ast.CallExpr, name string, inner bool) Role {
	if inner && name == "free" {
		return Looks // at what is in the block
	}
	if u.Frees(name) {
		return Frees
	}
	for _, arg := range call.Args { // C.bind(..., (*[0]byte)(C.free))
		frees := false
		ast.Inspect(arg, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if name := u.C(e); name != "" && u.Frees(name) {
					frees = true
				}
			}
			return true
		})
		if frees {
			return Keeps
		}
	}
	return Looks
}
