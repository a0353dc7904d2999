package cfree

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// onlyReads matches the names of functions of C that read a string, and are done with it. For others there is no fix: a name says
// little, and a string that C keeps must not be freed.
var onlyReads = regexp.MustCompile(`(?i)(get|find|look|(^|_)(is|has)_|check|exist|query|print|puts|(^|_)log|strlen|strcmp|compare|read|exec|eval|count|match|hash|info|size|stat|filename|version|valid|supported|enabled|(for|from|by)_?name$|escape|encode|decode|convert|recv|unlink|remove)`)

// mayKeep matches the names of functions of C that may keep a string, as putenv does.
var mayKeep = regexp.MustCompile(`(?i)(set|put|add|reg|append|insert|push|init|open|new|create|make|attach|bind|keep|store|pend|queue|assign|save|replace|define|link|load|use|hold|start|connect|config|update|send|take|static)`)

// ofString matches the names of functions of the C library that keep nothing.
var ofString = regexp.MustCompile(`^(mem(cpy|move|set|cmp)|str(n?cpy|n?cat|n?len|n?cmp)|Go(StringN?|Bytes))$`)

// copying has libraries that keep copies of the strings that they are given, by their documentation: the functions with names that
// lib matches, but not those that except matches as well.
var copying = []struct{ lib, except *regexp.Regexp }{
	// GTK and its kin: such a parameter is "transfer none".
	{regexp.MustCompile(`^(gtk|gdk|gst|pango|atk|g_(action|simple_action|application|menu|notification|settings))_`), regexp.MustCompile(`static|take|intern|data|bytes|parse|init`)},
	{regexp.MustCompile(`^SDL_[A-Z]`), regexp.MustCompile(`(?i)static|mem|data|event|thread|rw`)},
	{regexp.MustCompile(`^rd_kafka_`), regexp.MustCompile(`produce|opaque`)},
	{regexp.MustCompile(`^ub_ctx_`), regexp.MustCompile(`^$`)},
	{regexp.MustCompile(`^ts_(language|query|parser)_`), regexp.MustCompile(`logger|input`)},
}

// forgets reports whether what a call of C has got, such as a string, may be freed when the call has returned, as far as is known: the
// function reads it or copies it, and the result does not point into it.
func (c *checker) forgets(u *uses.Unit, call *ast.CallExpr, isString bool) bool {
	name := c.pkg.C(call.Fun)
	if name == "" || c.pkg.IsConversion(call) {
		return false
	}
	if ofString.MatchString(name) {
		return c.isNumber(u, call)
	}
	for _, l := range copying {
		if isString && l.lib.MatchString(name) {
			return !l.except.MatchString(name)
		}
	}
	return onlyReads.MatchString(name) && !mayKeep.MatchString(name) && c.isNumber(u, call)
}

// forgetsAll reports whether that is so for all calls of C that are given a value, and no struct or array has it.
func (c *checker) forgetsAll(u *uses.Unit, fate uses.Fate, isString bool) bool {
	ok := len(fate.Inner) == 0
	for _, v := range fate.Vars {
		ok = ok && len(u.Stores(v, c.calls)) == 0
		ast.Inspect(u.Body, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is && c.pkg.Info.Uses[id] == v {
				if call := c.outer(u, id); call != nil && c.pkg.C(call.Fun) != "" && !c.forgets(u, call, isString) {
					ok = false
				}
			}
			return ok
		})
	}
	return ok
}

// fixDropped returns the fix for a result of C.CString that is only an argument of a call of C: it gets a
// variable, and is freed when the function returns, or behind the statement in a loop. There is none where
// that might change what the function does: under a condition within the statement, or where C may still use
// the string after the call.
func (c *checker) fixDropped(u *uses.Unit, a allocation) []analysis.SuggestedFix {
	file, s := c.pkg.FileOf(a.call.Pos()), u.Statement(a.call)
	if file == nil || s == nil || a.name != "C.CString" || len(a.call.Args) != 1 || !isPlain(a.call.Args[0]) {
		return nil
	}
	outer := c.outer(u, a.call)
	if outer == nil || !c.forgets(u, outer, true) || !c.movable(u, s, a.call) {
		return nil
	}
	edits, ok := c.knowsFree(u, file, s)
	if !ok {
		return nil
	}
	v, indent := c.newName(u, a.call.Args[0]), analyzer.Indent(c.Pass, s)
	text, free := fmt.Sprintf("%s := %s", v, types.ExprString(a.call)), fmt.Sprintf("C.free(unsafe.Pointer(%s))", v)
	message := "free it when the function returns"
	if u.Loop(s) == nil {
		text += indent + "defer " + free
	} else {
		switch s.(type) {
		case *ast.ExprStmt, *ast.AssignStmt:
		default:
			return nil
		}
		message = "free it behind the call"
		edits = append(edits, analysis.TextEdit{Pos: s.End(), End: s.End(), NewText: []byte(indent + free)})
	}
	return []analysis.SuggestedFix{{
		Message: message,
		TextEdits: append(edits,
			analysis.TextEdit{Pos: s.Pos(), End: s.Pos(), NewText: []byte(text + indent)},
			analysis.TextEdit{Pos: a.call.Pos(), End: a.call.End(), NewText: []byte(v)},
		),
	}}
}

// outer returns the call that has an expression, perhaps converted, as an argument, or nil.
func (c *checker) outer(u *uses.Unit, e ast.Expr) *ast.CallExpr {
	call, _ := u.Parent(c.pkg.Dressed(e)).(*ast.CallExpr)
	return call
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

// isNumber reports whether the result of a call of C is only used as a number or a text of Go: it is dropped, compared, copied by
// C.GoString, or converted to a number. It may have a variable.
func (c *checker) isNumber(u *uses.Unit, e ast.Expr) bool {
	switch p := u.Parent(e).(type) {
	case *ast.ParenExpr:
		return c.isNumber(u, p)
	case *ast.ExprStmt, *ast.SwitchStmt, *ast.CaseClause:
		return true
	case *ast.BinaryExpr:
		return p.Op == token.EQL || p.Op == token.NEQ || p.Op == token.LSS || p.Op == token.GTR || p.Op == token.LEQ || p.Op == token.GEQ
	case *ast.CallExpr:
		if name := c.pkg.C(p.Fun); name == "GoString" || name == "GoStringN" || name == "GoBytes" {
			return true
		}
		if c.pkg.IsConversion(p) {
			return c.numberType(p.Fun)
		}
		if to := c.byFunc[c.pkg.Callee(p)]; to != nil {
			return c.numberParam(to, slices.Index(p.Args, e))
		}
	case *ast.ReturnStmt:
		if results := u.Type.Results; results != nil && len(p.Results) == 1 && results.NumFields() == 1 {
			return c.numberType(results.List[0].Type)
		}
	case *ast.AssignStmt:
		if len(p.Rhs) != 1 || p.Rhs[0] != e {
			return false
		}
		id, ok := p.Lhs[0].(*ast.Ident)
		return ok && (id.Name == "_" || c.numberVar(u, c.pkg.ObjectOf(id)))
	}
	return false
}

// numberVar reports whether a variable is local, and only used as a number.
func (c *checker) numberVar(u *uses.Unit, v types.Object) bool {
	if v == nil || !u.Local(v) {
		return false
	}
	number := true
	ast.Inspect(u.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && c.pkg.Info.Uses[id] == v {
			if s, ok := u.Parent(id).(*ast.AssignStmt); !ok || !slices.Contains(s.Lhs, ast.Expr(id)) {
				_, again := u.Parent(id).(*ast.AssignStmt) // another variable has it
				number = number && !again && c.isNumber(u, id)
			}
		}
		return number
	})
	return number
}

// numberParam reports whether a parameter of a function is a number.
func (c *checker) numberParam(f *uses.Unit, index int) bool {
	i := 0
	for _, field := range f.Type.Params.List {
		i += max(1, len(field.Names))
		if 0 <= index && index < i {
			return c.numberType(field.Type)
		}
	}
	return false
}

// numberType reports whether an expression is a type that holds no address.
func (c *checker) numberType(e ast.Expr) bool {
	if name := c.pkg.C(e); name != "" {
		return source.IsNumeric(name)
	}
	t := c.pkg.Info.TypeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsNumeric|types.IsBoolean) != 0 && b.Kind() != types.Uintptr
}

// movable reports whether a statement may compute a call's value first: it is not under a condition, nothing in front of it may
// change its argument, such as another call in Go, a literal or a receive operation, and no goto jumps over the new variable.
func (c *checker) movable(u *uses.Unit, s ast.Stmt, call *ast.CallExpr) bool {
	movable, part, same := true, ast.Node(s), c.isSame(u, call.Args[0])
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
			movable = movable && (same || n.Op != token.ARROW)
		case *ast.FuncLit:
			movable = movable && same
			return false
		case *ast.CallExpr:
			around := n.Pos() <= call.Pos() && call.End() <= n.End()
			movable = movable && (same || around || n.Pos() > call.Pos() || c.pkg.C(n.Fun) != "" || c.pkg.IsConversion(n))
		}
		return movable
	})
	return movable
}

// isSame reports whether nothing but the statements of a unit can change the value of an expression: it is a literal, or a variable of
// the unit whose address nothing has.
func (c *checker) isSame(u *uses.Unit, e ast.Expr) bool {
	if _, ok := ast.Unparen(e).(*ast.BasicLit); ok {
		return true
	}
	v := c.pkg.ObjectOf(e)
	if v == nil || !u.Within(v, u.Node) {
		return false
	}
	_, plain := c.writes(u, v)
	return plain
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
