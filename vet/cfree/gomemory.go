package cfree

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// checkGo reports calls of C and assignments that give memory of Go to C, or memory of C to what must not have it.
func (c *checker) checkGo(u *uses.Unit) {
	report := func(n ast.Node, kind, format string, args ...any) {
		c.Report(analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Category: kind, Message: fmt.Sprintf(format, args...)})
	}
	pinned := false
	u.Own(func(n ast.Node) {
		sel, ok := n.(*ast.SelectorExpr)
		pinned = pinned || ok && sel.Sel.Name == "Pin"
	})
	u.Own(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := c.pkg.C(n.Fun)
			if name == "" || c.pkg.IsConversion(n) {
				return
			}
			c.checkFree(u, n, name, report)
			for i, arg := range n.Args {
				v := c.goMemory(u, arg)
				if d := c.pkg.Declared(name); v != nil && !pinned && (d.KeepsNamed(i) || d.Takes(i)) {
					report(arg, "kept", "C.%s keeps the address of %s, which is memory of Go: copy it to C, or pin it", name, v.Name())
				}
				if data := c.stringData(arg); data != "" && !regexp.MustCompile(`\blen\(`+regexp.QuoteMeta(data)+`\)`).MatchString(types.ExprString(n)) {
					if d := c.pkg.Declared(name); d != nil && !slices.ContainsFunc(d.Params, func(p string) bool { return !strings.Contains(p, "*") && p != "void" }) {
						report(arg, "zero", "%s does not end with a zero, and C.%s is not told its length", data, name)
					}
				}
			}
			if name == "malloc" && len(n.Args) == 1 {
				c.checkSize(u, n, report)
			}
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if len(n.Lhs) != len(n.Rhs) {
					return
				}
				if v := c.goMemory(u, n.Rhs[i]); v != nil && !pinned && c.inC(u, lhs) {
					report(n.Rhs[i], "kept", "the address of %s, which is memory of Go, is put into memory of C: copy it to C, or pin it", v.Name())
				}
				call, ok := ast.Unparen(n.Rhs[i]).(*ast.CallExpr)
				for ok && c.pkg.IsConversion(call) {
					call, ok = ast.Unparen(call.Args[0]).(*ast.CallExpr)
				}
				if ok && c.pkg.C(call.Fun) == "realloc" && len(call.Args) == 2 && c.whole(call.Args[0]) != nil && c.whole(call.Args[0]) == c.pkg.ObjectOf(lhs) && c.asksAbout(u, c.pkg.ObjectOf(lhs), n) {
					report(n, "realloc", "the block of %s is lost where C.realloc returns nil", types.ExprString(lhs))
				}
			}
		case *ast.DeferStmt:
			c.checkDefer(u, n, report)
		}
	})
	if exported(u) {
		for _, p := range u.Params() {
			for _, a := range c.aliases(u, p) {
				ast.Inspect(u.Body, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && p != nil && c.pkg.Info.Uses[id] == a.v {
						if t := c.touchOf(u, id, a); t.how == "stored" && t.view {
							report(t.node, "after", "%s points into %s, which C may free when the callback returns", types.ExprString(t.obj), p.Name())
						}
					}
					return true
				})
			}
		}
	}
}

// checkFree reports a free of what is not the caller's.
func (c *checker) checkFree(u *uses.Unit, call *ast.CallExpr, name string, report func(ast.Node, string, string, ...any)) {
	if name != "free" || len(call.Args) != 1 {
		return
	}
	if addr, ok := c.plain(call.Args[0]).(*ast.UnaryExpr); ok && addr.Op == token.AND && u.Local(c.pkg.ObjectOf(addr.X)) {
		report(call, "wrong", "%s is memory of Go, and must not be freed", types.ExprString(addr.X))
		return
	}
	if v := c.goMemory(u, call.Args[0]); v != nil && !c.isParam(u, v) {
		report(call, "wrong", "%s is memory of Go, and must not be freed", v.Name())
		return
	}
	v := c.whole(call.Args[0])
	if v == nil || !u.Local(v) || len(c.pkg.Values(v)) != 1 {
		return
	}
	made, ok := ast.Unparen(c.pkg.Values(v)[0]).(*ast.CallExpr)
	if !ok || c.pkg.C(made.Fun) == "" || c.pkg.Allocates(c.pkg.C(made.Fun)) {
		return
	}
	from := c.pkg.C(made.Fun)
	d := c.pkg.Declared(from)
	if d.Lent() {
		report(call, "wrong", "the result of C.%s belongs to something else, as its comment says, and must not be freed", from)
		return
	}
	if by := c.pkg.ReleaserOf(from); by != "" {
		report(call, "wrong", "what C.%s has made is freed by C.%s, and not by C.free", from, by)
	}
}

// plain returns an expression without the conversions and the parentheses around it.
func (c *checker) plain(e ast.Expr) ast.Expr {
	for {
		e = ast.Unparen(e)
		call, ok := e.(*ast.CallExpr)
		if !ok || !c.pkg.IsConversion(call) {
			return e
		}
		e = call.Args[0]
	}
}

// goMemory returns the variable of Go to whose memory an expression is a pointer, or nil.
func (c *checker) goMemory(u *uses.Unit, e ast.Expr) *types.Var {
	for {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !c.pkg.IsConversion(call) && !c.isUnsafe(call) {
			break
		}
		e = call.Args[0]
	}
	addr, ok := ast.Unparen(e).(*ast.UnaryExpr)
	if !ok || addr.Op != token.AND {
		return nil
	}
	index, elem := ast.Unparen(addr.X).(*ast.IndexExpr)
	x := addr.X
	if elem {
		x = index.X
	}
	v, _ := c.pkg.ObjectOf(x).(*types.Var)
	if v == nil || !u.Local(v) && !c.isParam(u, v) {
		return nil
	}
	if !elem {
		if name := source.TypeName(v.Type()); name != nil && name.Pkg() != nil && name.Pkg().Path() == "runtime/cgo" {
			return v
		}
		return nil
	}
	slice, ok := v.Type().Underlying().(*types.Slice)
	if b, basic := (types.Type)(nil), false; ok {
		if b, basic = slice.Elem().Underlying().(*types.Basic); !basic || b.(*types.Basic).Kind() == types.Invalid {
			return nil
		}
	} else {
		return nil
	}
	for _, value := range c.pkg.Values(v) {
		switch call, _ := ast.Unparen(value).(*ast.CallExpr); {
		case call == nil:
			if _, lit := ast.Unparen(value).(*ast.CompositeLit); !lit {
				return nil
			}
		case types.ExprString(call.Fun) == "make", c.pkg.IsConversion(call) && u.Copies(call):
		default:
			return nil
		}
	}
	return v
}

// inC reports whether an expression on the left is a field or an element of memory that C has allocated.
func (c *checker) inC(u *uses.Unit, e ast.Expr) bool {
	var x ast.Expr
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		x = e.X
	case *ast.StarExpr:
		x = e.X
	case *ast.IndexExpr:
		x = e.X
	default:
		return false
	}
	v := c.pkg.ObjectOf(x)
	if v == nil || !u.Local(v) || len(c.pkg.Values(v)) != 1 {
		return false
	}
	e = c.pkg.Values(v)[0]
	for e != nil {
		if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && c.pkg.C(call.Fun) != "" && !c.pkg.IsConversion(call) {
			return c.pkg.Allocates(c.pkg.C(call.Fun))
		}
		e, _ = c.part(u, e)
	}
	return false
}

// stringData returns the text of a string of Go whose bytes an expression passes as a string of C, or "".
func (c *checker) stringData(e ast.Expr) string {
	for {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return ""
		}
		if types.ExprString(call.Fun) == "unsafe.StringData" && c.isUnsafe(call) {
			for _, value := range append(c.pkg.Values(c.pkg.ObjectOf(call.Args[0])), call.Args[0]) {
				if v := c.pkg.Info.Types[value].Value; v != nil && strings.Contains(v.ExactString(), `\x00`) || strings.Contains(types.ExprString(value), `\x00`) {
					return "" // it ends with a zero
				}
			}
			return types.ExprString(call.Args[0])
		}
		if !c.pkg.IsConversion(call) {
			return ""
		}
		e = call.Args[0]
	}
}

// checkSize reports a block for n elements of a struct or of pointers that has n bytes.
func (c *checker) checkSize(u *uses.Unit, call *ast.CallExpr, report func(ast.Node, string, string, ...any)) {
	size := call.Args[0]
	for {
		conv, ok := ast.Unparen(size).(*ast.CallExpr)
		if !ok || !c.pkg.IsConversion(conv) {
			break
		}
		size = conv.Args[0]
	}
	text := types.ExprString(size)
	conv, ok := u.Parent(call).(*ast.CallExpr)
	v := c.pkg.Receiver(conv)
	if !ok || !c.pkg.IsConversion(conv) || v == nil || text == "" || c.pkg.Info.Types[size].Value != nil {
		return
	}
	paren, ok := conv.Fun.(*ast.ParenExpr)
	if !ok {
		return
	}
	star, ok := paren.X.(*ast.StarExpr)
	if !ok || c.numberType(star.X) || regexp.MustCompile(`(?i)byte|char|u?int8|bool`).MatchString(types.ExprString(star.X)) {
		return
	}
	ast.Inspect(u.Body, func(n ast.Node) bool {
		view, ok := n.(*ast.CallExpr)
		if ok && c.isUnsafe(view) && len(view.Args) == 2 && c.pkg.ObjectOf(view.Args[0]) == v && types.ExprString(view.Args[1]) == text {
			report(call, "size", "the block has %s bytes, and is used for %s elements: multiply by the size of one", text, text)
			return false
		}
		return true
	})
}

// asksAbout reports whether a unit compares a variable with nil behind a node.
func (c *checker) asksAbout(u *uses.Unit, v types.Object, n ast.Node) (found bool) {
	u.Own(func(m ast.Node) {
		if cond, ok := m.(*ast.BinaryExpr); ok && m.Pos() > n.End() && c.pkg.ObjectOf(cond.X) == v && types.ExprString(cond.Y) == "nil" {
			found = true
		}
	})
	return found
}

// checkDefer reports a defer that frees nil, since its variable gets its value later by its address, and one in a loop without an end
// that is known.
func (c *checker) checkDefer(u *uses.Unit, d *ast.DeferStmt, report func(ast.Node, string, string, ...any)) {
	name, arg := c.ends(d.Call)
	v := c.whole(arg)
	if name == "" || v == nil || !u.Local(v) {
		return
	}
	switch loop := u.Loop(d).(type) {
	case *ast.ForStmt:
		if loop.Post == nil && (loop.Cond == nil || hasCall(loop.Cond)) && u.Within(v, loop) && u.Leads(d, nil, d) {
			report(d, "loop", "each round of the loop defers C.%s, which is called only when the function returns: free %s at the end of the round", name, v.Name())
		}
	case *ast.RangeStmt:
		t := c.pkg.Info.TypeOf(loop.X)
		if t == nil {
			return
		}
		if _, ok := t.Underlying().(*types.Chan); ok && u.Within(v, loop) && u.Leads(d, nil, d) {
			report(d, "loop", "each round of the loop defers C.%s, which is called only when the function returns: free %s at the end of the round", name, v.Name())
		}
	}
	if len(c.pkg.Values(v)) > 0 || name == "realloc" {
		return
	}
	u.Own(func(n ast.Node) {
		addr, ok := n.(*ast.UnaryExpr)
		if ok && addr.Op == token.AND && c.pkg.ObjectOf(addr.X) == v {
			if before := addr.Pos() < d.Pos(); before {
				v = nil // it has a value already
			} else if v != nil && u.Leads(d, nil, addr) {
				report(d, "early", "the defer frees what %s has here, which is nil: it gets its value in line %d", types.ExprString(addr.X), c.Fset.Position(addr.Pos()).Line)
				v = nil
			}
		}
	})
}

func hasCall(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && types.ExprString(call.Fun) != "len"
		return !found
	})
	return found
}
