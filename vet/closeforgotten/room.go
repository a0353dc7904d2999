package closeforgotten

import (
	"go/ast"
	"go/types"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// checkRooms reports the rooms of Pool.Reserve that nothing ends on some path.
func (c *checker) checkRooms(u *uses.Unit) {
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isReserve(c.pkg.Callee(call)) {
			return
		}
		use := u.Assigned(call, 0, false, endsRoom)
		if use.Role == uses.Drops {
			analyzer.Report(c.Pass, call, "dropped", "a room is reserved and dropped: own a resource in it, or call Close")
		}
		if use.Role != uses.Names || use.Inner {
			return // _, err := : the caller expects an error
		}
		stops := map[ast.Node]bool{}
		fate := u.Fate(use.Var, false, endsRoom)
		for _, use := range append(fate.Uses, fate.Inner...) {
			if use.Role != uses.Writes {
				stops[use.Node] = true
			}
		}
		end, ok := u.Find(uses.Search{From: call, Stop: stops, Err: errorOf(u, call)}).(*ast.ReturnStmt)
		switch {
		case !ok:
		case len(stops) == 0:
			analyzer.Report(c.Pass, call, "never", "%s is a room in which nothing is owned, and which is not released", use.Var.Name())
		default:
			analyzer.Report(c.Pass, call, "path", "%s is a room in which nothing is owned, and which is not released, %s", use.Var.Name(), c.onTheWay(end))
		}
	})
}

// isReserve reports whether f is Pool.Reserve.
func isReserve(f *types.Func) bool {
	return f != nil && f.Name() == "Reserve" && analyzer.Declares(analyzer.Own, f) && f.Signature().Recv() != nil
}

// endsRoom says what a call does with a room: its method ends it, and so may any function that gets it.
func endsRoom(_ *uses.Unit, _ *ast.CallExpr, _ *types.Func, arg int, _ bool) uses.Role {
	if arg < 0 {
		return uses.Frees
	}
	return uses.Keeps
}
