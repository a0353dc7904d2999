// Package uses says what becomes of values: which statements free them, keep them or only look
// at them, and on which paths through a function.
//
// A Unit is the body of a function or of a function literal. Package uses knows nothing of
// facts; an analyzer that has some answers for the calls of Go functions.
package uses

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/cfg"

	"github.com/cheapgo/cheap/vet/internal/source"
)

// A Unit is the body of a function or of a function literal.
type Unit struct {
	*source.Package
	Node ast.Node    // an *ast.FuncDecl or *ast.FuncLit
	Obj  *types.Func // nil for a literal
	Type *ast.FuncType
	Body *ast.BlockStmt

	// Owns reports whether structs of a type own what their fields point to. A copy of such a
	// struct has it as well. If Owns is nil, none does.
	Owns func(types.Type) bool

	// Releasable reports whether a field may have what the method of an object releases.
	Releasable func(*types.Var) bool

	following int // how deep pointerOf is

	// Ends says that all functions of C free whose names say that they release.
	Ends bool

	graph *cfg.CFG
	place map[ast.Node]place // of the nodes of graph
}

// A place is a node of a graph.
type place struct {
	block *cfg.Block
	index int
}

// Units returns the functions and the function literals of a package.
func Units(p *source.Package) []*Unit {
	var list []*Unit
	for _, f := range p.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					fn, _ := p.Info.Defs[n.Name].(*types.Func)
					list = append(list, &Unit{Package: p, Node: n, Obj: fn, Type: n.Type, Body: n.Body})
				}
			case *ast.FuncLit:
				list = append(list, &Unit{Package: p, Node: n, Type: n.Type, Body: n.Body})
			}
			return true
		})
	}
	return list
}

// Params returns the parameters in order, the receiver of a method first. A parameter without a
// name is nil.
func (u *Unit) Params() []*types.Var {
	var list []*types.Var
	add := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, field := range fields.List {
			if len(field.Names) == 0 {
				list = append(list, nil)
			}
			for _, name := range field.Names {
				v, _ := u.Info.Defs[name].(*types.Var)
				list = append(list, v)
			}
		}
	}
	if d, ok := u.Node.(*ast.FuncDecl); ok {
		add(d.Recv)
	}
	add(u.Type.Params)
	return list
}

// IsResult reports whether v is a result with a name.
func (u *Unit) IsResult(v types.Object) bool {
	if u.Type.Results == nil {
		return false
	}
	for _, field := range u.Type.Results.List {
		for _, name := range field.Names {
			if u.Info.Defs[name] == v {
				return true
			}
		}
	}
	return false
}

// LastResult returns the variable that the last result of a call is assigned to, which is the error
// if there is one, and how many results the call has. The variable is nil if there is none.
func (u *Unit) LastResult(call *ast.CallExpr) (v types.Object, of int) {
	s, ok := u.Parent(call).(*ast.AssignStmt)
	if !ok || len(s.Rhs) != 1 {
		return nil, 0
	}
	return u.ObjectOf(s.Lhs[len(s.Lhs)-1]), len(s.Lhs)
}

// Local reports whether v is declared in the body of u, or in a literal in it.
func (u *Unit) Local(v types.Object) bool {
	return v != nil && u.Body.Pos() <= v.Pos() && v.Pos() < u.Body.End()
}

// Within reports whether v is in a node, or is declared there.
func (u *Unit) Within(v interface{ Pos() token.Pos }, n ast.Node) bool {
	return n.Pos() <= v.Pos() && v.Pos() < n.End()
}

// owns reports whether an expression is a struct that owns what its fields point to.
func (u *Unit) owns(e ast.Expr) bool {
	t := u.Info.TypeOf(e)
	if t == nil || u.Owns == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok && u.Owns(t)
}

// Lit returns the outermost function literal in u that has pos, or nil.
func (u *Unit) Lit(pos token.Pos) *ast.FuncLit {
	var found *ast.FuncLit
	ast.Inspect(u.Body, func(n ast.Node) bool {
		if found != nil || n == nil || pos < n.Pos() || n.End() <= pos {
			return false
		}
		if lit, ok := n.(*ast.FuncLit); ok {
			found = lit
			return false
		}
		return true
	})
	return found
}

// Own calls f for the nodes of u that are not in function literals, but for the literals
// themselves.
func (u *Unit) Own(f func(ast.Node)) {
	ast.Inspect(u.Body, func(n ast.Node) bool {
		if n != nil {
			f(n)
		}
		_, ok := n.(*ast.FuncLit)
		return !ok
	})
}

// Graph returns the control flow graph of the body. A block without a successor that does not end
// in a return ends the program, or the goroutine.
func (u *Unit) Graph() *cfg.CFG {
	if u.graph == nil {
		u.graph = cfg.New(u.Body, u.mayReturn)
		u.place = map[ast.Node]place{}
		for _, b := range u.graph.Blocks {
			for i, n := range b.Nodes {
				u.place[n] = place{b, i}
			}
		}
	}
	return u.graph
}

// find returns the node of the graph that has n.
func (u *Unit) find(n ast.Node) (place, bool) {
	u.Graph()
	for ; n != nil && n != u.Body; n = u.Parent(n) {
		if p, ok := u.place[n]; ok {
			return p, true
		}
	}
	return place{}, false
}

var fatal = map[string]bool{"Fatal": true, "Fatalf": true, "Fatalln": true, "FailNow": true, "Skip": true, "Skipf": true, "SkipNow": true, "Panic": true, "Panicf": true, "Panicln": true}

func (u *Unit) mayReturn(call *ast.CallExpr) bool {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		_, builtin := u.Info.Uses[fun].(*types.Builtin)
		return !builtin || fun.Name != "panic"
	case *ast.SelectorExpr:
		f, _ := u.Info.Uses[fun.Sel].(*types.Func)
		if f == nil || f.Pkg() == nil {
			return true
		}
		switch f.Pkg().Path() {
		case "os":
			return f.Name() != "Exit"
		case "runtime":
			return f.Name() != "Goexit"
		case "log", "testing":
			return !fatal[f.Name()]
		}
		return !strings.HasPrefix(f.Name(), "Fatal")
	}
	return true
}

// Returns reports whether a node has a return statement, but for those in function literals.
func (u *Unit) Returns(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		_, ret := n.(*ast.ReturnStmt)
		_, lit := n.(*ast.FuncLit)
		found = found || ret
		return !lit && !found
	})
	return found
}

// Loop returns the innermost loop of u that n is in, or nil.
func (u *Unit) Loop(n ast.Node) ast.Node {
	for ; n != nil && n != u.Node; n = u.Parent(n) {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return n
		}
	}
	return nil
}

// Imported reports whether name means the package of that path at n, or nothing at all.
func (u *Unit) Imported(n ast.Node, name, path string) bool {
	_, obj := u.Types.Scope().Innermost(n.Pos()).LookupParent(name, n.Pos())
	pkg, ok := obj.(*types.PkgName)
	return obj == nil || ok && pkg.Imported().Path() == path
}

// Statement returns the statement in a block, or in a case of a switch, that n is in. It is nil
// where there is none, as for the value of a package's variable.
func (u *Unit) Statement(n ast.Node) ast.Stmt {
	for ; n != nil && n != u.Node; n = u.Parent(n) {
		s, ok := n.(ast.Stmt)
		if !ok {
			continue
		}
		switch u.Parent(n).(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			return s
		}
	}
	return nil
}
