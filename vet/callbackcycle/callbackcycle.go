package callbackcycle

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

//go:embed doc.go
var doc string

// Analyzer reports functions that C keeps, and that keep their object.
var Analyzer = analyzer.New("callbackcycle", doc, run, new(Keeps), new(Owns))

// Keeps marks functions that have C keep parameters, whose indexes it has.
type Keeps struct{ Params []int }

// AFact marks facts.
func (*Keeps) AFact() {}

func (k *Keeps) String() string { return fmt.Sprint("keeps ", k.Params) }

type checker struct {
	*analysis.Pass
	pkg    *source.Package
	owners owners
	keeps  map[*types.Func][]int
}

func run(pass *analysis.Pass, pkg *source.Package) {
	c := &checker{Pass: pass, pkg: pkg, keeps: map[*types.Func][]int{}}
	c.owners = findOwners(pass, pkg)
	units := uses.Units(pkg)
	for c.learn(units) { // functions that keep parameters through others
	}
	for f, params := range c.keeps {
		if obj := pkg.Object(f); obj != nil && f.Exported() {
			pass.ExportObjectFact(obj, &Keeps{params})
		}
	}
	for _, u := range units {
		c.look(u)
	}
	c.handles(units)
}

// A kept is an expression that C keeps from here on.
type kept struct {
	expr  ast.Expr
	call  *ast.CallExpr // if a function keeps the expression that is not known by name
	by    string
	state bool // of what call owns: it must not refer to the owner in any way
}

// kept returns what a node has C keep.
func (c *checker) kept(u *uses.Unit, n ast.Node) (list []kept) {
	switch n := n.(type) {
	case *ast.CallExpr:
		f := c.pkg.Callee(n)
		switch {
		case source.IsFunc(f, "runtime/cgo", "NewHandle") && len(n.Args) == 1:
			if !c.deletedHere(u, n) {
				list = append(list, kept{expr: n.Args[0], by: "a cgo.Handle"})
			}
		case source.IsFunc(f, "github.com/mattn/go-pointer", "Save") && len(n.Args) == 1:
			list = append(list, kept{expr: n.Args[0], by: "go-pointer"})
		case c.isStore(f, n):
			list = append(list, kept{expr: n.Args[len(n.Args)-1], by: "a map of the package"})
		case f != nil:
			for _, i := range c.keptParams(f) {
				if e := argument(n, i); e != nil {
					list = append(list, kept{expr: e, call: n, by: f.Name()})
				}
			}
		}
	case *ast.CompositeLit:
		call, ok := c.pkg.Parent(n).(*ast.CallExpr) // of OwnWith
		if name := source.TypeName(c.pkg.Info.TypeOf(n)); !ok || name == nil || name.Name() != "With" || !analyzer.Declares(analyzer.Own, name) {
			return nil
		}
		for _, elem := range n.Elts {
			if kv, ok := elem.(*ast.KeyValueExpr); ok && types.ExprString(kv.Key) == "State" {
				list = append(list, kept{expr: kv.Value, call: call, by: "own.With", state: true})
			}
		}
	case *ast.AssignStmt:
		if len(n.Lhs) != len(n.Rhs) {
			return nil
		}
		for i, lhs := range n.Lhs {
			switch lhs := ast.Unparen(lhs).(type) {
			case *ast.IndexExpr:
				if c.isGlobal(lhs.X) && (c.pkg.Cgo || c.isAddress(lhs.Index)) {
					list = append(list, kept{expr: n.Rhs[i], by: "a map of the package"})
				}
			case *ast.Ident, *ast.SelectorExpr:
				call, ok := ast.Unparen(n.Rhs[i]).(*ast.CallExpr)
				if ok && c.pkg.Cgo && c.isAppend(call) && c.isGlobal(lhs) {
					for _, e := range call.Args[1:] {
						list = append(list, kept{expr: e, by: "a slice of the package"})
					}
				}
			}
		}
	}
	return list
}

// isStore reports whether a call stores something in a sync.Map that is a package variable.
func (c *checker) isStore(f *types.Func, call *ast.CallExpr) bool {
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != "sync" || f.Signature().Recv() == nil || len(call.Args) != 2 || !c.pkg.Cgo && !c.isAddress(call.Args[0]) {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Store", "LoadOrStore", "Swap"}, f.Name()) && c.isGlobal(sel.X)
}

// isAddress reports whether the key of a map may be the address of an object of C.
func (c *checker) isAddress(e ast.Expr) bool {
	t := c.pkg.Info.TypeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && (b.Kind() == types.UnsafePointer || b.Kind() == types.Uintptr)
}

func (c *checker) isAppend(call *ast.CallExpr) bool {
	b, ok := c.pkg.ObjectOf(call.Fun).(*types.Builtin)
	return ok && b.Name() == "append" && len(call.Args) > 1
}

// isGlobal reports whether an expression is a package variable, or a field of one.
func (c *checker) isGlobal(e ast.Expr) bool {
	v := c.root(e)
	return v != nil && v.Parent() == c.pkg.Types.Scope()
}

// root returns the variable at the beginning of an expression, x of x, x.f.g, &x.f and *x.
func (c *checker) root(e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, _ := c.pkg.Info.ObjectOf(x).(*types.Var)
			return v
		case *ast.SelectorExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// deletedHere reports whether the function that makes a handle deletes it.
func (c *checker) deletedHere(u *uses.Unit, call *ast.CallExpr) bool {
	var h types.Object
	switch s := c.pkg.Parent(call).(type) {
	case *ast.AssignStmt:
		if len(s.Lhs) == 1 {
			h = c.pkg.ObjectOf(s.Lhs[0])
		}
	case *ast.ValueSpec:
		if len(s.Names) == 1 {
			h = c.pkg.ObjectOf(s.Names[0])
		}
	}
	found := false
	ast.Inspect(u.Body, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Delete" && h != nil && c.pkg.ObjectOf(sel.X) == h {
			found = true
		}
		return true
	})
	return found
}

// keptParams returns the parameters that a function keeps.
func (c *checker) keptParams(f *types.Func) []int {
	if f.Pkg() == c.pkg.Types {
		return c.keeps[f]
	}
	var fact Keeps
	if f.Pkg() != nil && c.ImportObjectFact(f, &fact) {
		return fact.Params
	}
	return nil
}

// argument returns the argument of a parameter, or nil.
func argument(call *ast.CallExpr, i int) ast.Expr {
	if i < len(call.Args) {
		return call.Args[i]
	}
	return nil
}

// learn finds parameters that functions keep. It reports whether it has found any.
func (c *checker) learn(units []*uses.Unit) (more bool) {
	for _, u := range units {
		if u.Obj == nil {
			continue
		}
		params := u.Obj.Signature().Params()
		ast.Inspect(u.Body, func(n ast.Node) bool {
			for _, k := range c.kept(u, n) {
				if recv := u.Obj.Signature().Recv(); k.state && (recv == nil || !c.isIn(k, recv)) {
					continue
				}
				for i := range params.Len() {
					if c.refersTo(u, k.expr, params.At(i)) && !slices.Contains(c.keeps[u.Obj], i) {
						c.keeps[u.Obj] = append(c.keeps[u.Obj], i)
						more = true
					}
				}
			}
			return true
		})
	}
	return more
}

// refersTo reports whether an expression is a parameter that may be a function, or has it in it.
func (c *checker) refersTo(u *uses.Unit, e ast.Expr, v *types.Var) bool {
	return mayHold(v.Type(), 0) && c.mentions(u, e, v, 0)
}

// mayHold reports whether a value of the type may be a function, or have one in it.
func mayHold(t types.Type, depth int) bool {
	if name := source.TypeName(t); name != nil && name.Name() == "Value" && analyzer.Declares("reflect", name) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Signature, *types.Interface:
		return true
	case *types.Pointer:
		return depth < 3 && mayHold(u.Elem(), depth+1)
	case *types.Struct:
		for f := range u.Fields() {
			if depth < 3 && mayHold(f.Type(), depth+1) {
				return true
			}
		}
	}
	return false
}

// mentions reports whether an expression has a variable in it, also through local variables.
func (c *checker) mentions(u *uses.Unit, e ast.Expr, v *types.Var, depth int) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || found {
			return !found
		}
		if found = c.pkg.Info.Uses[id] == v; !found && depth < 4 {
			for _, value := range c.values(u, id) {
				found = found || c.mentions(u, value, v, depth+1)
			}
		}
		return !found
	})
	return found
}

// values returns what a local variable is assigned.
func (c *checker) values(u *uses.Unit, id *ast.Ident) []ast.Expr {
	v := c.pkg.Info.ObjectOf(id)
	if !u.Local(v) {
		return nil
	}
	return c.pkg.Values(v)
}

// resolve returns the expression that a local variable was assigned once, in place of the variable.
func (c *checker) resolve(u *uses.Unit, e ast.Expr) ast.Expr {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		if list := c.values(u, id); len(list) == 1 {
			return list[0]
		}
	}
	return e
}

// look reports the cycles in a function.
func (c *checker) look(u *uses.Unit) {
	u.Own(func(n ast.Node) {
		for _, k := range c.kept(u, n) {
			c.cycle(u, k)
		}
	})
}

// cycle reports a function in what C keeps that refers to an owner.
func (c *checker) cycle(u *uses.Unit, k kept) {
	done := false
	report := func(at ast.Node, v *types.Var, what string) {
		if !done && c.owners.is(v.Type()) && (k.call == nil || c.isIn(k, v)) {
			done = true
			analyzer.Report(c.Pass, at, "cycle", "%s refers to %s, and %s keeps it for C: %s is reachable for ever, and what it owns is never released; an own.Callback in a field of its type keeps nothing", what, v.Name(), k.by, v.Name())
		}
	}
	if v, _ := c.pkg.ObjectOf(k.expr).(*types.Var); v != nil && k.state {
		report(k.expr, v, "the state") // the expression that it was assigned, such as &T{}, does not name it
	}
	ast.Inspect(c.resolve(u, k.expr), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			c.captured(n, report)
			return false
		case *ast.SelectorExpr:
			s := c.pkg.Info.Selections[n]
			if s != nil && s.Kind() == types.MethodVal && !c.isCalled(n) {
				if v := c.root(n.X); v != nil && v.Parent() != c.pkg.Types.Scope() {
					report(n, v, "the method value "+types.ExprString(n))
				}
			}
			return !k.state // the value of a field is another object
		case *ast.UnaryExpr:
			if _, field := ast.Unparen(n.X).(*ast.SelectorExpr); field && k.state && c.root(n.X) != nil {
				report(n, c.root(n.X), "the state")
			}
		case *ast.CallExpr:
			return !k.state || c.pkg.IsConversion(n)
		case *ast.Ident:
			if v, _ := c.pkg.Info.Uses[n].(*types.Var); v != nil && k.state {
				report(n, v, "the state")
			}
		}
		return true
	})
}

func (c *checker) isCalled(e ast.Expr) bool {
	call, ok := c.pkg.Parent(e).(*ast.CallExpr)
	return ok && call.Fun == e
}

// captured calls report for each variable outside of a literal that it refers to.
func (c *checker) captured(lit *ast.FuncLit, report func(ast.Node, *types.Var, string)) {
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v, _ := c.pkg.Info.Uses[id].(*types.Var)
		if v != nil && !v.IsField() && (v.Pos() < lit.Pos() || lit.End() <= v.Pos()) && v.Parent() != c.pkg.Types.Scope() && v.Pkg() == c.pkg.Types {
			report(id, v, "the function")
		}
		return true
	})
}

// isIn reports whether a variable is an argument of the call that keeps something, or what its
// method is called on.
func (c *checker) isIn(k kept, v *types.Var) bool {
	if sel, ok := ast.Unparen(k.call.Fun).(*ast.SelectorExpr); ok && c.root(sel.X) == v {
		return true
	}
	for _, arg := range k.call.Args {
		if !k.state && arg != k.expr && c.root(arg) == v {
			return true
		}
	}
	return false
}

// handles reports handles in a package that deletes none.
func (c *checker) handles(units []*uses.Unit) {
	if !c.pkg.Cgo || c.deletes() {
		return
	}
	for _, u := range units {
		u.Own(func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if ok && source.IsFunc(c.pkg.Callee(call), "runtime/cgo", "NewHandle") && !c.isGiven(call) {
				analyzer.Report(c.Pass, call, "handle", "nothing in the package deletes a cgo.Handle: what it refers to is reachable for ever")
			}
		})
	}
}

// deletes reports whether the package calls Delete of a cgo.Handle. The type of a handle that was
// converted from a number of C is not known.
func (c *checker) deletes() bool {
	found := false
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Delete" {
				name := source.TypeName(c.pkg.Info.TypeOf(sel.X))
				found = found || name == nil || analyzer.Declares("runtime/cgo", name)
			}
			return !found
		})
	}
	return found
}

// isGiven reports whether a handle is a result, or is in an exported field or variable.
func (c *checker) isGiven(call *ast.CallExpr) bool {
	for n := c.pkg.Parent(call); n != nil; n = c.pkg.Parent(n) {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			return true
		case *ast.KeyValueExpr:
			id, ok := n.Key.(*ast.Ident)
			return ok && id.IsExported()
		case *ast.AssignStmt:
			sel, ok := ast.Unparen(n.Lhs[0]).(*ast.SelectorExpr)
			return ok && sel.Sel.IsExported()
		case ast.Stmt:
			return false
		}
	}
	return false
}
