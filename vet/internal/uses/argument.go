package uses

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// argument says what becomes of an argument of a call, or that the result has it too.
func (u *Unit) argument(call *ast.CallExpr, arg ast.Node, inner bool, roles ArgumentRole) (use Use, on bool) {
	if call.Fun == arg {
		return Use{Role: Looks, Node: call}, false
	}
	if u.IsConversion(call) {
		if u.Copies(call) {
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
	if u.besideRelease(call, arg) {
		return Use{Role: Keeps, Node: call}, false
	}
	if name := u.C(call.Fun); name != "" {
		if _, ok := u.Parent(call).(*ast.DeferStmt); ok && len(call.Args) == 1 && !inner && u.Variable(arg) != nil {
			return Use{Role: Frees, Node: call}, false // whatever its name
		}
		if v := u.replaced(call); v != nil && !inner {
			if v == u.Variable(arg) {
				return Use{Role: Keeps, Node: call}, false
			}
			if index > 0 && v == u.Variable(call.Args[0]) { // list = list_add(list, value)
				return Use{Role: Names, Node: call, Var: v, Inner: true}, false
			}
		}
		if u.ReturnsArg(name, index) && !u.FreesArg(name, index) && !u.KeepsArg(name, index) {
			return Use{}, true
		}
		return Use{Role: u.cCall(call, name, index, inner), Node: call}, false
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
	callee := u.Callee(call)
	if !inner && callee != nil && callee.Pkg() != nil && callee.Pkg().Path() == own && strings.HasPrefix(callee.Name(), "Own") {
		return Use{Role: Keeps, Node: call}, false // whose body hands on the address of its argument
	}
	role := roles(u, call, callee, index, inner)
	if role == Leaves {
		return Use{}, true
	}
	return Use{Role: role, Node: call}, false
}

// own is the package whose Own and OwnWith take a resource over.
const own = "github.com/cheapgo/cheap/own"

var releaseName = regexp.MustCompile(`(?i)(free|destroy|dealloc|dispose|release)`)

// besideRelease reports whether another argument of a call names a function that releases: it is to release what it gets with it.
func (u *Unit) besideRelease(call *ast.CallExpr, arg ast.Node) bool {
	return slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
		id, ok := u.Bare(e).(*ast.Ident)
		if sel, is := u.Bare(e).(*ast.SelectorExpr); is {
			id, ok = sel.Sel, true
		}
		return ok && e != arg && releaseName.MatchString(id.Name)
	})
}

// replaced returns the local variable that a call of C is given, and which gets its result: the function gives the memory another place,
// or adds something to a list. It is nil if there is none.
func (u *Unit) replaced(call *ast.CallExpr) types.Object {
	s, ok := u.Parent(u.Dressed(call)).(*ast.AssignStmt)
	if !ok || len(s.Lhs) != 1 || u.C(call.Fun) == "realloc" {
		return nil
	}
	v := u.ObjectOf(s.Lhs[0])
	if !u.Local(v) || !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return u.Variable(arg) == v }) {
		return nil
	}
	return v
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

// Copies reports whether a conversion makes a copy: of a slice to a string, or the other way.
func (u *Unit) Copies(call *ast.CallExpr) bool {
	to, from := u.Info.TypeOf(call.Fun), u.Info.TypeOf(call.Args[0])
	if to == nil {
		return false
	}
	if b, ok := from.(*types.Basic); from == nil || ok && b.Kind() == types.Invalid {
		return isString(to) // of a slice whose length is a number of C
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
			at := carrier{inner: true}
			if inner {
				at.in = deep
			}
			return u.assigned(s, s.Lhs[0], at), false
		}
		return Use{Role: Keeps, Node: call}, false
	case "Slice", "String", "StringData", "SliceData", "Add":
		return Use{}, index == 0
	case "panic":
		return Use{Role: Keeps, Node: call}, false
	}
	return Use{Role: Looks, Node: call}, false
}

// cCall says what a call of C does to its argument with an index.
func (u *Unit) cCall(call *ast.CallExpr, name string, index int, inner bool) Role {
	if inner && name == "free" {
		return Looks // at what is in the block
	}
	switch {
	case u.FreesArg(name, index), u.Ends && u.Releases(name):
		return Frees
	case !inner && u.KeepsArg(name, index):
		return Keeps
	}
	for _, arg := range call.Args { // C.bind(..., (*[0]byte)(C.free))
		if u.hasFree(arg) {
			return Keeps
		}
		if v := u.ObjectOf(arg); u.Local(v) && slices.ContainsFunc(u.Given(v), u.hasFree) {
			return Keeps
		}
	}
	return Looks
}

// hasFree reports whether an expression names a function of C that frees.
func (u *Unit) hasFree(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if name := u.C(e); name != "" && u.Frees(name) {
				found = true
			}
		}
		return !found
	})
	return found
}
