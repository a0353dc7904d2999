// Package cleanupcycle defines an Analyzer that finds finalizers, cleanups and release functions
// that never run.
//
// # Analyzer cleanupcycle
//
// cleanupcycle: report finalizers, cleanups and releases that never run
//
// The collector calls a finalizer or a cleanup when its object is unreachable. A function, or an
// argument, that refers to the object keeps it reachable for ever:
//
//	runtime.AddCleanup(image, func(p unsafe.Pointer) {
//		log.Print(image.name) // refers to image
//		C.free(p)
//	}, image.p)
//
// The analyzer reports
//
//   - cycle: a function literal, a method value or an argument that refers to the object. The
//     runtime panics for some of them, and says nothing for the rest.
//   - release: an own.Options.Release, or another function or the State of Options, that refers to a
//     variable with an owner which is not that of Options.Parent. If the owner is of that pool, the
//     pool never releases it.
//   - lock: Use, TryUse, Close, CloseWait, Drain or Reserve, or a function of the package
//     that calls one of them, with a lock held that Options.Release of the pool takes. Release waits
//     for the lock for ever then; in Use and TryUse only if the owner is closed meanwhile. The remedy
//     is to take the lock within the function for Use. In a pool with a Thread or a Queue, Use,
//     TryUse and Close only queue the release. Pools in structs of other packages are not known.
//   - nil: AddCleanup with nil as an argument whose type is an interface, which panics
//     (golang/go#81517).
//   - tiny: an object of less than 16 bytes without pointers. It shares its memory with others, so
//     the function may run late or never.
package cleanupcycle

import (
	_ "embed"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/register"
	"github.com/cheapgo/cheap/vet/internal/source"
)

//go:embed cleanupcycle.go
var doc string

// Analyzer reports finalizers, cleanups and release functions that never run.
var Analyzer = analyzer.New("cleanupcycle", doc, run)

type checker struct {
	*analysis.Pass
	pkg    *source.Package
	owners map[*types.Var]bool // fields of the package that are owners, also of a type of C
}

func run(pass *analysis.Pass, pkg *source.Package) {
	c := &checker{pass, pkg, map[*types.Var]bool{}}
	for _, call := range register.Calls(c.pkg) {
		c.cycle(call)
		c.tiny(call)
		if call.Arg != nil {
			c.nilArgument(call)
		}
	}
	c.options()
}

func (c *checker) report(n ast.Node, kind, format string, args ...any) {
	analyzer.Report(c.Pass, n, kind, format, args...)
}

// cycle reports a function or an argument that refers to the object.
func (c *checker) cycle(call register.Call) {
	v := c.variable(call.Ptr)
	if v == nil {
		return
	}
	what := "finalizer"
	if call.Arg != nil {
		what = "cleanup"
	}
	if lit := c.pkg.Literal(call.Func); lit != nil {
		if id := c.mentions(lit.Body, v); id != nil {
			c.report(id, "cycle", "the %s of %s refers to %s, which is reachable for ever: the %s never runs", what, types.ExprString(call.Ptr), v.Name(), what)
			return
		}
	}
	if sel, ok := ast.Unparen(call.Func).(*ast.SelectorExpr); ok {
		if s := c.pkg.Info.Selections[sel]; s != nil && s.Kind() == types.MethodVal && c.variable(sel.X) == v && c.pointer(sel.X, v) {
			c.report(sel, "cycle", "the method value %s refers to %s, which is reachable for ever: the %s never runs", types.ExprString(sel), v.Name(), what)
			return
		}
	}
	if call.Arg != nil && c.refers(call.Arg, v) {
		c.report(call.Arg, "cycle", "the argument of the cleanup refers to %s, which is reachable for ever: the cleanup never runs", v.Name())
	}
}

// pointer reports whether a method value of e has a pointer to the variable's object: e is the
// variable, or a part of its object by address.
func (c *checker) pointer(e ast.Expr, v *types.Var) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && c.pkg.Info.ObjectOf(id) == v
}

// variable returns the local variable at the beginning of an expression, x of x or of x.f.g, or nil.
func (c *checker) variable(e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, _ := c.pkg.Info.ObjectOf(x).(*types.Var)
			if v == nil || v.Parent() == c.pkg.Types.Scope() {
				return nil
			}
			return v
		case *ast.SelectorExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func (c *checker) mentions(n ast.Node, v *types.Var) *ast.Ident {
	var found *ast.Ident
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && c.pkg.Info.Uses[id] == v && found == nil {
			found = id
		}
		return true
	})
	return found
}

// refers reports whether the value of an argument has a pointer to the object of v: v itself, an
// address in it, or a literal with one of them.
func (c *checker) refers(e ast.Expr, v *types.Var) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		_, pointer := v.Type().Underlying().(*types.Pointer)
		if list := c.pkg.Values(c.pkg.Info.Uses[e]); c.pkg.Info.Uses[e] != v && len(list) == 1 {
			return composite(list[0]) && c.refers(list[0], v) // another variable with a literal that refers to it
		}
		return pointer && c.pkg.Info.Uses[e] == v
	case *ast.UnaryExpr:
		if lit, ok := ast.Unparen(e.X).(*ast.CompositeLit); ok {
			return c.refers(lit, v)
		}
		sel, ok := ast.Unparen(e.X).(*ast.SelectorExpr)
		return ok && c.variable(sel) == v && c.pointer(sel.X, v)
	case *ast.CompositeLit:
		for _, elem := range e.Elts {
			if kv, ok := elem.(*ast.KeyValueExpr); ok {
				elem = kv.Value
			}
			if c.refers(elem, v) {
				return true
			}
		}
	case *ast.CallExpr:
		return c.pkg.IsConversion(e) && !isNumber(c.pkg.Info.TypeOf(e.Fun)) && c.refers(e.Args[0], v)
	case *ast.SelectorExpr:
		s := c.pkg.Info.Selections[e]
		return s != nil && s.Kind() == types.MethodVal && c.refers(e.X, v)
	}
	return false
}

// composite reports whether an expression is a literal of a struct and the like, or its address.
func composite(e ast.Expr) bool {
	if addr, ok := ast.Unparen(e).(*ast.UnaryExpr); ok {
		e = addr.X
	}
	_, ok := ast.Unparen(e).(*ast.CompositeLit)
	return ok
}

// isNumber reports whether t is uintptr, which the collector does not follow.
func isNumber(t types.Type) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

// nilArgument reports nil as an argument whose type is an interface.
func (c *checker) nilArgument(call register.Call) {
	if id, ok := ast.Unparen(call.Arg).(*ast.Ident); !ok || id.Name != "nil" {
		return
	}
	sig, ok := c.pkg.Info.TypeOf(call.Func).(*types.Signature)
	if ok && sig.Params().Len() == 1 && types.IsInterface(sig.Params().At(0).Type()) {
		c.report(call.Arg, "nil", "AddCleanup panics for a nil argument whose type is an interface (golang/go#81517): pass a value of another type")
	}
}

// tiny reports objects that share their memory with others.
func (c *checker) tiny(call register.Call) {
	t := c.pkg.Info.TypeOf(call.Ptr)
	if t == nil || !c.alone(call) {
		return
	}
	ptr, ok := t.Underlying().(*types.Pointer)
	if !ok || !plain(ptr.Elem(), 0) {
		return
	}
	if size := c.TypesSizes.Sizeof(ptr.Elem()); size > 0 && size < 16 {
		c.report(call.Ptr, "tiny", "%s has %d bytes and no pointer, so it shares its memory with other objects: the function may run late or never", types.TypeString(ptr.Elem(), types.RelativeTo(c.pkg.Types)), size)
	}
}

// alone reports whether the object is seen to be allocated as what it is, and is not a part of a
// larger one.
func (c *checker) alone(call register.Call) bool {
	allocates := func(e ast.Expr) bool {
		switch e := ast.Unparen(e).(type) {
		case *ast.CallExpr:
			id, ok := e.Fun.(*ast.Ident)
			return ok && id.Name == "new"
		case *ast.UnaryExpr:
			_, ok := ast.Unparen(e.X).(*ast.CompositeLit)
			return ok
		}
		return false
	}
	if allocates(call.Ptr) {
		return true
	}
	v := c.pkg.ObjectOf(call.Ptr)
	found := false
	call.Unit.Own(func(n ast.Node) {
		if s, ok := n.(*ast.AssignStmt); ok && v != nil && len(s.Lhs) == len(s.Rhs) {
			for i, lhs := range s.Lhs {
				found = found || c.pkg.ObjectOf(lhs) == v && allocates(s.Rhs[i])
			}
		}
	})
	return found
}

// plain reports whether values of a type have no pointers. It is not known of types of C and of
// type parameters.
func plain(t types.Type, depth int) bool {
	if depth > 10 {
		return false
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return false
	}
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Info()&(types.IsNumeric|types.IsBoolean) != 0
	case *types.Array:
		return plain(t.Elem(), depth+1)
	case *types.Struct:
		for f := range t.Fields() {
			if !plain(f.Type(), depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// options reports functions in own.Options that refer to variables with owners, and locks that are
// held around them.
func (c *checker) options() {
	if !analyzer.Imports(c.pkg.Types, analyzer.Own) {
		return
	}
	for id, obj := range c.pkg.Info.Defs {
		v, _ := obj.(*types.Var)
		if field, ok := c.pkg.Parent(id).(*ast.Field); ok && v != nil && v.IsField() && isOwner[analyzer.OwnType(c.pkg, field.Type)] {
			c.owners[v] = true
		}
	}
	var all []*ast.CompositeLit
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isOwn(c.pkg.Info.TypeOf(lit), "Options") {
				return true
			}
			all = append(all, lit)
			var parent *types.Var
			for _, elem := range lit.Elts {
				if kv, ok := elem.(*ast.KeyValueExpr); ok && types.ExprString(kv.Key) == "Parent" {
					if call, ok := ast.Unparen(kv.Value).(*ast.CallExpr); ok {
						parent = c.variable(call.Fun)
					}
				}
			}
			for _, elem := range lit.Elts {
				kv, ok := elem.(*ast.KeyValueExpr)
				if !ok || types.ExprString(kv.Key) == "Parent" {
					continue
				}
				if at, v := c.owner(kv.Value); v != nil && v != parent {
					c.report(at, "release", "Options.%s refers to %s, which has an owner: if that is of this pool, it is never released", types.ExprString(kv.Key), v.Name())
				}
			}
			return true
		})
	}
	c.held(all)
}

// owner returns a local variable with an owner that the value of an expression refers to, and where
// it does.
func (c *checker) owner(e ast.Expr) (at *ast.Ident, owner *types.Var) {
	lit, in := c.pkg.Literal(e), ast.Node(e)
	if lit != nil {
		in = lit
	}
	ast.Inspect(in, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || owner != nil {
			return owner == nil
		}
		v, _ := c.pkg.Info.Uses[id].(*types.Var)
		if v == nil || v.IsField() || in.Pos() <= v.Pos() && v.Pos() < in.End() || v.Parent() == c.pkg.Types.Scope() || !c.hasOwner(v.Type(), 0) {
			return true
		}
		if lit != nil || c.refers(e, v) {
			at, owner = id, v
		}
		return true
	})
	return at, owner
}

// hasOwner reports whether a value of a type has an owner of package own in it, or points to one
// that has.
func (c *checker) hasOwner(t types.Type, depth int) bool {
	if n := source.TypeName(t); n != nil && analyzer.Declares(analyzer.Own, n) {
		return isOwner[n.Name()]
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 3 {
		return false
	}
	for f := range st.Fields() {
		if c.owners[f] || c.hasOwner(f.Type(), depth+1) {
			return true
		}
	}
	return false
}

var isOwner = map[string]bool{"Owner": true, "Handle": true, "Number": true, "Mem": true, "Bytes": true, "Group": true}

// isOwn reports whether t is the type of that name of package own, or a pointer to it.
func isOwn(t types.Type, name string) bool {
	n := source.TypeName(t)
	return n != nil && n.Name() == name && analyzer.Declares(analyzer.Own, n)
}
