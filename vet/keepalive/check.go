package keepalive

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// A finding is a call of C during which an owner may be collected.
type finding struct {
	unit *uses.Unit
	call *ast.CallExpr
	name string // of the function of C
	owned
	kind string // of the variable
}

// castName matches the names of functions of C that convert a pointer.
var castName = regexp.MustCompile(`^to[A-Z]`)

// check looks at the calls of C in a unit.
func (c *checker) check(u *uses.Unit) {
	if d, ok := u.Node.(*ast.FuncDecl); ok && kept(d) {
		return
	}
	if c.finalLits[u.Node] {
		return // the object was unreachable already
	}
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		name := c.pkg.C(call.Fun)
		if name == "" || c.pkg.IsConversion(call) || name == "free" {
			return
		}
		if _, ok := u.Parent(call).(*ast.DeferStmt); ok {
			return
		}
		if c.finals[u.Obj] && (c.pkg.Releases(name) || !u.Obj.Exported() && len(c.callers[u.Obj]) == 0) {
			return // the finalizer itself
		}
		if castName.MatchString(name) && len(call.Args) == 1 {
			return // it does not look at what the pointer points to
		}
		seen := map[*types.Var]bool{}
		for _, arg := range call.Args {
			if v := c.hidden(arg); v != nil && !seen[v] {
				seen[v] = true
				if c.dies(u, v, call) != "" {
					c.findings = append(c.findings, finding{u, call, name, owned{v, nil}, "number"})
				}
				continue
			}
			o := c.ownerOf(u, arg, false)
			if o == nil || seen[o.root] {
				continue
			}
			seen[o.root] = true
			if c.cleared(u, arg, o, call) {
				continue
			}
			if kind := c.dies(u, o.root, call); kind != "" {
				c.findings = append(c.findings, finding{u, call, name, *o, kind})
			}
		}
	})
}

// cleared reports whether an argument of a call was read from a field that is nil on each way to the
// call, so that the finalizer of the owner has nothing to free. A cleanup has a copy of the pointer.
func (c *checker) cleared(u *uses.Unit, arg ast.Expr, o *owned, call *ast.CallExpr) bool {
	name := source.TypeName(o.root.Type())
	if name == nil || !c.owners[name] || c.cleanups[name] {
		return false
	}
	v := c.pkg.Variable(arg)
	if v == nil || !u.Local(v) || len(c.pkg.Given(v)) != 1 {
		return false
	}
	given := c.pkg.Given(v)[0].Pos()
	var nils []ast.Node
	u.Own(func(n ast.Node) {
		s, ok := n.(*ast.AssignStmt)
		if !ok || len(s.Lhs) != len(s.Rhs) || s.Pos() < given {
			return
		}
		for i, lhs := range s.Lhs {
			sel, ok := ast.Unparen(lhs).(*ast.SelectorExpr)
			if !ok || types.ExprString(s.Rhs[i]) != "nil" || c.pkg.Info.Uses[sel.Sel] != o.from {
				continue
			}
			if root, _ := c.root(sel.X); root == o.root {
				nils = append(nils, s)
			}
		}
	})
	return len(nils) > 0 && u.Always(nils, call)
}

// dies reports whether nothing uses a variable behind a call, as the kind of the variable, or the
// empty string.
func (c *checker) dies(u *uses.Unit, v *types.Var, call *ast.CallExpr) string {
	if c.immortal[source.TypeName(v.Type())] || c.isOfOuter(call, v) || c.isBefore(u, v, call) {
		return ""
	}
	kind, index := "local", slices.Index(u.Params(), v)
	if d, ok := u.Node.(*ast.FuncDecl); ok && index >= 0 {
		kind = "parameter"
		if d.Recv != nil && index == 0 {
			kind = "receiver"
		}
	} else if !u.Local(v) && index < 0 {
		if !c.diesAround(u, v, call, nil) {
			return ""
		}
		return "captured"
	}
	if _, copied := v.Type().Underlying().(*types.Struct); copied && kind == "local" {
		return "" // the owner is another one
	}
	if c.usedAfter(u, v, call, nil) || c.stored(u, v) || c.handedOn(call, v) {
		return ""
	}
	if index >= 0 && c.callersKeep(u, index, 0) {
		return ""
	}
	for _, e := range c.pkg.Given(v) { // NewNode(raw, false) may have been told to own nothing
		if made, ok := ast.Unparen(e).(*ast.CallExpr); ok && slices.ContainsFunc(made.Args, func(e ast.Expr) bool { return types.ExprString(e) == "false" }) {
			return ""
		}
	}
	return kind
}

// usedAfter reports whether a variable is used behind a call, by what is deferred, or by a literal
// other than except.
func (c *checker) usedAfter(u *uses.Unit, v *types.Var, call ast.Node, except *ast.FuncLit) bool {
	captured := false
	ast.Inspect(u.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			if n.Pos() < call.Pos() && c.deferHas(u, n.Call, v) {
				captured = true
			}
		case *ast.FuncLit:
			if n != except && u.Mentions(n, v) {
				captured = true
			}
			return false
		}
		return true
	})
	return captured || u.UsedAfter(call, v)
}

// deferHas reports whether a call that is deferred has a variable, or points into what it points to. The receiver and the arguments are
// computed when the defer statement runs: defer x.f.Unlock() has f, and not x, if f is a pointer.
func (c *checker) deferHas(u *uses.Unit, call *ast.CallExpr, v *types.Var) bool {
	isPointer := func(e ast.Expr) bool {
		t := c.pkg.Info.TypeOf(e)
		if t == nil {
			return false
		}
		_, ok := t.Underlying().(*types.Pointer)
		return ok
	}
	var has, hasAddress func(e ast.Expr) bool
	has = func(e ast.Expr) bool {
		switch e := ast.Unparen(e).(type) {
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
			return false // a copy of what is there
		case *ast.UnaryExpr:
			if e.Op == token.AND {
				return hasAddress(e.X)
			}
		}
		return u.Mentions(e, v)
	}
	hasAddress = func(e ast.Expr) bool {
		switch e := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			if isPointer(e.X) {
				return has(e.X)
			}
			return hasAddress(e.X)
		}
		return u.Mentions(e, v)
	}
	if !c.owner(v.Type()) {
		return u.Mentions(call, v) // the owner is a part of it
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && u.Mentions(sel, v) {
		f := c.pkg.Callee(call)
		switch {
		case f == nil, strings.HasSuffix(f.Name(), "Unlock") && c.locks[source.TypeName(v.Type())]:
			return true
		case isPointer(sel.X) || !isPointerTo(f):
			if has(sel.X) {
				return true
			}
		case hasAddress(sel.X):
			return true
		}
	} else if u.Mentions(call.Fun, v) {
		return true
	}
	return slices.ContainsFunc(call.Args, has)
}

// isPointerTo reports whether a method gets a pointer as its receiver.
func isPointerTo(f *types.Func) bool {
	_, ok := f.Signature().Recv().Type().Underlying().(*types.Pointer)
	return ok
}

// stored reports whether a variable is put somewhere, or cleared of its finalizer, or comes from a
// list that has it as well.
func (c *checker) stored(u *uses.Unit, v *types.Var) bool {
	found := false
	ast.Inspect(u.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || c.pkg.Info.ObjectOf(id) != v || found {
			return !found
		}
		switch p := u.Parent(id).(type) {
		case *ast.CompositeLit, *ast.KeyValueExpr, *ast.SendStmt:
			found = true
		case *ast.AssignStmt:
			found = slices.Contains(p.Rhs, ast.Expr(id))
		case *ast.RangeStmt:
			found = p.Value == id || p.Key == id
		case *ast.CallExpr:
			switch fun := ast.Unparen(p.Fun).(type) {
			case *ast.Ident:
				found = fun.Name == "append"
			case *ast.SelectorExpr:
				if f, _ := c.pkg.Info.Uses[fun.Sel].(*types.Func); f != nil && f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
					found = slices.Contains(p.Args, ast.Expr(id)) // it may store it
					break
				}
				found = fun.Sel.Name == "SetFinalizer" && len(p.Args) == 2 && types.ExprString(p.Args[1]) == "nil"
			}
		}
		return true
	})
	return found
}

// handedOn reports whether an argument of a call of C is a call in Go that has the variable as an
// argument, and may have stored it.
func (c *checker) handedOn(call *ast.CallExpr, v *types.Var) bool {
	found := false
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			inner, ok := n.(*ast.CallExpr)
			if !ok || c.pkg.Callee(inner) == nil {
				return true
			}
			for _, a := range inner.Args {
				found = found || c.pkg.ObjectOf(a) == v
			}
			return true
		})
	}
	return found
}

// isBefore reports whether a call is on the way to where the unit gives the variable its finalizer, or beside that.
func (c *checker) isBefore(u *uses.Unit, v *types.Var, call *ast.CallExpr) bool {
	registered := false
	for _, r := range c.registers {
		if r.Unit.Node == u.Node && c.pkg.ObjectOf(r.Ptr) == v {
			if u.Leads(r.Call, nil, call) || len(c.pkg.Given(v)) > 1 {
				return false
			}
			registered = true
		}
	}
	return registered
}

// isOfOuter reports whether a call around one has a variable as its receiver or an argument, and so keeps it alive.
func (c *checker) isOfOuter(call *ast.CallExpr, v *types.Var) bool {
	for n := c.pkg.Parent(call); ; n = c.pkg.Parent(n) {
		switch outer := n.(type) {
		case *ast.CallExpr:
			sel, _ := ast.Unparen(outer.Fun).(*ast.SelectorExpr)
			f := c.pkg.Callee(outer)
			for i, arg := range outer.Args {
				if c.pkg.ObjectOf(arg) == v && c.usesParam(f, i, false) {
					return true
				}
			}
			if sel != nil && c.pkg.ObjectOf(sel.X) == v && f != nil && c.usesParam(f, 0, true) {
				return true
			}
		case ast.Expr:
		default:
			return false
		}
	}
}

// usesParam reports whether a function uses a parameter, or its receiver: otherwise the compiler may drop it. Of other packages that is not
// known, and they do.
func (c *checker) usesParam(f *types.Func, i int, receiver bool) bool {
	for _, u := range c.units {
		if u.Obj == nil || u.Obj != f {
			continue
		}
		params := u.Params()
		if f.Signature().Recv() != nil && !receiver {
			i++
		}
		return i < len(params) && params[i] != nil && len(u.Idents(params[i])) > 0
	}
	return f == nil || f.Pkg() != c.pkg.Types
}

// callersKeep reports whether all callers of an unexported function use an argument behind the
// call.
func (c *checker) callersKeep(u *uses.Unit, index, depth int) bool {
	if u.Obj == nil || depth > 4 || u.Obj.Exported() || c.values[u.Obj] || len(c.callers[u.Obj]) == 0 {
		return false
	}
	for _, s := range c.callers[u.Obj] {
		var arg ast.Expr
		i := index
		if u.Obj.Signature().Recv() != nil {
			if i--; i < 0 {
				if sel, ok := ast.Unparen(s.call.Fun).(*ast.SelectorExpr); ok {
					arg = sel.X
				}
			}
		}
		if i >= 0 && i < len(s.call.Args) {
			arg = s.call.Args[i]
		}
		if arg == nil || s.unit.Obj == u.Obj {
			return false
		}
		root, _ := c.root(arg)
		if root == nil {
			return false
		}
		if i := slices.Index(s.unit.Params(), root); i >= 0 && c.callersKeep(s.unit, i, depth+1) {
			continue
		}
		if !c.usedAfter(s.unit, root, s.call, nil) && !c.stored(s.unit, root) {
			return false
		}
	}
	return true
}

// report reports the findings, those with many calls as one.
func (c *checker) report() {
	slices.SortStableFunc(c.findings, func(a, b finding) int { return cmp.Compare(a.call.Pos(), b.call.Pos()) })
	by := map[types.Object][]finding{}
	for _, f := range c.findings {
		by[f.from] = append(by[f.from], f)
	}
	reported := map[types.Object]bool{}
	for _, f := range c.findings {
		if f.from == nil {
			c.Report(analysis.Diagnostic{
				Pos: f.call.Pos(), End: f.call.End(), Category: f.kind,
				Message:        fmt.Sprintf("%s may be collected while C.%s runs: C gets its address as a number, and nothing uses %s behind the call", f.root.Name(), f.name, f.root.Name()),
				SuggestedFixes: c.fix(f),
			})
			continue
		}
		all := by[f.from]
		if group > 0 && len(all) > int(group) {
			if !reported[f.from] {
				reported[f.from] = true
				c.reportGroup(all)
			}
			continue
		}
		c.Report(analysis.Diagnostic{
			Pos: f.call.Pos(), End: f.call.End(), Category: f.kind,
			Message:        fmt.Sprintf("%s may be collected while C.%s uses what it owns: nothing uses %s behind the call", f.root.Name(), f.name, f.root.Name()),
			SuggestedFixes: c.fix(f),
		})
	}
}

func (c *checker) reportGroup(all []finding) {
	first := all[0]
	d := analysis.Diagnostic{
		Pos: first.call.Pos(), End: first.call.End(), Category: "group",
		Message: fmt.Sprintf("in %d calls of C such as this one the owner of what %s returns may be collected meanwhile: nothing uses it behind the call", len(all), c.describe(first)),
	}
	if _, ok := first.from.(*types.Var); ok {
		d.Message = fmt.Sprintf("in %d calls of C such as this one the owner of %s may be collected meanwhile: nothing uses it behind the call", len(all), c.describe(first))
	}
	for _, f := range all[1:] {
		d.Related = append(d.Related, analysis.RelatedInformation{Pos: f.call.Pos(), End: f.call.End(), Message: f.root.Name() + " and C." + f.name})
	}
	c.Report(d)
}

func (c *checker) describe(f finding) string {
	name := f.from.Name()
	if fn, ok := f.from.(*types.Func); ok {
		return types.TypeString(fn.Signature().Recv().Type(), types.RelativeTo(c.pkg.Types)) + "." + name
	}
	return "the field " + name
}

// fix returns the fix that keeps an owner alive.
func (c *checker) fix(f finding) []analysis.SuggestedFix {
	file := c.pkg.FileOf(f.call.Pos())
	s := f.unit.Statement(f.call)
	if file == nil || s == nil || !f.unit.Imported(s, "runtime", "runtime") {
		return nil
	}
	if _, copied := f.root.Type().Underlying().(*types.Struct); copied {
		return nil // the caller has the owner
	}
	if comm, ok := f.unit.Parent(s).(*ast.CommClause); ok && comm.Comm == s {
		return nil
	}
	keep := "runtime.KeepAlive(" + f.root.Name() + ")"
	indent := analyzer.Indent(c.Pass, s)
	edit := analysis.TextEdit{Pos: s.End(), End: s.End(), NewText: []byte(indent + keep)}
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.DeclStmt:
	default:
		if f.unit.Loop(f.call) != nil || s.Pos() <= f.root.Pos() && f.root.Pos() < s.End() {
			return nil
		}
		edit = analysis.TextEdit{Pos: s.Pos(), End: s.Pos(), NewText: []byte("defer " + keep + indent)}
	}
	edits := []analysis.TextEdit{edit}
	if !source.Imports(file, "runtime") {
		edits = append(edits, analysis.TextEdit{Pos: file.Name.End(), End: file.Name.End(), NewText: []byte("\n\nimport \"runtime\"")})
	}
	return []analysis.SuggestedFix{{Message: "keep " + f.root.Name() + " alive until the call returns", TextEdits: edits}}
}
