package cfree

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/uses"
)

// onlyReads matches the names of functions of C that read a string, and are done with it. For others there is no fix: a name says
// little, and a string that C keeps must not be freed.
var onlyReads = regexp.MustCompile(`(?i)(get|find|look|has_|check|exist|query|print|puts|(^|_)log|strlen|strcmp|compare|read|exec|eval|count|match|hash|info|size|stat|filename|version|validate|unlink|remove)`)

// mayKeep matches the names of functions of C that may keep a string, as putenv does.
var mayKeep = regexp.MustCompile(`(?i)(set|put|add|reg|append|insert|push|init|open|new|create|attach|bind|keep|store|pend|queue|assign|save|replace|define|link|load|use|hold|start|connect|config|update|send)`)

// fixDropped returns the fix for a result of C.CString that is only an argument of a call of C: it gets a
// variable, and a deferred free. There is none where that might change what the function does: in a loop or
// under a condition, where the result of the call may point into the string, or where the function of C
// may keep the string by its name.
func (c *checker) fixDropped(u *uses.Unit, a allocation) []analysis.SuggestedFix {
	file, s := c.file(a.call.Pos()), u.Statement(a.call)
	outer, ok := u.Parent(a.call).(*ast.CallExpr)
	if !ok || file == nil || s == nil || a.name != "C.CString" || len(a.call.Args) != 1 || !isPlain(a.call.Args[0]) {
		return nil
	}
	name := c.pkg.C(outer.Fun)
	if name == "" || c.pkg.IsConversion(outer) || !onlyReads.MatchString(name) || mayKeep.MatchString(name) || !c.copies(u, outer) {
		return nil
	}
	if u.Parent(s) != u.Body || !hasStdlib(file) || !importsUnsafe(file) || !u.Imported(s, "unsafe", "unsafe") || !c.movable(u, s, a.call) {
		return nil
	}
	v := c.newName(u, a.call.Args[0])
	return []analysis.SuggestedFix{{
		Message: "free it when the function returns",
		TextEdits: []analysis.TextEdit{
			{Pos: s.Pos(), End: s.Pos(), NewText: fmt.Appendf(nil, "%s := %s\n\tdefer C.free(unsafe.Pointer(%s))\n\t", v, types.ExprString(a.call), v)},
			{Pos: a.call.Pos(), End: a.call.End(), NewText: []byte(v)},
		},
	}}
}

// isPlain reports whether an expression is a literal, a variable or a field.
func isPlain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.SelectorExpr:
		return isPlain(e.X)
	}
	return false
}

// copies reports whether nothing behind the statement has a pointer that a call of C returns: the result is
// dropped, compared, copied by C.GoString, or converted to a number.
func (c *checker) copies(u *uses.Unit, call *ast.CallExpr) bool {
	switch p := u.Parent(call).(type) {
	case *ast.ExprStmt:
		return true
	case *ast.BinaryExpr:
		return p.Op == token.EQL || p.Op == token.NEQ || p.Op == token.LSS || p.Op == token.GTR || p.Op == token.LEQ || p.Op == token.GEQ
	case *ast.CallExpr:
		if name := c.pkg.C(p.Fun); name == "GoString" || name == "GoStringN" || name == "GoBytes" {
			return true
		}
		b, ok := c.pkg.Info.TypeOf(p.Fun).(*types.Basic)
		return ok && c.pkg.IsConversion(p) && b.Info()&types.IsNumeric != 0 && b.Kind() != types.Uintptr
	}
	return false
}

// movable reports whether a statement may compute a call's value first: it is neither under a condition nor
// behind another call in Go, a literal or a receive operation, and no goto jumps over the new variable.
func (c *checker) movable(u *uses.Unit, s ast.Stmt, call *ast.CallExpr) bool {
	movable, part := true, ast.Node(s)
	u.Own(func(n ast.Node) {
		jump, ok := n.(*ast.BranchStmt)
		movable = movable && !(ok && jump.Tok == token.GOTO)
	})
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.ReturnStmt:
	case *ast.IfStmt:
		part = s.Cond
		if s.Init != nil || call.Pos() >= s.Cond.End() {
			return false
		}
	default:
		return false
	}
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			movable = movable && n.Op != token.LAND && n.Op != token.LOR
		case *ast.UnaryExpr:
			movable = movable && n.Op != token.ARROW
		case *ast.FuncLit:
			movable = false
		case *ast.CallExpr:
			around := n.Pos() <= call.Pos() && call.End() <= n.End()
			movable = movable && (around || n.Pos() > call.Pos() || c.pkg.C(n.Fun) != "")
		}
		return movable
	})
	return movable
}

// newName returns a name for a variable that has a string as one of C, which nothing in the unit has.
func (c *checker) newName(u *uses.Unit, e ast.Expr) string {
	name := "cs"
	if sel, ok := e.(*ast.SelectorExpr); ok {
		e = sel.Sel
	}
	if id, ok := e.(*ast.Ident); ok {
		first, size := utf8.DecodeRuneInString(id.Name)
		name = "c" + string(unicode.ToUpper(first)) + id.Name[size:]
	}
	taken := map[string]bool{}
	ast.Inspect(u.Node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			taken[id.Name] = true
		}
		return true
	})
	if c.newNames[u] == nil {
		c.newNames[u] = map[string]bool{}
	}
	free := name
	for i := 2; taken[free] || c.newNames[u][free]; i++ {
		free = fmt.Sprint(name, i)
	}
	c.newNames[u][free] = true
	return free
}

func importsUnsafe(f *ast.File) bool {
	for _, spec := range f.Imports {
		if spec.Path.Value == `"unsafe"` && spec.Name == nil {
			return true
		}
	}
	return false
}
