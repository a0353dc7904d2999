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

	"github.com/cheapgo/cheap/vet/internal/uses"
)

// An alias is a variable with a pointer into memory that another one has.
type alias struct {
	v       types.Object
	def     ast.Node // what gives it the pointer, nil for the variable itself
	view    bool     // it is a slice or a string over the memory
	child   bool     // it has an object of its own, which must be released before that of the variable
	touches []touch
}

// A touch is a use of an alias.
type touch struct {
	id   *ast.Ident
	node ast.Node
	how  string // what it does with the memory, empty if it only looks at the pointer
	view bool   // a slice or a string has the memory
	obj  ast.Expr
}

// child matches the names of functions of C that make objects which are of no use without the one that they are made of.
var child = regexp.MustCompile(`(?i)(stmt|statement|prepare|cursor|iter(ator)?(_|$|new|init|create|open)|create_iter|txn|transaction|snapshot)`)

// aliases returns a variable and those of the unit that point into its memory. A function of C whose result belongs to something else
// returns such a pointer for its first argument, and one that makes a child.
func (c *checker) aliases(u *uses.Unit, v types.Object) []alias {
	list := []alias{{v: v}}
	add := func(from alias, use uses.Use, child bool) {
		if use.Role == uses.Names && !use.Inner && !slices.ContainsFunc(list, func(a alias) bool { return a.v == use.Var }) {
			list = append(list, alias{v: use.Var, def: use.Node, view: use.View || from.view, child: child})
		}
	}
	for i := 0; i < len(list) && i < 8; i++ {
		for _, id := range u.Idents(list[i].v) {
			use := u.Follow(id, false, c.calls)
			t := c.touchOf(u, id, use, use.View || list[i].view)
			call, ok := use.Node.(*ast.CallExpr)
			if list[i].child && ok && c.pkg.Releases(c.pkg.C(call.Fun)) {
				t.how = "released"
			}
			list[i].touches = append(list[i].touches, t)
			if ok && len(call.Args) > 0 && use.From == call.Args[0] && c.pkg.C(call.Fun) != "" {
				made := i == 0 && c.makesChild(call)
				for i, arg := range call.Args {
					if addr, ok := c.pkg.Bare(arg).(*ast.UnaryExpr); ok && made && c.rule(call, i+1) != nil && u.Local(c.pkg.ObjectOf(addr.X)) {
						add(list[0], uses.Use{Role: uses.Names, Var: c.pkg.ObjectOf(addr.X), Node: call}, true)
					}
				}
				if r := c.pkg.Rule(call, 0); made || r != nil && r.By == nil || c.pkg.Declared(c.pkg.C(call.Fun)).Borrowed() {
					use = u.Follow(call, false, c.calls)
				}
				add(list[i], use, made)
			} else {
				add(list[i], use, list[i].child)
			}
		}
	}
	return list
}

// makesChild reports whether a call of C makes a child of its first argument, as far as its name tells. What has been made of a connection to
// mysql may be closed later.
func (c *checker) makesChild(call *ast.CallExpr) bool {
	name := c.pkg.C(call.Fun)
	return len(call.Args) > 0 && child.MatchString(name) && makesObject.MatchString(name) && !gets.MatchString(name) && !strings.HasPrefix(name, "mysql_")
}

// endsAll matches the names of functions of C behind which nothing may use a child, nor release it.
var endsAll = regexp.MustCompile(`(?i)(close|free|destroy|delete|finish|dispose|release)$`)

// sameValue reports whether a variable has the value of another one.
func (c *checker) sameValue(u *uses.Unit, v, w types.Object) bool {
	if v == w {
		return true
	}
	for _, pair := range [][2]types.Object{{v, w}, {w, v}} {
		if list := c.pkg.Values(pair[0]); len(list) == 1 && c.pkg.Variable(list[0]) == pair[1] && u.Local(pair[0]) && len(c.pkg.Values(pair[1])) == 1 {
			return true
		}
	}
	return false
}

// stops matches the names of functions of C that end the use of a cgo.Handle as a number.
var stops = regexp.MustCompile(`(?i)(_off|un(reg|set|hook|sub|bind|install|watch|link)|remove|stop|clear|cancel|detach)`)

// touchOf says what a use of an alias does with the memory.
func (c *checker) touchOf(u *uses.Unit, id *ast.Ident, use uses.Use, view bool) touch {
	t := touch{id: id, node: use.Node, view: view}
	switch n := use.Node.(type) {
	case *ast.SelectorExpr, *ast.StarExpr:
		t.how = "read"
	case *ast.IndexExpr:
		if n.X == use.From {
			t.how = "read"
		}
	case *ast.RangeStmt:
		if n.X == use.From && view {
			t.node, t.how = n.X, "read"
		}
	case *ast.CallExpr:
		name := c.pkg.C(n.Fun)
		switch f, _ := c.pkg.ObjectOf(n.Fun).(*types.Builtin); {
		case name != "" && !c.pkg.Releases(name) && !(c.pkg.ObjectOf(id) != nil && isHandle(c.pkg.ObjectOf(id).Type()) && stops.MatchString(name)):
			t.how = "passed to C." + name
		case isMethod(c.pkg.Callee(n), "runtime/cgo", "Value"):
			t.how = "read"
		case c.pkg.IsConversion(n) && u.Copies(n), f != nil && f.Name() == "copy":
			t.how = "read"
		}
	case *ast.ReturnStmt:
		t.how = "returned"
	case *ast.CompositeLit:
		if ret, ok := around(u, n).(*ast.ReturnStmt); ok {
			t.node, t.how = ret, "returned"
		}
	case *ast.AssignStmt:
		i := slices.IndexFunc(n.Rhs, func(e ast.Expr) bool { return e == use.From })
		if i < 0 || len(n.Lhs) != len(n.Rhs) || use.Role != uses.Keeps {
			break
		}
		switch lhs := ast.Unparen(n.Lhs[i]).(type) {
		case *ast.SelectorExpr, *ast.Ident:
			t.how, t.obj = "stored", lhs
		}
	}
	return t
}

// checkUses reports uses of memory behind its release, and what is left of it when the function has returned.
func (c *checker) checkUses(u *uses.Unit, r release, writes []ast.Node) {
	_, deferred := r.at.(*ast.DeferStmt)
	if c.pkg.C(r.call.Fun) == "" && r.name != deleteHandle {
		return // the object of a method may say that it is closed
	}
	if m := closes.FindStringSubmatch(r.name); m != nil && !c.madeBy(u, r.v, m[1]) {
		return // closed is not freed
	}
	for _, a := range c.aliases(u, r.v) {
		if a.child && !endsAll.MatchString(r.name) {
			continue
		}
		if a.def != nil && !deferred && !u.Leads(a.def, nil, r.at) {
			if !a.child && u.Loop(r.at) == nil && slices.ContainsFunc(a.touches, func(t touch) bool { return t.how != "" }) && c.reaches(u, r.at, a.def, writes) {
				c.reportUse(r, a.def, "%s is used behind %s of it in line %d", r.v.Name(), types.ExprString(r.call.Fun), c.Fset.Position(r.call.Pos()).Line)
				return
			}
			continue
		}
		defs, plain := writes, true
		if a.v != r.v {
			defs, plain = c.writes(u, a.v)
		}
		if !plain {
			continue
		}
		for _, t := range a.touches {
			if c.pkg.Info.Uses[t.id] == nil || r.call.Pos() <= t.id.Pos() && t.id.Pos() < r.call.End() {
				continue
			}
			lit := u.Lit(t.id.Pos())
			if d := c.deferOf(u, t, lit); d != nil && t.how != "" && (d != r.at && u.Loop(d) == u.Loop(r.at) && c.reaches(u, d, r.at, writes) || d == r.at && a.child && t.id.Pos() > r.call.End()) {
				c.reportUse(r, t.node, "the defer uses %s, and runs behind %s of %s in line %d", a.v.Name(), types.ExprString(r.call.Fun), r.v.Name(), c.Fset.Position(r.call.Pos()).Line)
				return
			}
			if lit != nil {
				if deferred && c.checkLiteral(u, r, a, lit, defs) {
					return
				}
			} else if t.how != "" && c.checkTouch(u, r, a, t, defs, deferred) {
				return
			}
		}
	}
}

// isChild reports whether a field has what C has made of what another one has.
func (c *checker) isChild(of, sel *ast.SelectorExpr) bool {
	field, ok := c.pkg.Info.Uses[of.Sel].(*types.Var)
	parent := c.childOf[field].parent
	return ok && parent != nil && c.pkg.Info.Uses[sel.Sel] == types.Object(parent)
}

// deferOf returns the defer that touches memory when the function ends, whatever has happened, itself or by a literal, or nil.
func (c *checker) deferOf(u *uses.Unit, t touch, lit *ast.FuncLit) *ast.DeferStmt {
	call := t.node
	if lit != nil {
		if call = u.Parent(lit); u.Parent(u.Statement(t.node)) != ast.Node(lit.Body) {
			return nil
		}
		if _, ok := u.Statement(t.node).(*ast.ExprStmt); !ok {
			return nil
		}
	}
	d, _ := u.Parent(call).(*ast.DeferStmt)
	return d
}

// checkField reports a field of a variable that is used, or freed again, behind a free of it, and a child that is released behind it.
func (c *checker) checkField(u *uses.Unit, call *ast.CallExpr) {
	name, arg := c.ends(call)
	sel, ok := c.pkg.Bare(arg).(*ast.SelectorExpr)
	if _, plain := u.Parent(call).(*ast.ExprStmt); name == "" || !ok || !plain || c.pkg.C(call.Fun) == "" {
		return
	}
	v, text := c.pkg.Variable(sel.X), types.ExprString(sel)
	if v == nil {
		return
	}
	var writes, reads []ast.Node
	for _, id := range u.Idents(v) {
		of, ok := u.Parent(id).(*ast.SelectorExpr)
		s, assigned := u.Parent(of).(*ast.AssignStmt)
		by, passed := u.Parent(c.pkg.Dressed(of)).(*ast.CallExpr)
		switch {
		case !ok || u.Lit(id.Pos()) != nil || c.pkg.Func(of) != nil:
			writes = append(writes, id) // what has the whole may change the field
		case passed && endsAll.MatchString(name) && c.pkg.Releases(c.pkg.C(by.Fun)) && c.isChild(of, sel):
			reads = append(reads, by)
		case types.ExprString(of) != text || closes.MatchString(name):
		case assigned && slices.Contains(s.Lhs, ast.Expr(of)):
			writes = append(writes, s)
		case passed && by != call && c.pkg.C(by.Fun) != "" && by.Fun != of && (c.pkg.C(by.Fun) == name || !c.pkg.Releases(c.pkg.C(by.Fun))):
			reads = append(reads, by)
		case !passed:
			if _, addr := u.Parent(of).(*ast.UnaryExpr); addr {
				writes = append(writes, of)
			}
		}
	}
	for _, n := range reads {
		if u.Loop(n) == u.Loop(call) && n.Pos() > call.Pos() && c.reaches(u, call, n, writes) {
			c.reportAt(n, "after", fmt.Sprintf("%s, or what was made of it, is used behind C.%s of it in line %d", text, name, c.Fset.Position(call.Pos()).Line), nil,
				analysis.RelatedInformation{Pos: call.Pos(), Message: "the free"})
			return
		}
	}
}

// checkTouch reports a use of memory that is not there any more, or will not be.
func (c *checker) checkTouch(u *uses.Unit, r release, a alias, t touch, defs []ast.Node, deferred bool) bool {
	line, loop := c.Fset.Position(r.call.Pos()).Line, u.Loop(r.at)
	round := loop // what each round begins anew
	if f, ok := loop.(*ast.ForStmt); ok {
		round = f.Body
	}
	switch {
	case t.how == "stored":
		if !t.view || len(c.stores(u, t.obj, t.node)) > 0 || !deferred && !u.Leads(t.node, nil, r.at) {
			return false
		}
		return c.reportUse(r, t.node, "%s points into %s, which line %d frees", types.ExprString(t.obj), r.v.Name(), line)
	case deferred:
		if t.how != "returned" || !c.reaches(u, r.at, t.node, defs) {
			return false
		}
		return c.reportUse(r, t.node, "what is returned points into %s, which is freed when the function returns: line %d", r.v.Name(), line)
	case loop != nil && u.Within(r.v, round) && (loop != u.Loop(t.node) || t.node.Pos() < r.at.Pos()):
		return false // in the next round
	case !c.reaches(u, r.at, t.node, defs):
		return false
	}
	return c.reportUse(r, t.node, "%s is used behind %s of %s in line %d", a.v.Name(), types.ExprString(r.call.Fun), r.v.Name(), line)
}

// checkLiteral reports a function literal that outlives the memory which a defer frees: it is returned, or runs in a goroutine for
// which nothing waits.
func (c *checker) checkLiteral(u *uses.Unit, r release, a alias, lit *ast.FuncLit, defs []ast.Node) bool {
	switch p := u.Parent(lit).(type) {
	case *ast.ReturnStmt:
		if c.reaches(u, r.at, p, defs) {
			return c.reportUse(r, lit, "the function that is returned uses %s, which is freed when this one returns: line %d", a.v.Name(), c.Fset.Position(r.call.Pos()).Line)
		}
	case *ast.CallExpr:
		_, started := u.Parent(p).(*ast.GoStmt)
		waits := false
		u.Own(func(n ast.Node) {
			switch n := n.(type) {
			case *ast.UnaryExpr:
				waits = waits || n.Op == token.ARROW
			case *ast.SelectStmt:
				waits = true
			case *ast.RangeStmt:
				_, is := c.pkg.Info.TypeOf(n.X).(*types.Chan)
				waits = waits || is
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				waits = waits || n.Pos() > lit.End() && (!ok || u.C(sel) == "") && !c.pkg.IsConversion(n)
			}
		})
		if started && p.Fun == lit && !waits {
			return c.reportUse(r, lit, "the goroutine uses %s, which is freed when this function returns: line %d", a.v.Name(), c.Fset.Position(r.call.Pos()).Line)
		}
	}
	return false
}

func (c *checker) reportUse(r release, n ast.Node, format string, args ...any) bool {
	c.reportAt(n, "after", fmt.Sprintf(format, args...), nil, analysis.RelatedInformation{Pos: r.call.Pos(), Message: "the free"})
	return true
}

// reaches reports whether a way leads from one node to another on which nothing writes to the variable.
func (c *checker) reaches(u *uses.Unit, from, to ast.Node, writes []ast.Node) bool {
	s := uses.Search{From: from, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{}, To: to}
	for _, w := range writes {
		if !u.Within(to, w) { // p = p.next reads first
			s.Stop[w] = true
		}
	}
	if call, ok := from.(*ast.CallExpr); ok {
		if v := c.pkg.Receiver(c.pkg.Dressed(call)); v != nil {
			s.Nil[v] = true
		}
	}
	return u.Find(s) == to
}

// stores returns the assignments to a field or a variable but for one.
func (c *checker) stores(u *uses.Unit, to ast.Expr, but ast.Node) (list []ast.Node) {
	u.Own(func(n ast.Node) {
		if s, ok := n.(*ast.AssignStmt); ok && n != but {
			for _, lhs := range s.Lhs {
				if types.ExprString(lhs) == types.ExprString(to) {
					list = append(list, n)
				}
			}
		}
	})
	return list
}

// madeBy reports whether a variable has nothing but what a function of C whose name begins with a prefix returns, or gives it by its
// address.
func (c *checker) madeBy(u *uses.Unit, v types.Object, prefix string) bool {
	list := c.pkg.Values(v)
	if len(list) > 1 || prefix == "" || !u.Local(v) {
		return false
	}
	name := ""
	if len(list) == 1 {
		_, name = c.pkg.Result(list[0])
	} else if writes, _ := c.writes(u, v); len(writes) == 2 { // the declaration, and the call
		if call, ok := writes[1].(*ast.CallExpr); ok {
			name = c.pkg.C(call.Fun)
		}
	}
	return strings.HasPrefix(name, prefix)
}

// closes matches the names of functions that end what a function of the same library has opened.
var closes = regexp.MustCompile(`^(.*?)_?(?i:close)$`)
