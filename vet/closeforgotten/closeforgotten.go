// Package closeforgotten defines an Analyzer that finds owners which the program should close, and
// does not, and rooms that it should release.
//
// # Analyzer closeforgotten
//
// closeforgotten: report owners and rooms that a program has to end, and forgets
//
// A pool of package own whose options have OnCollect wants its owners to be closed: OnCollect is
// told of those that the collector has found instead. The analyzer reports an owner of such a pool
// that is neither closed nor handed on, on some path:
//
//	img, err := NewImage() // calls img.h.Own(images, p, n)
//	if err != nil {
//		return err
//	}
//	return img.Show() // and img is forgotten
//
// Functions that return such an owner are known in other packages as well. It says nothing about
// pools without OnCollect, where forgetting an owner is no mistake, and about owners that are
// stored, returned, or passed to functions that are not known.
//
// A room that Pool.Reserve of any pool has returned counts under the limit until something is owned
// in it, or until it is released. The analyzer reports one that is forgotten on some path:
//
//	room, err := images.Reserve(ctx, size)
//	if err != nil {
//		return nil, err
//	}
//	p := C.image_new(C.size_t(size))
//	if p == nil {
//		return nil, cheap.ErrNoMemory // and room is forgotten
//	}
//
// A deferred room.Close ends a room on all paths, and does nothing where it has ended.
//
// The findings are of these kinds: never, path and dropped.
package closeforgotten

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

//go:embed closeforgotten.go
var doc string

// Analyzer reports owners that are dropped without Close, and rooms without Close.
var Analyzer = analyzer.New("closeforgotten", doc, run, new(Makes))

// Makes marks functions whose first result has an owner that should be closed.
type Makes struct{}

// AFact marks facts.
func (*Makes) AFact() {}

func (*Makes) String() string { return "makes" }

type checker struct {
	*analysis.Pass
	pkg    *source.Package
	units  []*uses.Unit
	byFunc map[*types.Func]*uses.Unit
	pools  map[types.Object]bool // variables and fields
	makes  map[*types.Func]bool
	known  map[*types.Func]uses.Role // of a method: what it does with its receiver
}

func run(pass *analysis.Pass, pkg *source.Package) {
	c := &checker{
		Pass: pass, pkg: pkg, units: uses.Units(pkg), byFunc: map[*types.Func]*uses.Unit{},
		pools: map[types.Object]bool{}, makes: map[*types.Func]bool{}, known: map[*types.Func]uses.Role{},
	}
	for _, u := range c.units {
		if u.Obj != nil {
			c.byFunc[u.Obj] = u
		}
	}
	for _, u := range c.units {
		c.checkRooms(u)
	}
	if !analyzer.Imports(pkg.Types, analyzer.Own) && len(pass.AllObjectFacts()) == 0 {
		return
	}
	c.findPools()
	for more := true; more; {
		more = false
		for _, u := range c.units {
			for _, o := range c.owners(u) {
				if u.Obj != nil && !c.makes[u.Obj] && c.returns(u, o) {
					c.makes[u.Obj], more = true, true
				}
			}
		}
	}
	for f := range c.makes {
		if obj := pkg.Object(f); obj != nil && f.Exported() {
			pass.ExportObjectFact(obj, new(Makes))
		}
	}
	for _, u := range c.units {
		for _, o := range c.owners(u) {
			c.check(u, o)
		}
	}
}

// findPools finds the variables and fields that get a pool with OnCollect.
func (c *checker) findPools() {
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !source.IsFunc(c.pkg.Callee(call), analyzer.Own, "NewPool") || len(call.Args) != 1 || !hasOnCollect(call.Args[0]) {
				return true
			}
			c.pools[c.pkg.Receiver(call)] = true
			return true
		})
	}
	delete(c.pools, nil)
}

func hasOnCollect(e ast.Expr) bool {
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if !ok {
		return false
	}
	for _, elem := range lit.Elts {
		if kv, ok := elem.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == "OnCollect" {
				return true
			}
		}
	}
	return false
}

var closes = map[string]bool{"Close": true, "CloseWait": true, "Disown": true}

// fate returns the places where a variable with an owner is closed or handed on. What is put into
// another variable, such as a list that is closed later, is handed on there.
func (c *checker) fate(u *uses.Unit, v types.Object) (stops map[ast.Node]bool, returned, closed bool) {
	stops = map[ast.Node]bool{}
	fate := u.Fate(v, false, c.calls)
	if fate.Has(uses.Frees, uses.Keeps, uses.Leaves) {
		for _, n := range u.Stores(v, c.calls) {
			stops[n] = true
		}
	}
	for _, use := range append(fate.Uses, fate.Inner...) {
		if use.Role == uses.Writes {
			continue
		}
		stops[use.Node] = true
		returned = returned || use.Role == uses.Leaves
		closed = closed || use.Role == uses.Frees
	}
	for _, v := range fate.Vars {
		for _, call := range c.closings(u, v) {
			stops[call] = true
			closed = true
		}
	}
	return stops, returned, closed
}

// closings returns the calls v.Close, v.h.Close and so on, and of literals that have one.
func (c *checker) closings(u *uses.Unit, v types.Object) []ast.Node {
	var list []ast.Node
	ast.Inspect(u.Body, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if ok && closes[sel.Sel.Name] && root(c.pkg, sel.X) == v {
			list = append(list, outermost(u, sel))
		}
		return true
	})
	return list
}

// outermost returns the outermost literal that n is in, or n.
func outermost(u *uses.Unit, n ast.Node) ast.Node {
	out := n
	for p := u.Parent(n); p != nil && p != u.Node; p = u.Parent(p) {
		if lit, ok := p.(*ast.FuncLit); ok {
			out = lit
		}
	}
	return out
}

// calls says what a call does with a value that has an owner.
func (c *checker) calls(u *uses.Unit, call *ast.CallExpr, f *types.Func, arg int, inner bool) uses.Role {
	if arg >= 0 {
		return uses.Keeps
	}
	if closes[f.Name()] {
		return uses.Frees
	}
	body := c.byFunc[f]
	if body == nil {
		return uses.Looks
	}
	if role, ok := c.known[f]; ok {
		return role
	}
	c.known[f] = uses.Looks
	if params := body.Params(); len(params) > 0 && params[0] != nil {
		if stops, _, _ := c.fate(body, params[0]); len(stops) > 0 {
			c.known[f] = uses.Keeps
		}
	}
	return c.known[f]
}

// variable returns the variable that has the owner.
func (c *checker) variable(u *uses.Unit, o owner) (v types.Object, dropped bool) {
	if o.v != nil {
		return o.v, false
	}
	use := u.Assigned(o.call, 0, false, c.calls)
	switch use.Role {
	case uses.Drops, uses.Looks:
		s, ok := use.Node.(*ast.AssignStmt)
		return nil, !ok || len(s.Lhs) == 1 // _, err := : the caller expects an error
	case uses.Names:
		return use.Var, false
	}
	return nil, false
}

// returns reports whether a function returns an owner that it has made.
func (c *checker) returns(u *uses.Unit, o owner) bool {
	if o.v == nil {
		if use := u.Assigned(o.call, 0, false, c.calls); use.Role == uses.Leaves {
			return true
		}
	}
	v, _ := c.variable(u, o)
	if v == nil {
		return false
	}
	_, returned, closed := c.fate(u, v)
	return returned && !closed
}

func (c *checker) check(u *uses.Unit, o owner) {
	v, dropped := c.variable(u, o)
	if dropped {
		analyzer.Report(c.Pass, o.call, "dropped", "an owner of a pool with OnCollect is made and dropped: close it")
		return
	}
	if v == nil {
		return
	}
	stops, _, _ := c.fate(u, v)
	search := uses.Search{From: o.call, Stop: stops, Nil: map[types.Object]bool{v: true}, Err: errorOf(u, o.call)}
	end, ok := u.Find(search).(*ast.ReturnStmt)
	switch {
	case !ok:
	case len(stops) == 0:
		analyzer.Report(c.Pass, o.call, "never", "%s is dropped without Close, in a pool with OnCollect", v.Name())
	default:
		analyzer.Report(c.Pass, o.call, "path", "%s is not closed %s, in a pool with OnCollect", v.Name(), c.onTheWay(end))
	}
}

func (c *checker) onTheWay(end *ast.ReturnStmt) string {
	return fmt.Sprintf("on the way to the return in line %d", c.Fset.Position(end.Pos()).Line)
}

// errorOf returns the variable of the error that a call has returned.
func errorOf(u *uses.Unit, call *ast.CallExpr) types.Object {
	v, of := u.LastResult(call)
	switch {
	case v == nil || v.Type() == nil:
	case types.Identical(v.Type(), types.Universe.Lookup("error").Type()):
		return v
	case of == 1 && v.Type() == types.Typ[types.Invalid]:
		return v // of an owner of a type of C
	}
	return nil
}
