package uses

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/cfg"
)

// A Search looks for a way from a node to the end of the function.
type Search struct {
	From ast.Node

	// Stop has the nodes at which a way ends without having been found.
	Stop map[ast.Node]bool

	// Nil has variables that are known not to be nil at From.
	Nil map[types.Object]bool

	// Walks are variables of Nil of which nothing is known once they have got another value.
	Walks []types.Object

	// NotNil is the text of a field that is known not to be nil at From, or empty.
	NotNil string

	// Err is an error that is nil where the value at From is of use, or nil.
	Err types.Object

	// Made says that From is a call of C that may fail: only ways on which it has not failed count. What it gives but for the variables
	// of Nil says whether it has, and what was made of that.
	Made bool

	// Fails says, with Made, that only ways on which it has failed count.
	Fails bool

	// Overwrites has nodes that end a way which has then been found.
	Overwrites map[ast.Node]bool

	// To is the only node at which a way may end, or nil.
	To ast.Node

	status map[types.Object]bool // with Made
	fields []string              // the texts of fields that the call sets, with Made
}

// A state is where a search is. Err is not known to be nil once it was assigned to, and what walks once that has moved.
type state struct {
	block      *cfg.Block
	err, moved bool
}

// Find returns where the first way that it finds ends: a return statement, the end of the body, a panic from which the function
// recovers, or a node of Overwrites. It returns nil if there is no way.
func (u *Unit) Find(s Search) ast.Node {
	start, ok := u.find(s.From)
	if !ok {
		return nil
	}
	stop, over, sent := map[place]bool{}, map[place]ast.Node{}, map[ast.Node]bool{}
	for n := range s.Stop {
		if clause, ok := u.Parent(n).(*ast.CommClause); ok && clause.Comm == n { // the graph has it before the choice
			sent[clause] = true
		} else if p, ok := u.find(n); ok {
			stop[p] = true
		}
	}
	if s.To != nil {
		s.Overwrites = map[ast.Node]bool{s.To: true}
	}
	for n := range s.Overwrites {
		if p, ok := u.find(n); ok {
			over[p] = n
		}
	}
	if stop[start] {
		return nil
	}
	known := u.conditions(s.From)
	if call, ok := s.From.(*ast.CallExpr); s.Made && ok {
		s.status, s.fields = u.status(call, s)
	}
	behind := s // where what walks has moved
	behind.Nil = maps.Clone(s.Nil)
	for _, v := range s.Walks {
		delete(behind.Nil, v)
	}
	seen := map[state]bool{}
	var walk func(b *cfg.Block, from int, err, moved bool) ast.Node
	walk = func(b *cfg.Block, from int, err, moved bool) ast.Node {
		for i := from; i < len(b.Nodes); i++ {
			p := place{b, i}
			if stop[p] {
				return nil
			}
			if n := over[p]; n != nil {
				return n
			}
			if ret, ok := b.Nodes[i].(*ast.ReturnStmt); ok && s.To == nil {
				if err && s.Made && !s.Fails && u.ReturnsError(ret) && u.mentionsAny(ret, s.status) {
					return nil // the error that the call has given
				}
				return ret
			}
			if e, ok := b.Nodes[i].(*ast.ExprStmt); ok && s.To == nil && len(b.Succs) == 0 && u.has(e, "panic") && u.has(u.Body, "recover") {
				return e
			}
			if s.To == nil && (u.failsTest(b.Nodes[i]) || err && u.wantsError(b.Nodes[i], s.Err)) {
				return nil
			}
			if err && (s.Err != nil && u.assigns(b.Nodes[i], s.Err) || s.Made && u.forgets(b.Nodes[i], s)) {
				err = false
			}
			moved = moved || slices.ContainsFunc(s.Walks, func(v types.Object) bool { return u.assigns(b.Nodes[i], v) && !u.copies(b.Nodes[i], s) })
		}
		s := s
		if moved {
			s = behind
		}
		for i, next := range b.Succs {
			if next.Kind == cfg.KindRangeLoop && u.enters(b, next) {
				next = next.Succs[0] // the body
			}
			if sent[next.Stmt] && next.Kind == cfg.KindSelectCaseBody {
				continue
			}
			if len(b.Succs) == 2 && len(b.Nodes) > 0 {
				if cond, ok := b.Nodes[len(b.Nodes)-1].(ast.Expr); ok && u.impossible(cond, i == 0, s, err, known) {
					continue
				}
			}
			if st := (state{next, err, moved}); !seen[st] {
				seen[st] = true
				if n := walk(next, 0, err, moved); n != nil {
					return n
				}
			}
		}
		return nil
	}
	return walk(start.block, start.index+1, true, false)
}

// copies reports whether an assignment gives a variable what a search follows: a variable that does not walk.
func (u *Unit) copies(n ast.Node, s Search) bool {
	a := n.(*ast.AssignStmt)
	v := u.Variable(a.Rhs[0])
	return len(a.Rhs) == 1 && s.Nil[v] && !slices.Contains(s.Walks, v)
}

// failsTest reports whether a statement says that a test has failed, behind which nobody misses anything.
func (u *Unit) failsTest(n ast.Node) bool {
	s, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f := u.Callee(call)
	return f != nil && f.Pkg() != nil && f.Pkg().Path() == "testing" && (strings.HasPrefix(f.Name(), "Error") || strings.HasPrefix(f.Name(), "Fa"))
}

// wantsError reports whether a statement calls what checks in a test that there is an error, as assert.Error(t, err) and
// assert.True(t, err != nil).
func (u *Unit) wantsError(n ast.Node, err types.Object) bool {
	s, ok := n.(*ast.ExprStmt)
	if !ok || err == nil {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	return ok && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		cond, ok := ast.Unparen(arg).(*ast.BinaryExpr)
		if !ok {
			return u.ObjectOf(arg) == err && (strings.HasPrefix(check(call), "Error") || strings.HasPrefix(check(call), "NotNil"))
		}
		name := check(call)
		return cond.Op == token.NEQ && u.ObjectOf(cond.X) == err && isNil(cond.Y) && (name == "T" || strings.HasPrefix(name, "True"))
	})
}

// has reports whether a node names the builtin function of that name.
func (u *Unit) has(n ast.Node, name string) bool {
	for part := range ast.Preorder(n) {
		if id, ok := part.(*ast.Ident); ok && u.Info.Uses[id] == types.Universe.Lookup(name) {
			return true
		}
	}
	return false
}

// Always reports whether each way from the beginning of the body to n goes through one of the
// nodes.
func (u *Unit) Always(through []ast.Node, n ast.Node) bool {
	end, ok := u.find(n)
	return ok && !u.reaches(place{u.Graph().Blocks[0], 0}, through, end)
}

// Leads reports whether a way leads from one node to another, through none of the others.
func (u *Unit) Leads(from ast.Node, through []ast.Node, to ast.Node) bool {
	start, ok := u.find(from)
	end, found := u.find(to)
	return ok && found && u.reaches(place{start.block, start.index + 1}, through, end)
}

func (u *Unit) reaches(start place, through []ast.Node, end place) bool {
	stop := map[place]bool{}
	for _, n := range through {
		if p, ok := u.find(n); ok {
			stop[p] = true
		}
	}
	seen := map[*cfg.Block]bool{}
	var reaches func(b *cfg.Block, from int) bool
	reaches = func(b *cfg.Block, from int) bool {
		for i := from; i < len(b.Nodes); i++ {
			p := place{b, i}
			if p == end {
				return true
			}
			if stop[p] {
				return false
			}
		}
		return slices.ContainsFunc(b.Succs, func(next *cfg.Block) bool {
			if seen[next] {
				return false
			}
			seen[next] = true
			return reaches(next, 0)
		})
	}
	return reaches(start.block, start.index)
}

// enters reports whether a block is in front of a loop which runs at least once: over a constant,
// or over a list that is written there.
func (u *Unit) enters(b, loop *cfg.Block) bool {
	s, ok := loop.Stmt.(*ast.RangeStmt)
	if !ok || !slices.Contains(b.Nodes, ast.Node(s.X)) {
		return false
	}
	if lit, ok := ast.Unparen(s.X).(*ast.CompositeLit); ok {
		return len(lit.Elts) > 0
	}
	v := u.Info.Types[s.X].Value
	return v != nil && v.Kind() == constant.Int && constant.Sign(v) > 0
}

// assigns reports whether a node gives v another value.
func (u *Unit) assigns(n ast.Node, v types.Object) bool {
	s, ok := n.(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, lhs := range s.Lhs {
		if u.ObjectOf(lhs) == v {
			return true
		}
	}
	return false
}
