package cfree

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// checkGo reports calls of C and assignments that give memory of Go to C, or memory of C to what must not have it.
func (c *checker) checkGo(u *uses.Unit) {
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
			c.checkFree(u, n, name)
			c.checkField(u, n)
			for i, arg := range n.Args {
				v := c.goMemory(u, arg)
				if v == nil && (c.pkg.Keeps(n, i+1) || keepsUser.MatchString(name)) {
					v = c.goObject(u, arg)
				}
				if v != nil && !pinned && (c.pkg.Keeps(n, i+1) || c.saysKept(name, i, v) || c.storesObject(name, i, v)) {
					analyzer.Report(c.Pass, arg, "kept", "C.%s keeps the address of %s, which is memory of Go: copy it to C, or pin it", name, v.Name())
				}
				if data := c.stringData(arg); data != "" && !regexp.MustCompile(`\blen\(`+regexp.QuoteMeta(data)+`\)`).MatchString(types.ExprString(n)) {
					if d := c.pkg.Declared(name); d != nil && !slices.ContainsFunc(d.Params, func(p string) bool { return !strings.Contains(p, "*") && p != "void" }) {
						analyzer.Report(c.Pass, arg, "zero", "%s does not end with a zero, and C.%s is not told its length", data, name)
					}
				}
			}
			if name == "malloc" && len(n.Args) == 1 {
				c.checkSize(u, n)
			}
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if len(n.Lhs) != len(n.Rhs) {
					return
				}
				if v := c.goMemory(u, n.Rhs[i]); v != nil && !pinned && c.inC(u, lhs) {
					analyzer.Report(c.Pass, n.Rhs[i], "kept", "the address of %s, which is memory of Go, is put into memory of C: copy it to C, or pin it", v.Name())
				}
				if call, name := c.pkg.Result(n.Rhs[i]); name == "realloc" && len(call.Args) == 2 {
					if v := c.pkg.ObjectOf(lhs); v != nil && c.pkg.Variable(call.Args[0]) == v && c.asksAbout(u, v, n) {
						analyzer.Report(c.Pass, n, "realloc", "the block of %s is lost where C.realloc returns nil", types.ExprString(lhs))
					}
				}
			}
		case *ast.DeferStmt:
			c.checkDefer(u, n)
		case *ast.ReturnStmt:
			for _, result := range n.Results {
				if v := c.goMemory(u, result); v != nil && !pinned && exported(u) {
					analyzer.Report(c.Pass, result, "kept", "C gets the address of %s, which is memory of Go: copy it to C", v.Name())
				}
			}
		}
	})
	if exported(u) {
		for _, p := range u.Params() {
			for _, a := range c.aliases(u, p) {
				for _, t := range a.touches {
					if t.how == "stored" && t.view {
						analyzer.Report(c.Pass, t.node, "after", "%s points into %s, which C may free when the callback returns", types.ExprString(t.obj), p.Name())
					}
				}
			}
		}
	}
}

// storesObject reports whether a function of C does little more than store the address of memory of Go: it calls nothing that may use it.
// What it stores in a struct that it is given may be meant for a moment, but for a handle and an object.
func (c *checker) storesObject(name string, i int, v *types.Var) bool {
	f, _ := c.pkg.Defined(name)
	if f.Calls || i >= len(f.Keeps) || f.Returns[i] {
		return false
	}
	_, pointer := v.Type().Underlying().(*types.Pointer)
	return f.Outside[i] || f.Keeps[i] && (pointer || isHandle(v.Type()))
}

// saysKept reports whether a comment says that a function of C keeps what it is given of Go, and its body, if it is seen, does not say
// otherwise: a variable may be meant for its value.
func (c *checker) saysKept(name string, i int, v *types.Var) bool {
	d := c.pkg.Declared(name)
	if f, ok := c.pkg.Defined(name); ok && !(i < len(f.Keeps) && f.Keeps[i]) {
		return false
	}
	if i > 0 && keepsUser.MatchString(name) && d.Untyped(i) {
		return true
	}
	switch v.Type().Underlying().(type) {
	case *types.Slice, *types.Pointer:
	default:
		if !isHandle(v.Type()) {
			return false
		}
	}
	return d.KeepsNamed(i) || d.Takes(i)
}

// keepsUser matches the names of functions of C that keep a pointer for their callbacks.
var keepsUser = regexp.MustCompile(`(?i)(set_?(user_?)?(data|ptr|pointer|ctx|context|opaque|arg|cookie|closure)$|user_?(data|ptr|pointer|ctx|context)$|register|subscribe|(set|add|install)_?\w*(callback|handler|hook|listener|cb)$)`)

// isHandle reports whether a type is cgo.Handle.
func isHandle(t types.Type) bool {
	name := source.TypeName(t)
	return name != nil && name.Pkg() != nil && name.Pkg().Path() == "runtime/cgo"
}

// checkFree reports a free of what is not the caller's, and one by another function than the one that has to release it.
func (c *checker) checkFree(u *uses.Unit, call *ast.CallExpr, name string) {
	if name != "free" && !c.pkg.Ends(name) || len(call.Args) == 0 {
		return
	}
	if v := c.goMemory(u, call.Args[0]); v != nil && u.Local(v) && name == "free" {
		analyzer.Report(c.Pass, call, "wrong", "%s is memory of Go, and must not be freed", v.Name())
		return
	}
	v := c.pkg.Variable(call.Args[0])
	if v == nil || !u.Local(v) {
		return
	}
	var by *ast.CallExpr
	at := 0
	switch values := c.pkg.Values(v); len(values) {
	case 0: // it has its value by its address
		writes, _ := c.writes(u, v)
		for _, w := range writes {
			if w, ok := w.(*ast.CallExpr); ok {
				by, at = w, 1+slices.IndexFunc(w.Args, func(e ast.Expr) bool { return u.Mentions(e, v) })
			}
		}
	case 1:
		by, _ = c.pkg.Result(values[0])
	}
	if by == nil || c.pkg.C(by.Fun) == "" {
		return
	}
	from := c.pkg.C(by.Fun)
	rule, d := c.pkg.Rule(by, at), c.pkg.Declared(from)
	wants := d.FreedBy()
	switch {
	case name != "free" && c.rule(by, at) == nil || at == 0 && c.pkg.Allocates(from):
		return
	case rule != nil && rule.By != nil:
		if wants = rule.By[0]; slices.Contains(rule.By, name) {
			return
		}
	case at == 0 && (rule != nil || d.Lent()):
		analyzer.Report(c.Pass, call, "wrong", "the result of C.%s belongs to something else, and must not be freed", from)
		return
	}
	parts := slices.ContainsFunc(u.Fate(v, true, c.calls).Inner, func(use uses.Use) bool { // the elements, and then the list
		by, ok := use.Node.(*ast.CallExpr)
		return ok && use.Role == uses.Frees && len(by.Args) > 0 && c.pkg.Variable(by.Args[0]) != v
	})
	if wants != "" && !parts {
		analyzer.Report(c.Pass, call, "wrong", "what C.%s has made is freed by C.%s, and not by C.%s", from, wants, name)
	}
}

// goObject returns the parameter that an expression is if it points to a struct of the package, and none of its type is in memory of C.
func (c *checker) goObject(u *uses.Unit, e ast.Expr) *types.Var {
	v, ok := c.pkg.Variable(e).(*types.Var)
	if !ok || !slices.Contains(u.Params(), v) {
		return nil
	}
	ptr, _ := v.Type().(*types.Pointer)
	name := source.TypeName(v.Type())
	if ptr == nil || name == nil || name.Pkg() != c.pkg.Types {
		return nil
	}
	if _, ok := name.Type().Underlying().(*types.Struct); !ok {
		return nil
	}
	for _, f := range c.pkg.Files {
		for n := range ast.Preorder(f) {
			if call, ok := n.(*ast.CallExpr); ok && c.pkg.IsConversion(call) && source.TypeName(c.pkg.Info.TypeOf(call.Fun)) == name {
				if _, by := c.pkg.Result(call.Args[0]); by != "" {
					return nil
				}
			}
		}
	}
	return v
}

// goMemory returns the variable of Go to whose memory an expression is a pointer, or nil.
func (c *checker) goMemory(u *uses.Unit, e ast.Expr) *types.Var {
	if v, ok := c.pkg.Variable(e).(*types.Var); ok && u.Local(v) && len(c.pkg.Values(v)) == 1 {
		e = c.pkg.Values(v)[0]
		switch x := ast.Unparen(e).(type) {
		case *ast.UnaryExpr: // &T{}
			if lit, ok := x.X.(*ast.CompositeLit); ok {
				if _, ok := c.pkg.Info.TypeOf(lit).(*types.Struct); ok || source.TypeName(c.pkg.Info.TypeOf(lit)) != nil {
					return v
				}
			}
		case *ast.CallExpr:
			if types.ExprString(x.Fun) == "new" {
				return v
			}
		}
	}
	elem := false
	for {
		e = c.pkg.Bare(e)
		call, ok := e.(*ast.CallExpr)
		if !ok || !c.pkg.Unsafe(call) || len(call.Args) == 0 {
			break
		}
		e, elem = call.Args[0], types.ExprString(call.Fun) == "unsafe.SliceData"
	}
	x := e
	if !elem {
		addr, ok := e.(*ast.UnaryExpr)
		if !ok || addr.Op != token.AND {
			return nil
		}
		x = addr.X
		if index, ok := ast.Unparen(x).(*ast.IndexExpr); ok {
			x, elem = index.X, true
		}
	}
	v, _ := c.pkg.ObjectOf(x).(*types.Var)
	if v == nil || !u.Within(v, u.Node) {
		return nil
	}
	if !elem {
		return v
	}
	slice, ok := v.Type().Underlying().(*types.Slice)
	if !ok {
		return nil
	}
	b, ok := slice.Elem().Underlying().(*types.Basic)
	if !ok || b.Kind() == types.Invalid && len(c.pkg.Values(v)) == 0 {
		return nil
	}
	for _, value := range c.pkg.Values(v) {
		if call, ok := ast.Unparen(value).(*ast.CallExpr); ok && b.Kind() == types.Invalid {
			if types.ExprString(call.Fun) != "make" {
				return nil
			}
			if t, ok := call.Args[0].(*ast.ArrayType); !ok || !c.numberType(t.Elt) {
				return nil
			}
		}
		switch call, _ := ast.Unparen(value).(*ast.CallExpr); {
		case call == nil:
			if _, lit := ast.Unparen(value).(*ast.CompositeLit); !lit {
				return nil
			}
		case types.ExprString(call.Fun) == "make", types.ExprString(call.Fun) == "append", c.pkg.IsConversion(call) && u.Copies(call):
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
	return v != nil && u.Local(v) && len(c.pkg.Values(v)) == 1 && !c.isObject(v.Type()) && len(c.made(u, v)) > 0
}

// stringData returns the text of a string of Go whose bytes an expression passes as a string of C, or "".
func (c *checker) stringData(e ast.Expr) string {
	call, ok := c.pkg.Bare(e).(*ast.CallExpr)
	if !ok || types.ExprString(call.Fun) != "unsafe.StringData" || !c.pkg.Unsafe(call) || len(call.Args) == 0 {
		return ""
	}
	for _, value := range append(c.pkg.Values(c.pkg.ObjectOf(call.Args[0])), call.Args[0]) {
		if v := c.pkg.Info.Types[value].Value; v != nil && strings.Contains(v.ExactString(), `\x00`) || strings.Contains(types.ExprString(value), `\x00`) {
			return "" // it ends with a zero
		}
	}
	return types.ExprString(call.Args[0])
}

// checkSize reports a block for n elements of a struct or of pointers that has n bytes.
func (c *checker) checkSize(u *uses.Unit, call *ast.CallExpr) {
	size := c.pkg.Bare(call.Args[0])
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
	for _, id := range u.Idents(v) {
		if view, ok := u.Parent(id).(*ast.CallExpr); ok && c.pkg.Unsafe(view) && len(view.Args) == 2 && view.Args[0] == id && types.ExprString(view.Args[1]) == text {
			analyzer.Report(c.Pass, call, "size", "the block has %s bytes, and is used for %s elements: multiply by the size of one", text, text)
			return
		}
	}
}

// asksAbout reports whether a unit compares a variable with nil behind a node.
func (c *checker) asksAbout(u *uses.Unit, v types.Object, n ast.Node) (found bool) {
	for _, id := range u.Idents(v) {
		cond, ok := u.Parent(id).(*ast.BinaryExpr)
		found = found || ok && id.Pos() > n.End() && types.ExprString(cond.Y) == "nil"
	}
	return found
}

// checkDefer reports a defer that frees nil, and one in a loop without an end that is known.
func (c *checker) checkDefer(u *uses.Unit, d *ast.DeferStmt) {
	name, arg := c.ends(d.Call)
	v := c.pkg.Variable(arg)
	if name == "" || v == nil || !u.Local(v) {
		return
	}
	if len(c.pkg.Values(v)) == 0 && name != "realloc" && c.checkEarly(u, d, v) {
		return
	}
	endless := false
	switch loop := u.Loop(d).(type) {
	case *ast.ForStmt:
		endless = loop.Post == nil && (loop.Cond == nil || uses.HasCall(loop.Cond))
	case *ast.RangeStmt:
		if t := c.pkg.Info.TypeOf(loop.X); t != nil {
			_, endless = t.Underlying().(*types.Chan)
		}
	}
	if endless && u.Within(v, u.Loop(d)) && u.Leads(d, nil, d) {
		analyzer.Report(c.Pass, d, "loop", "each round of the loop defers C.%s, which is called only when the function returns: free %s at the end of the round", name, v.Name())
	}
}

// checkEarly reports a defer that frees nil, since its variable gets its value later by its address.
func (c *checker) checkEarly(u *uses.Unit, d *ast.DeferStmt, v types.Object) (early bool) {
	has := false
	u.Own(func(n ast.Node) {
		addr, ok := n.(*ast.UnaryExpr)
		switch {
		case !ok || addr.Op != token.AND || c.pkg.ObjectOf(addr.X) != v || early:
		case addr.Pos() < d.Pos():
			has = true // a value already
		case !has && u.Leads(d, nil, addr):
			early = true
			analyzer.Report(c.Pass, d, "early", "the defer frees what %s has here, which is nil: it gets its value in line %d", types.ExprString(addr.X), c.Fset.Position(addr.Pos()).Line)
		}
	})
	return early
}
