package uses

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"github.com/cheapgo/cheap/vet/internal/source"
)

// conditions returns the conditions that hold at n because of the if statements around it, by
// their text.
func (u *Unit) conditions(n ast.Node) map[string]bool {
	known := map[string]bool{}
	u.learnValues(n, known)
	u.learnCounts(n, known)
	for ; n != nil && n != u.Node; n = u.Parent(n) {
		s, ok := u.Parent(n).(*ast.IfStmt)
		if !ok {
			continue
		}
		switch n {
		case s.Body:
			u.learn(s.Cond, true, known)
		case s.Else:
			u.learn(s.Cond, false, known)
		}
	}
	return known
}

// learnCounts learns that a count is not 0: of the elements over which a loop around n goes, and of what a block has at n, which
// nobody misses if it is empty.
func (u *Unit) learnCounts(n ast.Node, known map[string]bool) {
	some := func(text string) {
		for _, cond := range []string{" == 0", " <= 0", " < 1"} {
			known[text+cond] = false
		}
		known[text+" > 0"], known[text+" != 0"], known["0 < "+text] = true, true, true
	}
	number := func(e ast.Expr) {
		if basic, ok := u.Info.TypeOf(e).(*types.Basic); !ok || basic.Info()&types.IsInteger != 0 {
			some(types.ExprString(e))
		}
	}
	if call, ok := n.(*ast.CallExpr); ok && u.Allocates(u.C(call.Fun)) {
		for _, arg := range call.Args {
			ast.Inspect(arg, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					if v, ok := u.ObjectOf(n).(*types.Var); ok {
						number(n)
						for _, value := range u.Values(v) {
							number(value)
						}
					}
				case *ast.CallExpr:
					if types.ExprString(n.Fun) == "len" {
						number(n)
					}
				}
				return true
			})
		}
	}
	for ; n != nil && n != u.Node; n = u.Parent(n) {
		if loop, ok := n.(*ast.RangeStmt); ok {
			some("len(" + types.ExprString(loop.X) + ")")
		}
	}
}

// learnValues learns which values variables have behind the if statement or the switch that n is in, because of assignments beside n:
//
//	if text {
//		kind, p = ofText, C.CString(s)
//	} else {
//		kind = ofNumber
//	}
func (u *Unit) learnValues(n ast.Node, known map[string]bool) {
	if u.Loop(n) != nil {
		return
	}
	var outer ast.Node
	var list []ast.Stmt
	for ; n != nil && n != u.Node; n = u.Parent(n) {
		switch s := n.(type) {
		case *ast.IfStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
			outer = n
		case *ast.BlockStmt:
			list = append(list, s.List...)
		case *ast.CaseClause:
			list = append(list, s.Body...)
		}
	}
	if outer == nil {
		return
	}
	for _, s := range list {
		s, ok := s.(*ast.AssignStmt)
		if !ok || len(s.Lhs) != len(s.Rhs) || s.Pos() < outer.Pos() || s.End() > outer.End() {
			continue
		}
		for i, lhs := range s.Lhs {
			v := u.ObjectOf(lhs)
			constant := u.Info.Types[s.Rhs[i]].Value != nil || u.C(s.Rhs[i]) != ""
			if v != nil && constant && u.Local(v) && u.settled(v, s, outer) {
				known[types.ExprString(lhs)+" == "+types.ExprString(s.Rhs[i])] = true
				if value := types.ExprString(s.Rhs[i]); value == "true" || value == "false" {
					known[v.Name()] = value == "true"
				}
			}
		}
	}
}

// settled reports whether a variable keeps the value that a statement gives it behind the node that the statement is in.
func (u *Unit) settled(v types.Object, s ast.Stmt, outer ast.Node) bool {
	settled := true
	for _, id := range u.Idents(v) {
		switch p := u.Parent(id).(type) {
		case *ast.AssignStmt:
			within := outer.Pos() <= p.Pos() && p.End() <= outer.End() && u.Parent(p) != u.Parent(s)
			if slices.Contains(p.Lhs, ast.Expr(id)) && p != s && !within && p.Pos() > outer.Pos() {
				settled = false
			}
		case *ast.UnaryExpr:
			settled = settled && p.Op != token.AND
		case *ast.IncDecStmt, *ast.RangeStmt:
			settled = false
		}
		settled = settled && u.Lit(id.Pos()) == nil
	}
	return settled
}

func (u *Unit) learn(cond ast.Expr, holds bool, known map[string]bool) {
	switch c := ast.Unparen(cond).(type) {
	case *ast.BinaryExpr:
		if c.Op == token.LAND && holds || c.Op == token.LOR && !holds {
			u.learn(c.X, holds, known)
			u.learn(c.Y, holds, known)
			return
		}
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			u.learn(c.X, !holds, known)
			return
		}
	}
	if !HasCall(cond) {
		known[types.ExprString(cond)] = holds
	}
}

// HasCall reports whether an expression calls something, so that it may have another value the
// next time. Conversions and len look alike.
func HasCall(e ast.Expr) bool {
	for n := range ast.Preorder(e) {
		if call, ok := n.(*ast.CallExpr); ok && types.ExprString(call.Fun) != "len" {
			return true
		}
	}
	return false
}

// impossible reports whether cond cannot have that value on the way.
func (u *Unit) impossible(cond ast.Expr, value bool, s Search, err bool, known map[string]bool) bool {
	if holds, ok := known[types.ExprString(cond)]; ok && holds != value {
		return true
	}
	if s.Made && err && u.isLeaf(cond) && u.isStatus(cond, s) && !isLimit(cond) {
		failed, known := u.failed(ast.Unparen(cond), s)
		return !known || (failed == value) != s.Fails
	}
	switch c := ast.Unparen(cond).(type) {
	case *ast.CallExpr: // errors.Is(err, target) says that there is one
		f := u.Callee(c)
		is := source.IsFunc(f, "errors", "Is") || source.IsFunc(f, "errors", "As")
		return value && is && err && s.Err != nil && len(c.Args) == 2 && u.ObjectOf(c.Args[0]) == s.Err
	case *ast.UnaryExpr:
		return c.Op == token.NOT && u.impossible(c.X, !value, s, err, known)
	case *ast.BinaryExpr:
		if (c.Op == token.LAND || c.Op == token.LOR) && u.Within(s.From, c.Y) { // what is left of it has not decided
			return u.impossible(c.Y, value, s, err, known)
		}
		switch c.Op {
		case token.LAND:
			x, y := u.impossible(c.X, value, s, err, known), u.impossible(c.Y, value, s, err, known)
			return value && (x || y) || x && y
		case token.LOR:
			x, y := u.impossible(c.X, value, s, err, known), u.impossible(c.Y, value, s, err, known)
			return !value && (x || y) || x && y
		case token.GTR: // the length of what C has made
			sel, ok := u.Bare(c.X).(*ast.SelectorExpr)
			return ok && isZero(c.Y) && !value && s.Nil[u.ObjectOf(sel.X)]
		case token.EQL, token.NEQ:
			x, y := c.X, c.Y
			if isNil(x) {
				x, y = y, x
			}
			if !isNil(y) && !isZero(y) {
				return false
			}
			x = u.Bare(x) // also of unsafe.Pointer(v) == nil
			if sel, ok := x.(*ast.SelectorExpr); ok && s.Made && isNil(y) && s.Nil[u.ObjectOf(sel.X)] && len(u.Values(u.ObjectOf(sel.X))) == 0 && !u.IsStar(u.ObjectOf(sel.X)) {
				return (c.Op == token.EQL) == value // C has put nothing into the struct where it is nil
			}
			if sel, ok := x.(*ast.SelectorExpr); ok && isNil(y) && s.NotNil == "" && s.Nil[u.ObjectOf(sel.X)] && u.Owns != nil && u.Owns(u.Info.TypeOf(sel.X)) && u.Points(u.Info.Uses[sel.Sel]) {
				return (c.Op == token.EQL) == value // an object without its pointer has nothing
			}
			switch obj := u.ObjectOf(x); {
			case obj != nil && s.Nil[obj], s.NotNil != "" && types.ExprString(x) == s.NotNil:
				return (c.Op == token.EQL) == value
			case obj != nil && obj == s.Err && err:
				return (c.Op == token.NEQ) == value
			}
		}
	}
	return false
}

// limit matches numbers from 2 on.
var limit = regexp.MustCompile(`^([2-9]|\d\d+|\d+ ?<< ?\d+)$`)

// isLimit reports whether a condition says that something is larger than such a number, which is no failure.
func isLimit(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && (c.Op == token.GTR || c.Op == token.GEQ) && limit.MatchString(types.ExprString(c.Y))
}

func isNil(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && id.Name == "nil"
}

func isZero(e ast.Expr) bool {
	lit, ok := ast.Unparen(e).(*ast.BasicLit)
	return ok && lit.Value == "0"
}

// status returns the variables that say whether the call of C that a search begins with has failed: those that get its results, that it
// is given the addresses of, and that get something made of these.
func (u *Unit) status(call *ast.CallExpr, s Search) (set map[types.Object]bool, fields []string) {
	set = map[types.Object]bool{}
	add := func(e ast.Expr) {
		if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
			fields, e = append(fields, types.ExprString(sel)), sel.X
		}
		if v, ok := u.ObjectOf(e).(*types.Var); ok && !s.Nil[v] {
			set[v] = true
		}
	}
	for _, arg := range call.Args {
		if values := u.Values(u.Variable(arg)); len(values) == 1 { // p := unsafe.Pointer(&status)
			arg = values[0]
		}
		if addr, ok := u.Bare(arg).(*ast.UnaryExpr); ok && addr.Op == token.AND {
			add(addr.X)
		}
	}
	for range 2 {
		u.Own(func(n ast.Node) {
			of := func(value ast.Expr) bool {
				return n.Pos() >= u.Statement(call).Pos() && (u.Within(call, n) || u.mentionsAny(value, set))
			}
			switch n := n.(type) {
			case *ast.AssignStmt:
				if len(n.Rhs) == 1 && of(n.Rhs[0]) {
					for _, lhs := range n.Lhs {
						add(lhs)
					}
				}
			case *ast.ValueSpec:
				if len(n.Values) == 1 && of(n.Values[0]) {
					for _, name := range n.Names {
						add(name)
					}
				}
			}
		})
	}
	return set, fields
}

func (u *Unit) mentionsAny(n ast.Node, set map[types.Object]bool) bool {
	for part := range ast.Preorder(n) {
		if id, ok := part.(*ast.Ident); ok && set[u.Info.ObjectOf(id)] {
			return true
		}
	}
	return false
}

// releasesAny reports whether a node gives one of the variables to a function of C that releases, and whether it does something else with
// one.
func (u *Unit) releasesAny(n ast.Node, set map[types.Object]bool) (released, used bool) {
	for part := range ast.Preorder(n) {
		if id, ok := part.(*ast.Ident); ok && set[u.Info.ObjectOf(id)] {
			e := u.Dressed(id)
			if addr, ok := u.Parent(e).(*ast.UnaryExpr); ok {
				e = u.Dressed(addr)
			}
			call, ok := u.Parent(e).(*ast.CallExpr)
			ends := ok && u.Releases(u.C(call.Fun))
			released, used = released || ends, used || !ends
		}
	}
	return released, used
}

// forgets reports whether a node gives a variable that says whether a call has failed something else.
func (u *Unit) forgets(n ast.Node, s Search) bool {
	a, ok := n.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { return s.status[u.ObjectOf(e)] }) &&
		!slices.ContainsFunc(a.Rhs, func(e ast.Expr) bool { return u.isStatus(e, s) })
}

// isLeaf reports whether an expression is not made of other conditions.
func (u *Unit) isLeaf(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return e.Op != token.NOT
	case *ast.BinaryExpr:
		return e.Op != token.LAND && e.Op != token.LOR
	}
	return true
}

// isStatus reports whether an expression has the result of the call that a search begins with, or what says whether it has failed.
// A field that the call sets says so where it is compared with something other than nil.
func (u *Unit) isStatus(e ast.Expr, s Search) bool {
	if c, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && !isNil(c.Y) && slices.Contains(s.fields, types.ExprString(u.Bare(c.X))) {
		return true
	}
	return u.Within(s.From, e) || u.mentionsAny(e, s.status)
}

// ReturnsError reports whether the last result of a return statement is an error, and not nil.
func (u *Unit) ReturnsError(ret *ast.ReturnStmt) bool {
	if len(ret.Results) == 0 {
		return false
	}
	last := ret.Results[len(ret.Results)-1]
	t := u.Info.TypeOf(last)
	return t != nil && !isNil(last) && types.AssignableTo(t, types.Universe.Lookup("error").Type())
}

// good and bad match the names of constants of C that say that a function has not failed, or that it has.
var (
	good = regexp.MustCompile(`(?i)(ok|success|succeed(ed)?|none|no_?err(or)?|true|done)$`)
	bad  = regexp.MustCompile(`(?i)(err|error|fail|failed|failure|false|nomem\w*)$`)
)

// failed reports whether a condition says that the call has failed. It does not know that of most but by the block behind them, which
// leaves the function, or goes on with what the call has made.
func (u *Unit) failed(e ast.Expr, s Search) (failed, known bool) {
	if c, ok := e.(*ast.BinaryExpr); ok {
		switch name := u.C(c.Y); {
		case good.MatchString(name), isNil(c.Y) && types.Identical(u.Info.TypeOf(c.X), types.Universe.Lookup("error").Type()):
			return c.Op == token.NEQ, true
		case bad.MatchString(name):
			return c.Op == token.EQL, true
		case c.Op == token.LSS, c.Op == token.GEQ && isZero(c.Y):
			return c.Op == token.LSS, true
		}
	}
	not := false
	for n := ast.Node(e); ; n = u.Parent(n) {
		switch p := u.Parent(n).(type) {
		case *ast.BinaryExpr, *ast.ParenExpr:
		case *ast.UnaryExpr:
			not = !not
		case *ast.IfStmt:
			last := len(p.Body.List) - 1
			released, used := u.releasesAny(p.Body, s.Nil)
			if n != p.Cond || last < 0 {
				return false, false
			}
			switch end := p.Body.List[last].(type) {
			case *ast.ReturnStmt:
				return (!u.mentionsAny(end, s.Nil) || u.ReturnsError(end)) != not, true
			case *ast.BranchStmt:
				return !not, !released
			}
			return !used != not, released || used
		default:
			return false, false
		}
	}
}
