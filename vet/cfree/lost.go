package cfree

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/register"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// freedFields finds the fields whose memory, or with elements the memory of whose elements, some function of the package frees.
func (c *checker) freedFields() {
	c.freed, c.handed = map[types.Object][]*uses.Unit{}, map[types.Object]bool{}
	for _, u := range c.units {
		for n := range ast.Preorder(u.Body) {
			if call, ok := n.(*ast.CallExpr); ok {
				c.given = c.given || c.deletesGiven(call)
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			v, _ := c.pkg.Info.Uses[sel.Sel].(*types.Var)
			if v == nil || !v.IsField() || v.Pkg() != c.pkg.Types {
				continue
			}
			use := u.Follow(sel, c.holds(sel), c.calls)
			var fate uses.Fate
			if use.Role == uses.Names || use.Role == uses.Stores {
				fate = u.FateIn(use.Var, use.Inner, use.In, c.calls)
			}
			if use.Role == uses.Frees || fate.Has(uses.Frees) {
				c.freed[v] = append(c.freed[v], u)
			}
			c.handed[v] = c.handed[v] || use.Role == uses.Keeps || use.Role == uses.Leaves || fate.Has(uses.Keeps, uses.Leaves)
		}
	}
}

// checkFields reports a method that frees fields of its receiver but for one, which gets memory of the same kind, and which nothing frees.
func (c *checker) checkFields() {
	for _, name := range c.pkg.Types.Scope().Names() {
		st, ok := c.pkg.Types.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		var closes *uses.Unit
		for v := range st.Fields() {
			for _, u := range c.freed[v] {
				if u.Obj != nil && closes == nil && u.Obj.Signature().Recv() != nil && source.TypeName(u.Obj.Signature().Recv().Type()) == c.pkg.Types.Scope().Lookup(name) {
					closes = u
				}
			}
		}
		for v := range st.Fields() {
			calls := c.gets[v]
			if closes == nil || len(calls) == 0 || len(c.freed[v]) > 0 || c.handed[v] || v.Exported() {
				continue
			}
			for _, call := range calls {
				if by := c.pkg.C(call.Fun); c.pkg.Allocates(by) || c.rule(call, 0) != nil && !strings.Contains(by, "malloc") { // av_malloc makes what others take
					c.reportAt(closes.Node.(*ast.FuncDecl).Name, "never", fmt.Sprintf("%s frees other fields of %s, and nothing frees the field %s, which gets the result of C.%s in line %d",
						closes.Obj.Name(), name, v.Name(), by, c.Fset.Position(call.Pos()).Line), nil)
					break
				}
			}
		}
	}
}

// withEnds calls f while all functions of C free whose names say that they release. A call in Go may have another role then.
func (c *checker) withEnds(f func()) {
	params := c.params
	set := func(ends bool) {
		for _, u := range c.units {
			u.Ends = ends
		}
	}
	c.params = map[param]uses.Role{}
	set(true)
	f()
	set(false)
	c.params = params
}

// isCalled reports whether the package calls a function by its name.
func (c *checker) isCalled(f *types.Func) bool {
	return slices.ContainsFunc(c.named[f], func(e ast.Expr) bool {
		call, ok := c.pkg.Parent(e).(*ast.CallExpr)
		return ok && call.Fun == e
	})
}

func (c *checker) isMap(e ast.Expr) bool {
	t := c.pkg.Info.TypeOf(e)
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// checkFinalizers reports methods that release what the finalizer or the cleanup of their receiver releases as well: they do nothing
// else, such as to set a field to nil or to stop the cleanup.
func (c *checker) checkFinalizers() {
	calls := register.Calls(c.pkg)
	for i, call := range calls {
		c.checkObjectOf(call, calls)
		t := source.TypeName(c.pkg.Info.TypeOf(call.Ptr))
		if t == nil {
			continue
		}
		if !slices.ContainsFunc(calls[:i], func(other register.Call) bool { return source.TypeName(c.pkg.Info.TypeOf(other.Ptr)) == t }) {
			c.checkChildren(t)
		}
		if v := c.pkg.Named(call.Ptr); call.OfCopy() && (call.Unit.Local(v) || call.Unit.IsResult(v)) {
			analyzer.Report(c.Pass, call.Call, "early", "the object is %s, which is collected when the function has returned a copy of it: return a pointer", c.pkg.Named(call.Ptr).Name())
			continue
		}
		byFinalizer := ""
		if f := c.pkg.Func(call.Func); f != nil && c.byFunc[f] != nil {
			byFinalizer, _ = c.once(c.byFunc[f])
		} else if lit := c.pkg.Literal(call.Func); lit != nil {
			for _, u := range c.units {
				if u.Node == lit {
					byFinalizer, _ = c.once(u)
				}
			}
		} else {
			byFinalizer = c.pkg.C(call.Func)
		}
		if byFinalizer == "" || counts.MatchString(byFinalizer) {
			continue
		}
		for f, u := range c.byFunc {
			if recv := f.Signature().Recv(); recv == nil || source.TypeName(recv.Type()) != t || !f.Exported() && !c.isCalled(f) {
				continue
			}
			if name, field := c.once(u); name == byFinalizer && field {
				what := "finalizer"
				if call.Arg != nil {
					what = "cleanup"
				}
				c.Report(analysis.Diagnostic{
					Pos: u.Node.Pos(), End: u.Body.Pos(), Category: "twice",
					Message: fmt.Sprintf("%s calls C.%s, and so does the %s later: neither the field is cleared nor the %s", f.Name(), name, what, what),
				})
			}
		}
	}
}

// checkObjectOf reports a SetFinalizer that panics: for an object that has a finalizer, for a part of an object but its first field, and
// for memory of C.
func (c *checker) checkObjectOf(call register.Call, calls []register.Call) {
	if call.Name != "SetFinalizer" {
		return
	}
	v := c.pkg.ObjectOf(call.Ptr)
	if addr, ok := ast.Unparen(call.Ptr).(*ast.UnaryExpr); ok {
		part := false
		switch x := ast.Unparen(addr.X).(type) {
		case *ast.SelectorExpr:
			s := c.pkg.Info.Selections[x]
			part = s != nil && len(s.Index()) == 1 && s.Index()[0] > 0
		case *ast.IndexExpr:
			value := c.pkg.Info.Types[x.Index].Value
			part = value != nil && value.String() != "0" && !c.isMap(x.X)
		}
		if part {
			analyzer.Report(c.Pass, call.Call, "wrong", "%s is a part of another object: SetFinalizer ends the program", types.ExprString(addr.X))
		}
	} else if list := c.pkg.Values(v); len(list) == 1 && call.Unit.Local(v) {
		by, name := c.pkg.Result(list[0])
		if name != "" {
			analyzer.Report(c.Pass, call.Call, "wrong", "%s is memory of C: SetFinalizer ends the program", v.Name())
		}
		for _, other := range calls {
			if by != nil && other.Unit.Obj != nil && other.Unit.Obj == c.pkg.Callee(by) && other.Name == call.Name && other.Returned() {
				analyzer.Report(c.Pass, call.Call, "twice", "%s has a finalizer already, of %s: SetFinalizer ends the program", v.Name(), other.Unit.Obj.Name())
			}
		}
	}
}

// checkChildren reports structs with what C has made of the object of a type with a finalizer, which may run first: nothing in them keeps
// the object.
func (c *checker) checkChildren(t *types.TypeName) {
	parent, ok := t.Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	for kid, birth := range c.childOf {
		if !slices.Contains(slices.Collect(parent.Fields()), birth.parent) {
			continue
		}
		for _, name := range c.pkg.Types.Scope().Names() {
			st, ok := c.pkg.Types.Scope().Lookup(name).Type().Underlying().(*types.Struct)
			if ok && st != parent && slices.Contains(slices.Collect(st.Fields()), kid) && !slices.ContainsFunc(slices.Collect(st.Fields()), refers) {
				analyzer.Report(c.Pass, birth.call, "early", "%s does not keep the %s, whose finalizer may free what this is made of: give it a field for that", name, t.Name())
			}
		}
	}
}

// refers reports whether a field may have a reference to an object of Go. Types of C are invalid.
func refers(v *types.Var) bool {
	t := v.Type().Underlying()
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem().Underlying()
	}
	_, basic := t.(*types.Basic)
	name := source.TypeName(v.Type())
	return !basic && !(name != nil && name.Pkg() != nil && name.Pkg().Path() == "sync")
}
