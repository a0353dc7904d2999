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
	v    types.Object
	def  ast.Node // what gives it the pointer, nil for the variable itself
	view bool     // it is a slice or a string over the memory
}

// part returns the expression that has the memory into which the value of e points: p in unsafe.Slice(p, n), (*T)(p), p[:n] and
// &p.f. It is nil if e has another value. C functions whose result belongs to their argument count as well.
func (c *checker) part(u *uses.Unit, e ast.Expr) (of ast.Expr, view bool) {
	switch x := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		switch name := c.pkg.C(x.Fun); {
		case c.pkg.IsConversion(x) && !u.Copies(x):
			return x.Args[0], false
		case c.isUnsafe(x):
			return x.Args[0], true
		case name != "" && len(x.Args) > 0 && !c.pkg.IsConversion(x) && c.pkg.Declared(name).Borrowed():
			return x.Args[0], false
		}
	case *ast.SliceExpr:
		if star, ok := ast.Unparen(x.X).(*ast.StarExpr); ok {
			return star.X, true
		}
		return x.X, true
	case *ast.UnaryExpr:
		if x.Op != token.AND {
			break
		}
		switch of := ast.Unparen(x.X).(type) {
		case *ast.IndexExpr:
			return of.X, false
		case *ast.SelectorExpr:
			return of.X, false
		}
	}
	return nil, false
}

func (c *checker) isUnsafe(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	b, ok := c.pkg.Info.Uses[sel.Sel].(*types.Builtin)
	return ok && b.Name() != "Sizeof" && b.Name() != "Offsetof" && b.Name() != "Alignof"
}

// rootOf returns the variable with the memory into which an expression points, or nil.
func (c *checker) rootOf(u *uses.Unit, e ast.Expr) (v types.Object, view bool) {
	for e != nil {
		if v, ok := c.pkg.ObjectOf(e).(*types.Var); ok {
			return v, view
		}
		of, more := c.part(u, e)
		e, view = of, view || more
	}
	return nil, false
}

// aliases returns a variable and those of the unit that point into its memory.
func (c *checker) aliases(u *uses.Unit, v types.Object) []alias {
	list := []alias{{v: v}}
	for i := 0; i < len(list) && i < 8; i++ {
		u.Own(func(n ast.Node) {
			s, ok := n.(*ast.AssignStmt)
			if !ok || len(s.Lhs) != len(s.Rhs) {
				return
			}
			for j, rhs := range s.Rhs {
				w := c.pkg.ObjectOf(s.Lhs[j])
				if root, view := c.rootOf(u, rhs); root == list[i].v && w != nil && u.Local(w) && !slices.ContainsFunc(list, func(a alias) bool { return a.v == w }) {
					list = append(list, alias{w, s, view || list[i].view})
				}
			}
		})
	}
	return list
}

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

// A touch is a use of memory by an expression.
type touch struct {
	node ast.Node
	how  string
	view bool // a slice or a string has the memory
	obj  ast.Expr
}

// touchOf says what a use of an alias does with the memory. how is empty if it only looks at the pointer.
func (c *checker) touchOf(u *uses.Unit, id *ast.Ident, a alias) touch {
	t := touch{view: a.view}
	e := ast.Expr(id)
	for {
		p, ok := u.Parent(e).(ast.Expr)
		if _, paren := p.(*ast.ParenExpr); ok && paren {
			e = p
			continue
		}
		if star, is := p.(*ast.StarExpr); is && u.Sliced(star) != nil {
			e, t.view = u.Sliced(star), true
			continue
		}
		if !ok {
			break
		}
		of, view := c.part(u, p)
		if call, is := p.(*ast.CallExpr); is && c.pkg.C(call.Fun) != "" && !c.pkg.IsConversion(call) {
			break
		}
		if of == nil || ast.Unparen(of) != ast.Unparen(e) {
			break
		}
		e, t.view = p, t.view || view
	}
	t.node = e
	switch p := u.Parent(e).(type) {
	case *ast.SelectorExpr, *ast.StarExpr:
		if u.C(p.(ast.Expr)) == "" {
			t.how = "read"
		}
	case *ast.IndexExpr:
		if p.X == e {
			t.how = "read"
		}
	case *ast.RangeStmt:
		if p.X == e && t.view {
			t.how = "read"
		}
	case *ast.CallExpr:
		name := c.pkg.C(p.Fun)
		switch f, _ := c.pkg.ObjectOf(p.Fun).(*types.Builtin); {
		case p.Fun == e:
		case name != "" && !c.pkg.Releases(name):
			t.how = "passed to C." + name
		case c.pkg.IsConversion(p) && u.Copies(p), f != nil && f.Name() == "copy":
			t.how = "read"
		}
	case *ast.ReturnStmt:
		t.node, t.how = p, "returned"
	case *ast.KeyValueExpr, *ast.CompositeLit:
		n := ast.Node(p)
		for n != nil {
			switch parent := u.Parent(n).(type) {
			case *ast.CompositeLit, *ast.KeyValueExpr, *ast.UnaryExpr:
				n = parent
				continue
			case *ast.ReturnStmt:
				t.node, t.how = parent, "returned"
			}
			break
		}
	case *ast.AssignStmt:
		i := slices.Index(p.Rhs, e)
		if i < 0 || len(p.Lhs) != len(p.Rhs) {
			break
		}
		switch lhs := ast.Unparen(p.Lhs[i]).(type) {
		case *ast.SelectorExpr:
			if root, _ := c.pkg.ObjectOf(lhs.X).(*types.Var); root != nil && !u.Local(root) {
				t.node, t.how, t.obj = p, "stored", lhs
			}
		case *ast.Ident:
			if v, ok := c.pkg.ObjectOf(lhs).(*types.Var); ok && v.Parent() == c.pkg.Types.Scope() {
				t.node, t.how, t.obj = p, "stored", lhs
			}
		}
	}
	return t
}

// checkUses reports uses of memory behind its release, and what is left of it when the function has returned.
func (c *checker) checkUses(u *uses.Unit, r release, writes []ast.Node) {
	_, deferred := r.at.(*ast.DeferStmt)
	if c.pkg.C(r.call.Fun) == "" {
		return // the object of a method may say that it is closed
	}
	if m := closes.FindStringSubmatch(r.name); m != nil && !c.madeBy(u, r.v, m[1]) {
		return // closed is not freed
	}
	for _, a := range c.aliases(u, r.v) {
		if a.def != nil && !u.Leads(a.def, nil, r.at) && !deferred {
			continue
		}
		defs, plain := writes, true
		if a.v != r.v {
			defs, plain = c.writes(u, a.v)
		}
		if !plain {
			continue
		}
		for _, id := range u.Idents(a.v) {
			if c.pkg.Info.Uses[id] == nil || r.call.Pos() <= id.Pos() && id.Pos() < r.call.End() || a.def != nil && id.Pos() < a.def.End() && id.Pos() >= a.def.Pos() {
				continue
			}
			if lit := u.Lit(id.Pos()); lit != nil {
				if deferred && c.checkLiteral(u, r, a, lit, defs) {
					return
				}
			} else if t := c.touchOf(u, id, a); t.how != "" && c.checkTouch(u, r, a, t, defs, deferred) {
				return
			}
		}
	}
}

// checkTouch reports a use of memory that is not there any more, or will not be.
func (c *checker) checkTouch(u *uses.Unit, r release, a alias, t touch, defs []ast.Node, deferred bool) bool {
	line := c.Fset.Position(r.call.Pos()).Line
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
	case u.Loop(r.at) != nil && u.Within(r.v, u.Loop(r.at)) && (u.Loop(r.at) != u.Loop(t.node) || t.node.Pos() < r.at.Pos()):
		return false // in the next round
	case !c.reaches(u, r.at, t.node, defs):
		return false
	}
	return c.reportUse(r, t.node, "%s is used behind C.%s of %s in line %d", a.v.Name(), r.name, r.v.Name(), line)
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
		s.Stop[w] = true
	}
	if call, ok := from.(*ast.CallExpr); ok {
		if v := c.pkg.Receiver(call); v != nil {
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

// madeBy reports whether a variable has nothing but the result of a function of C whose name begins with a prefix.
func (c *checker) madeBy(u *uses.Unit, v types.Object, prefix string) bool {
	list := c.pkg.Values(v)
	if len(list) != 1 || prefix == "" || !u.Local(v) {
		return false
	}
	_, name := c.pkg.Result(list[0])
	return strings.HasPrefix(name, prefix)
}

// closes matches the names of functions that end what a function of the same library has opened.
var closes = regexp.MustCompile(`^(.*?)_?(?i:close)$`)
