package uses

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
)

// A Role is what an expression does with the value that it has.
type Role int

const (
	Looks  Role = iota // it reads the value, or passes it to what only reads it
	Frees              // it frees the value
	Keeps              // it stores the value, or passes it to what may
	Leaves             // it returns the value
	Names              // it gives the value to a local variable, which then has it too
	Stores             // it puts the value into a field or an element of a local variable
	Drops              // nothing has the value
	Writes             // it gives the variable another value
)

// A Use is what becomes of the value of an expression.
type Use struct {
	Role  Role
	Node  ast.Node     // the call, the statement or the expression that decides it
	Var   types.Object // of Names and Stores
	Inner bool         // of Names and Stores: Var has the value within, in a field or an element
	Field *types.Var   // of Keeps and Stores: the field of a struct that the value is put into
	C     string       // of Keeps and Stores: the name of the field of a struct of C, whose type is not known
	Index int          // of Leaves: which result

	// Of Names and Stores with Inner: the name of the field of Var that has the value, or empty if it is not known or deeper.
	In string

	From ast.Node // the part of Node that has the value
	View bool     // From is a slice or a string over the memory
}

// An ArgumentRole says what becomes of an argument of a call of a Go function, the receiver being
// argument -1. It is asked for functions that are known, with f, and for others, with nil. Leaves says that the
// function returns it, and nothing else.
type ArgumentRole func(u *Unit, call *ast.CallExpr, f *types.Func, arg int, inner bool) Role

// A carrier is an expression that has the value which is followed. With inner the value is in a field
// or an element of that of the expression: in the field of the name in, if that is not empty.
type carrier struct {
	node  ast.Node
	inner bool
	in    string
}

// deep is the name in of a carrier whose value is within its elements, and not an element.
const deep = "*"

// Follow returns what becomes of the value of e. With inner the value is in a field or an element
// of that of e.
//
// It goes up from e to the node that decides. Each step is a method that returns either the next
// carrier, or, with a carrier that is zero, the use of the value.
func (u *Unit) Follow(e ast.Expr, inner bool, roles ArgumentRole) Use {
	return u.follow(carrier{e, inner, ""}, roles)
}

func (u *Unit) follow(at carrier, roles ArgumentRole) Use {
	for view := false; ; {
		next, use := u.step(at, roles)
		if next.node == nil {
			use.From, use.View = at.node, view
			return use
		}
		switch n := next.node.(type) {
		case *ast.SliceExpr:
			view = true
		case *ast.CallExpr:
			view = view || u.Unsafe(n)
		}
		at = next
	}
}

// step goes from a carrier to its parent.
func (u *Unit) step(at carrier, roles ArgumentRole) (carrier, Use) {
	switch p := u.Parent(at.node).(type) {
	case *ast.ParenExpr, *ast.TypeAssertExpr:
		return carrier{p, at.inner, at.in}, Use{}
	case *ast.KeyValueExpr:
		return onlyFrom(p.Value, at, p)
	case *ast.SliceExpr:
		return onlyFrom(p.X, at, p)
	case *ast.BinaryExpr:
		if p.Op == token.ADD || p.Op == token.SUB {
			return carrier{p, at.inner, at.in}, Use{}
		}
		return carrier{}, Use{Role: Looks, Node: p}
	case *ast.CompositeLit:
		if field := u.literalField(p, at.node.(ast.Expr)); field != nil && field.Pkg() == u.Types {
			return carrier{}, Use{Role: Keeps, Node: p, Field: field}
		}
		return carrier{p, true, ""}, Use{}
	case *ast.StarExpr:
		return u.element(p, at)
	case *ast.IndexExpr:
		if p.Index != at.node {
			return u.element(p, at)
		}
		if u.written(p) {
			return carrier{}, Use{Role: Keeps, Node: p} // as the key of a map
		}
		return carrier{}, Use{Role: Looks, Node: p}
	case *ast.SelectorExpr:
		return u.selected(p, at, roles)
	case *ast.UnaryExpr:
		if p.Op != token.AND {
			return carrier{}, Use{Role: Looks, Node: p}
		}
		if _, ok := at.node.(*ast.Ident); ok && !at.inner {
			return carrier{}, u.byAddress(p, roles)
		}
		return carrier{p, true, at.in}, Use{}
	case *ast.CallExpr:
		use, on := u.argument(p, at.node, at.inner, roles)
		if on {
			return carrier{p, at.inner, at.in}, Use{}
		}
		return carrier{}, use
	default:
		return carrier{}, u.inStatement(p, at)
	}
}

// onlyFrom goes on to the parent p from its operand alone. Other operands are read.
func onlyFrom(operand ast.Expr, at carrier, p ast.Node) (carrier, Use) {
	if operand != at.node {
		return carrier{}, Use{Role: Looks, Node: p}
	}
	return carrier{p, at.inner, at.in}, Use{}
}

// element goes on from x to *x or x[i].
func (u *Unit) element(e ast.Expr, at carrier) (carrier, Use) {
	if addr := u.address(e); addr != nil && !at.inner {
		return carrier{addr, at.inner, at.in}, Use{}
	}
	if star, ok := e.(*ast.StarExpr); ok && !at.inner && u.Sliced(star) != nil {
		return carrier{star, false, ""}, Use{}
	}
	if star, ok := e.(*ast.StarExpr); ok && !at.inner && u.owns(star) && !u.written(star) {
		return carrier{star, at.inner, at.in}, Use{} // a copy of the struct has it as well
	}
	return u.within(e, at)
}

// Sliced returns the slice of an array, which has its address, or nil.
func (u *Unit) Sliced(e ast.Expr) *ast.SliceExpr {
	if s, ok := u.Parent(u.Dressed(e)).(*ast.SliceExpr); ok && ast.Unparen(s.X) == e {
		return s
	}
	return nil
}

// selected goes on from x to x.f.
func (u *Unit) selected(p *ast.SelectorExpr, at carrier, roles ArgumentRole) (carrier, Use) {
	method, _ := u.Info.Uses[p.Sel].(*types.Func)
	if call, ok := u.Parent(p).(*ast.CallExpr); ok && call.Fun == p {
		if method != nil && types.IsInterface(method.Signature().Recv().Type()) {
			if u.Releases(method.Name()) {
				return carrier{}, Use{Role: Frees, Node: call}
			}
			return carrier{}, Use{Role: Looks, Node: call}
		}
		if f := u.Func(p); f != nil {
			role := roles(u, call, f, -1, at.inner)
			if role == Leaves {
				role = Keeps // a builder, which may end in what takes it over
			}
			return carrier{}, Use{Role: role, Node: call}
		}
	}
	if method != nil && method.Signature().Recv() != nil {
		return carrier{}, Use{Role: Keeps, Node: p} // a method value
	}
	if addr := u.address(p); addr != nil && !at.inner {
		return carrier{addr, at.inner, at.in}, Use{}
	}
	if use, ok := u.pointerOf(p, at, roles); ok {
		return carrier{}, use
	}
	return u.within(p, at)
}

// puts matches the names of functions of C that put an object into another one, which owns it.
var puts = regexp.MustCompile(`(?i)(add|insert|append|prepend|push|attach|pack)`)

// pointerOf returns what becomes of the pointer x.f of an object, if that goes somewhere: a function of C frees it or takes it over, or it
// leaves the function. What a method does to a field of its receiver does not count.
func (u *Unit) pointerOf(p *ast.SelectorExpr, at carrier, roles ArgumentRole) (use Use, ok bool) {
	if at.inner || u.Owns == nil || !u.Owns(u.Info.TypeOf(p.X)) || u.following > 1 {
		return use, false
	}
	params := u.Params()
	if d, method := u.Node.(*ast.FuncDecl); method && d.Recv != nil && len(params) > 0 && params[0] != nil && u.ObjectOf(p.X) == types.Object(params[0]) {
		return use, false
	}
	u.following++ // n = n.next leads here again
	defer func() { u.following-- }()
	e := u.Dressed(p)
	if call, is := u.Parent(e).(*ast.CallExpr); is && u.C(call.Fun) != "" {
		index := slices.Index(call.Args, e)
		switch name := u.C(call.Fun); {
		case index < 0:
			return use, false
		case u.FreesArg(name, index):
			return Use{Role: Frees, Node: call}, true
		case u.KeepsArg(name, index), index > 0 && puts.MatchString(name):
			return Use{Role: Keeps, Node: call}, true
		}
		return use, false
	}
	field, _ := u.Info.Uses[p.Sel].(*types.Var)
	if u.written(p) || field == nil || !u.Points(field.Origin()) || !u.Releasable(field.Origin()) {
		return use, false
	}
	switch use = u.follow(carrier{node: p}, roles); {
	case use.Role == Names && !use.Inner:
		for _, use := range u.Fate(use.Var, false, roles).Uses {
			if use.Role != Writes {
				return use, true
			}
		}
	case use.Role == Frees, use.Role == Keeps, use.Role == Leaves, use.Role == Stores:
		use.Inner = false
		return use, true
	}
	return use, false
}

// MayHold reports whether a variable of the type may have the address of C memory, itself or in it.
// Types of C are invalid.
func MayHold(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return !ok || b.Kind() == types.UnsafePointer || b.Kind() == types.Uintptr || b.Kind() == types.Invalid
}

// within goes on to e, which is a part of what has the value: if that is inner, e may have it.
func (u *Unit) within(e ast.Expr, at carrier) (carrier, Use) {
	if !at.inner || u.written(e) {
		return carrier{}, Use{Role: Looks, Node: e}
	}
	if _, ok := e.(*ast.IndexExpr); ok && at.in == deep {
		return carrier{e, true, ""}, Use{}
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if at.in != "" && at.in != sel.Sel.Name && !u.embedded(sel) && u.address(e) == nil {
			return carrier{}, Use{Role: Looks, Node: e} // another field, and its address does not lead to the whole
		}
		at.in = ""
	}
	return carrier{e, at.in != "" || u.deeper(e), at.in}, Use{}
}

// embedded reports whether a selector chooses an embedded struct, which may have the field that has the value.
func (u *Unit) embedded(sel *ast.SelectorExpr) bool {
	field, ok := u.Info.Uses[sel.Sel].(*types.Var)
	return ok && field.Embedded()
}

// inStatement says what becomes of a value in a statement.
func (u *Unit) inStatement(n ast.Node, at carrier) Use {
	switch p := n.(type) {
	case *ast.AssignStmt:
		return u.inAssignment(p, at)
	case *ast.ValueSpec:
		for i, value := range p.Values {
			if value == at.node && i < len(p.Names) {
				return u.assigned(p, p.Names[i], at)
			}
		}
	case *ast.ReturnStmt:
		for i, result := range p.Results {
			if result == at.node {
				return Use{Role: Leaves, Node: p, Inner: at.inner, Index: i}
			}
		}
		return Use{Role: Leaves, Node: p}
	case *ast.RangeStmt:
		if p.X == at.node && at.inner && p.Value != nil {
			if at.in == deep {
				return u.assigned(p, p.Value, carrier{inner: true})
			}
			return u.assigned(p, p.Value, carrier{inner: at.in != "", in: at.in})
		}
	case *ast.SendStmt:
		if p.Value == at.node {
			return Use{Role: Keeps, Node: p}
		}
	case *ast.ExprStmt:
		return Use{Role: Drops, Node: p}
	}
	return Use{Role: Looks, Node: n}
}

func (u *Unit) inAssignment(p *ast.AssignStmt, at carrier) Use {
	for _, lhs := range p.Lhs {
		if lhs == at.node {
			return Use{Role: Writes, Node: p}
		}
	}
	for i, rhs := range p.Rhs {
		if rhs == at.node {
			if len(p.Rhs) != len(p.Lhs) {
				i = 0
			}
			return u.assigned(p, p.Lhs[i], at)
		}
	}
	return Use{Role: Looks, Node: p}
}

// byAddress says what becomes of v where &v is: what gets it can free v, or change it. A function
// of C does so if its name says that.
func (u *Unit) byAddress(e ast.Node, roles ArgumentRole) Use {
	for {
		call, ok := u.Parent(e).(*ast.CallExpr)
		if !ok {
			return Use{Role: Keeps, Node: e}
		}
		if u.IsConversion(call) {
			e = call
			continue
		}
		if name := u.C(call.Fun); name != "" {
			switch {
			case !u.Releases(name):
				return Use{Role: Looks, Node: e}
			case u.Ends:
				return Use{Role: Frees, Node: e}
			}
			return Use{Role: Keeps, Node: e}
		}
		use, _ := u.argument(call, e, false, roles)
		if use.Node == nil {
			use = Use{Role: Keeps, Node: e}
		}
		return use
	}
}

// address returns the expression &e, or &e.f and so on, which points into what e is a part of.
func (u *Unit) address(e ast.Node) ast.Node {
	for {
		switch p := u.Parent(e).(type) {
		case *ast.SelectorExpr, *ast.ParenExpr, *ast.IndexExpr:
			e = p
		case *ast.UnaryExpr:
			if p.Op == token.AND {
				return p
			}
			return nil
		default:
			return nil
		}
	}
}

// written reports whether e is assigned to.
func (u *Unit) written(e ast.Expr) bool {
	s, ok := u.Parent(e).(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, lhs := range s.Lhs {
		if lhs == e {
			return true
		}
	}
	return false
}

// deeper reports whether what is tracked is within e, and not e itself: e is a struct, an array
// or a slice of Go.
func (u *Unit) deeper(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok && isArrayOfC(star.X) {
		return true
	}
	t := u.Info.Types[e].Type
	if t == nil {
		return false
	}
	switch t.Underlying().(type) {
	case *types.Struct, *types.Array, *types.Slice, *types.Map:
		return true
	}
	return false
}

// isArrayOfC reports whether an expression is (*[N]T)(p), whose type is not known where T is a type of C.
func isArrayOfC(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	star, ok := ast.Unparen(call.Fun).(*ast.StarExpr)
	if !ok {
		return false
	}
	_, ok = star.X.(*ast.ArrayType)
	return ok
}

// assigned says what becomes of the value of a carrier that is assigned to lhs.
func (u *Unit) assigned(n ast.Node, lhs ast.Expr, at carrier) Use {
	lhs = ast.Unparen(lhs)
	if id, ok := lhs.(*ast.Ident); ok {
		if id.Name == "_" {
			return Use{Role: Looks, Node: n}
		}
		obj := u.Info.ObjectOf(id)
		switch {
		case u.Local(obj):
			return Use{Role: Names, Node: n, Var: obj, Inner: at.inner, In: at.in}
		case u.IsResult(obj):
			return Use{Role: Leaves, Node: n, Inner: at.inner, Index: -1}
		}
		return Use{Role: Keeps, Node: n}
	}
	// A field or an element: of what?
	var field *types.Var
	c, in := "", ""
	if sel, ok := lhs.(*ast.SelectorExpr); ok {
		in = sel.Sel.Name
		if _, ok := sel.X.(*ast.SelectorExpr); ok {
			in = "" // deeper
		}
		if field, _ = u.Info.Uses[sel.Sel].(*types.Var); field == nil {
			c = sel.Sel.Name
		}
	}
	for e := lhs; ; {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			if field == nil && c == "" {
				field, _ = u.Info.Uses[x.Sel].(*types.Var)
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.Ident:
			if obj := u.Info.ObjectOf(x); u.Local(obj) {
				return Use{Role: Stores, Node: n, Var: obj, Inner: true, In: in, Field: field, C: c}
			} else if obj != nil && obj.Parent() == u.Types.Scope() {
				return Use{Role: Keeps, Node: n} // there is one, until the program ends
			}
			return Use{Role: Keeps, Node: n, Field: field, C: c}
		default:
			if call, ok := x.(*ast.CallExpr); ok && (u.IsConversion(call) || u.Unsafe(call)) {
				e = call.Args[0]
				continue
			}
			return Use{Role: Keeps, Node: n, Field: field, C: c}
		}
	}
}

// literalField returns the field of the struct of this package that an element of a literal
// gives a value, or nil.
func (u *Unit) literalField(lit *ast.CompositeLit, elem ast.Expr) *types.Var {
	t := u.Info.Types[lit].Type
	if t == nil {
		return nil
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for i, e := range lit.Elts {
		if e != elem {
			continue
		}
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			v, _ := u.ObjectOf(kv.Key).(*types.Var)
			return v
		}
		if i < st.NumFields() {
			return st.Field(i)
		}
	}
	return nil
}
