package uses

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// UsedAfter reports whether a variable is used behind n, on some path. A node that gives the
// variable another value, and does not read it, ends a path.
func (u *Unit) UsedAfter(n ast.Node, v types.Object) bool {
	start, ok := u.find(n)
	if !ok {
		return true // not in the graph: nothing is known
	}
	for _, id := range u.Idents(v) {
		// In the node itself, what comes behind n, and v.f = n.
		sel, _ := u.Parent(id).(*ast.SelectorExpr)
		s, assigned := u.Parent(sel).(*ast.AssignStmt)
		stored := assigned && sel.Pos() < s.TokPos && s.TokPos < n.Pos()
		if (id.Pos() >= n.End() || stored) && contains(start.block.Nodes[start.index], id) && !u.defines(start.block.Nodes[start.index], id) {
			return true
		}
	}
	seen := map[*cfg.Block]bool{}
	var walk func(b *cfg.Block, from int) bool
	walk = func(b *cfg.Block, from int) bool {
		for i := from; i < len(b.Nodes); i++ {
			used, defined := u.usesIn(b.Nodes[i], v)
			if used {
				return true
			}
			if defined {
				return false
			}
		}
		for _, next := range b.Succs {
			if !seen[next] {
				seen[next] = true
				if walk(next, 0) {
					return true
				}
			}
		}
		return false
	}
	return walk(start.block, start.index+1)
}

func contains(n, part ast.Node) bool { return n.Pos() <= part.Pos() && part.End() <= n.End() }

// usesIn reports whether a node reads a variable, and whether it gives it another value.
func (u *Unit) usesIn(n ast.Node, v types.Object) (used, defined bool) {
	ast.Inspect(n, func(part ast.Node) bool {
		if id, ok := part.(*ast.Ident); ok && u.Info.ObjectOf(id) == v {
			if u.defines(n, id) {
				defined = true
			} else {
				used = true
			}
		}
		return true
	})
	return used, defined
}

// defines reports whether a node only gives the variable id another value.
func (u *Unit) defines(n ast.Node, id *ast.Ident) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, lhs := range n.Lhs {
			if lhs == id {
				return true
			}
		}
	case *ast.ValueSpec:
		for _, name := range n.Names {
			if name == id {
				return true
			}
		}
	case *ast.Ident:
		_, ok := u.Parent(n).(*ast.RangeStmt)
		return ok && n == id
	}
	return false
}

// Mentions reports whether a node has a variable in it.
func (u *Unit) Mentions(n ast.Node, v types.Object) bool {
	found := false
	ast.Inspect(n, func(part ast.Node) bool {
		if id, ok := part.(*ast.Ident); ok && u.Info.ObjectOf(id) == v {
			found = true
		}
		return !found
	})
	return found
}
