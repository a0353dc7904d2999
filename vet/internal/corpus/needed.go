package corpus

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// This is decided without the analyzers, in a simpler way: whether a program needs a statement.

// findFinalized finds the types whose values have finalizers or cleanups.
func (m *Module) findFinalized() {
	if m.finalized != nil {
		return
	}
	m.finalized = map[string]bool{}
	for _, pkg := range m.roots {
		for _, f := range pkg.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				name := types.ExprString(call.Fun)
				if (name == "runtime.SetFinalizer" || name == "runtime.AddCleanup") && types.ExprString(call.Args[1]) != "nil" {
					m.finalized[typeName(pkg.TypesInfo.TypeOf(call.Args[0]))] = true
				}
				return true
			})
		}
	}
	delete(m.finalized, "")
}

// typeName returns the name of a type, or of what a pointer to it points to, with its package.
func typeName(t types.Type) string {
	if t == nil {
		return ""
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path() + "." + named.Obj().Name()
	}
	return ""
}

// hasFinalizer reports whether values of a type have finalizers, or have a pointer to one that has
// embedded.
func (m *Module) hasFinalizer(t types.Type, depth int) bool {
	if t == nil || depth > 5 {
		return false
	}
	if m.finalized[typeName(t)] {
		return true
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range st.Fields() {
		if f.Embedded() && m.hasFinalizer(f.Type(), depth+1) {
			return true
		}
	}
	return false
}

// needed reports whether the program is wrong without a statement.
func (m *Module) needed(pkg *packages.Package, s ast.Stmt, kind StatementKind) bool {
	switch kind {
	case Method:
		sel := s.(*ast.DeferStmt).Call.Fun.(*ast.SelectorExpr)
		return !m.hasFinalizer(pkg.TypesInfo.TypeOf(sel.X), 0)
	case KeepAlive:
		var call *ast.CallExpr
		switch s := s.(type) {
		case *ast.ExprStmt:
			call = s.X.(*ast.CallExpr)
		case *ast.DeferStmt:
			call = s.Call
		}
		arg, ok := call.Args[0].(*ast.Ident)
		if !ok {
			return false
		}
		fn := enclosing(pkg, s)
		if fn == nil {
			return false
		}
		v := pkg.TypesInfo.ObjectOf(arg)
		switch t := v.Type().Underlying().(type) {
		case *types.Slice:
			return strings.Contains(numbers(fn), "&"+arg.Name+"[")
		case *types.Interface:
			_ = t
		default:
			if !m.hasFinalizer(v.Type(), 0) {
				return false
			}
		}
		// Used behind the statement, or by what is deferred.
		used := false
		ast.Inspect(fn, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Pos() > s.End() && pkg.TypesInfo.ObjectOf(id) == v {
				used = true
			}
			if d, ok := n.(*ast.DeferStmt); ok && d != s {
				ast.Inspect(d, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && pkg.TypesInfo.ObjectOf(id) == v {
						used = true
					}
					return true
				})
			}
			return true
		})
		return !used
	}
	return true
}

// enclosing returns the body of the function that a statement is in.
func enclosing(pkg *packages.Package, s ast.Stmt) *ast.BlockStmt {
	var found *ast.BlockStmt
	for _, f := range pkg.Syntax {
		if f.FileStart > s.Pos() || s.Pos() >= f.FileEnd {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.FuncDecl); ok && d.Body != nil && d.Body.Pos() <= s.Pos() && s.Pos() < d.Body.End() {
				found = d.Body
			}
			return true
		})
	}
	return found
}

// numbers returns the conversions to uintptr in a function.
func numbers(fn *ast.BlockStmt) string {
	var text strings.Builder
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "uintptr" {
			text.WriteString(types.ExprString(call) + "\n")
		}
		return true
	})
	return text.String()
}
