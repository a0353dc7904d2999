package keepalive

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

var newName = regexp.MustCompile(`(?i)(new|create|copy|dup|clone|ref|alloc|open|make|parse|get)`)

// An owned is a pointer of C with its owner.
type owned struct {
	root *types.Var   // the variable that keeps the owner alive
	from types.Object // the field or the method that the pointer was got from
}

// ownerOf returns the owner of the value of an expression, or nil if it has none. An accessor may
// get the pointer of a receiver that has no finalizer itself, so with anyOwner all receivers count.
func (c *checker) ownerOf(u *uses.Unit, e ast.Expr, anyOwner bool) *owned {
	return c.ownerAt(u, e, anyOwner, 0)
}

func (c *checker) ownerAt(u *uses.Unit, e ast.Expr, anyOwner bool, depth int) *owned {
	if depth > 5 {
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return c.ownerOfField(e, anyOwner)
	case *ast.CallExpr:
		if arg := c.samePointer(e, anyOwner); arg != nil {
			return c.ownerAt(u, arg, anyOwner, depth+1)
		}
		return c.ownerOfResult(e, anyOwner)
	case *ast.Ident:
		v, ok := c.pkg.Info.ObjectOf(e).(*types.Var)
		if !ok || !u.Local(v) {
			return nil
		}
		for _, def := range c.pkg.Given(v) {
			if o := c.ownerAt(u, def, anyOwner, depth+1); o != nil {
				return o
			}
		}
	}
	return nil
}

// ownerOfField returns the owner of the pointer in a field, or nil.
func (c *checker) ownerOfField(e *ast.SelectorExpr, anyOwner bool) *owned {
	s := c.pkg.Info.Selections[e]
	if s == nil || s.Kind() != types.FieldVal {
		return nil
	}
	field := s.Obj().(*types.Var)
	if !c.pointerField(field) || c.spared[field] {
		return nil
	}
	root, owner := c.root(e.X)
	if root == nil || !(anyOwner || owner || c.onPath(s)) {
		return nil
	}
	return &owned{root, field}
}

// samePointer returns the argument of a call whose result points into the same object, or nil: of a
// conversion, and of some functions of C.
func (c *checker) samePointer(call *ast.CallExpr, anyOwner bool) ast.Expr {
	if c.pkg.IsConversion(call) {
		return call.Args[0]
	}
	name := c.pkg.C(call.Fun)
	if name == "" || len(call.Args) != 1 {
		return nil
	}
	// In an accessor, what C returns for a pointer is a part of the same object, unless the name says
	// that it is a new one.
	if castName.MatchString(name) || anyOwner && !newName.MatchString(name) {
		return call.Args[0]
	}
	return nil
}

// ownerOfResult returns the owner of the pointer that a method of Go returns, or nil.
func (c *checker) ownerOfResult(call *ast.CallExpr, anyOwner bool) *owned {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || c.pkg.C(call.Fun) != "" {
		return nil
	}
	if v := c.handle(sel); v != nil {
		if root, _ := c.root(sel.X); root != nil {
			return &owned{root, v}
		}
		return nil
	}
	f, _ := c.pkg.Info.Uses[sel.Sel].(*types.Func)
	if f == nil || !c.accessor(f.Origin()) {
		return nil
	}
	s := c.pkg.Info.Selections[sel]
	if s == nil {
		return nil
	}
	root, owner := c.root(sel.X)
	if root == nil || !(anyOwner || owner || c.onPath(s) || c.owner(f.Signature().Recv().Type()) || c.holds(s.Recv(), 0)) {
		return nil
	}
	return &owned{root, f.Origin()}
}

// handle returns the field f of x.f.Pointer or x.f.Value, if it is an owner of package
// own, or nil.
func (c *checker) handle(method *ast.SelectorExpr) *types.Var {
	switch method.Sel.Name {
	case "Pointer", "Value":
		if sel, ok := ast.Unparen(method.X).(*ast.SelectorExpr); ok {
			if v, _ := c.pkg.Info.Uses[sel.Sel].(*types.Var); c.handles[v] {
				return v
			}
		}
	}
	return nil
}

// pointerField reports whether a field may be a pointer of C.
func (c *checker) pointerField(field *types.Var) bool {
	if field.Pkg() == c.pkg.Types {
		return c.pointers[field]
	}
	return c.pkg.Points(field)
}

// root returns the local variable that an expression reads fields of, and whether one of the
// values on the way is an owner.
func (c *checker) root(e ast.Expr) (root *types.Var, owner bool) {
	for {
		e = ast.Unparen(e)
		owner = owner || c.owner(c.pkg.Info.TypeOf(e))
		switch x := e.(type) {
		case *ast.Ident:
			v, ok := c.pkg.Info.ObjectOf(x).(*types.Var)
			if !ok || v.Parent() == c.pkg.Types.Scope() || v.Pkg() != c.pkg.Types {
				return nil, false
			}
			return v, owner
		case *ast.SelectorExpr:
			s := c.pkg.Info.Selections[x]
			if s == nil || s.Kind() != types.FieldVal {
				return nil, false
			}
			owner = owner || c.onPath(s)
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.TypeAssertExpr:
			e = x.X
		default:
			return nil, false
		}
	}
}

// onPath reports whether the fields that a selection goes through, which may be embedded, have an
// owner.
func (c *checker) onPath(s *types.Selection) bool {
	t := s.Recv()
	for depth, i := range s.Index()[:len(s.Index())-1] {
		if c.owner(t) && (depth == 0 || !c.isPart(t)) {
			return true
		}
		if ptr, ok := t.Underlying().(*types.Pointer); ok {
			t = ptr.Elem()
		}
		st, ok := t.Underlying().(*types.Struct)
		if !ok || i >= st.NumFields() {
			return false
		}
		t = st.Field(i).Type()
	}
	return c.owner(t) && (len(s.Index()) == 1 || !c.isPart(t))
}

// isPart reports whether a field of the type is a struct that has no finalizer itself.
func (c *checker) isPart(t types.Type) bool {
	_, ptr := t.Underlying().(*types.Pointer)
	return !ptr && c.whole[source.TypeName(t)]
}

// holds reports whether a struct has an owner embedded.
func (c *checker) holds(t types.Type, depth int) bool {
	if c.owner(t) {
		return true
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 8 {
		return false
	}
	for f := range st.Fields() {
		if f.Embedded() && c.holds(f.Type(), depth+1) {
			return true
		}
	}
	return false
}

// hidden returns the variable of Go memory whose address an argument of C has as a number: the
// collector does not see it, and cgo does not either.
func (c *checker) hidden(e ast.Expr) *types.Var {
	asNumber := false
	if v := c.pkg.Variable(e); v != nil && types.Identical(v.Type(), types.Typ[types.Uintptr]) && len(c.pkg.Values(v)) == 1 {
		e = c.pkg.Values(v)[0] // a variable has the number
	}
	for {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok || !c.pkg.IsConversion(call) {
			break
		}
		if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && id.Name == "uintptr" {
			asNumber = true
		}
		e = call.Args[0]
	}
	addr, ok := ast.Unparen(e).(*ast.UnaryExpr)
	if !ok || !asNumber || addr.Op != token.AND {
		return nil
	}
	index, ok := ast.Unparen(addr.X).(*ast.IndexExpr)
	if !ok {
		return nil
	}
	v, _ := c.pkg.ObjectOf(index.X).(*types.Var)
	if v == nil {
		return nil
	}
	if _, ok := v.Type().Underlying().(*types.Slice); !ok || v.Parent() == c.pkg.Types.Scope() {
		return nil
	}
	return v
}
