package cleanupcycle

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// A set of locks, by the variable or the field of each, or by the type that embeds it. The value is
// false if Close and Use only queue the release that takes the lock.
type locks map[types.Object]bool

// releasers are what may call release functions: pools, owners, and functions, with the locks that
// the release functions take.
type releasers map[types.Object]locks

func (r releasers) add(obj types.Object, l locks) (more bool) {
	if obj == nil || len(l) == 0 {
		return false
	}
	if r[obj] == nil {
		r[obj] = locks{}
	}
	for lock, now := range l {
		if was, ok := r[obj][lock]; !ok || now && !was {
			r[obj][lock], more = now, true
		}
	}
	return more
}

// held reports calls that may call a release function, with a lock held that it takes.
func (c *checker) held(options []*ast.CompositeLit) {
	r := releasers{}
	byNode, byFunc := map[ast.Node]*uses.Unit{}, map[*types.Func]*uses.Unit{}
	units := uses.Units(c.pkg)
	for _, u := range units {
		byNode[u.Node] = u
		if u.Obj != nil {
			byFunc[u.Obj] = u
		}
	}
	for _, lit := range options {
		l, queues, queue := locks{}, false, types.Object(nil)
		for _, elem := range lit.Elts {
			kv, ok := elem.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch types.ExprString(kv.Key) {
			case "Run":
				queues, queue = c.queue(kv.Value)
			case "Construct": // for Make only
			default:
				u := byNode[ast.Unparen(kv.Value)]
				if u == nil {
					u = byFunc[c.pkg.Func(kv.Value)]
				}
				maps.Copy(l, c.taken(u, byFunc, map[*uses.Unit]bool{}))
			}
		}
		for lock := range l {
			l[lock] = !queues
		}
		r.add(c.poolOf(lit), l)
		r.add(queue, l)
	}
	if len(r) == 0 {
		return
	}
	pools := maps.Clone(r)
	for _, u := range units {
		u.Own(func(n ast.Node) {
			if call, ok := n.(*ast.CallExpr); ok {
				c.owns(call, pools, r)
			}
		})
	}
	for more := true; more; { // functions that call what may call a release function
		more = false
		for _, u := range units {
			u.Own(func(n ast.Node) {
				if call, ok := n.(*ast.CallExpr); ok && u.Obj != nil {
					_, l := c.releases(u, call, r)
					more = r.add(u.Obj, l) || more
				}
			})
		}
	}
	for _, u := range units {
		u.Own(func(n ast.Node) {
			if call, ok := n.(*ast.CallExpr); ok {
				c.checkHeld(u, call, r)
			}
		})
	}
}

// checkHeld reports a call with a lock held that a release function takes.
func (c *checker) checkHeld(u *uses.Unit, call *ast.CallExpr, r releasers) {
	name, taken := c.releases(u, call, r)
	for _, lock := range slices.SortedFunc(maps.Keys(taken), func(x, y types.Object) int { return int(x.Pos() - y.Pos()) }) {
		var begins, ends []ast.Node
		u.Own(func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || c.lockOf(call) != lock {
				return
			}
			_, deferred := u.Parent(call).(*ast.DeferStmt)
			switch method := c.pkg.Callee(call).Name(); {
			case method == "Lock" || method == "RLock":
				begins = append(begins, call)
			case !deferred:
				ends = append(ends, call)
			}
		})
		if _, deferred := u.Parent(call).(*ast.DeferStmt); deferred && len(ends) > 0 {
			continue
		}
		for _, begin := range begins {
			if u.Leads(begin, ends, call) {
				remedy := "call it with the lock free"
				if name == "Use" || name == "TryUse" {
					remedy = "take the lock within the function for " + name
				}
				c.report(call, "lock", "%s may call the release function, which waits for the lock %s that is held here: %s", name, lock.Name(), remedy)
				return
			}
		}
	}
}

// lockOf returns what names the lock that a call of sync locks or unlocks, or nil.
func (c *checker) lockOf(call *ast.CallExpr) types.Object {
	f := c.pkg.Callee(call)
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f == nil || !analyzer.Declares("sync", f) {
		return nil
	}
	switch f.Name() {
	case "Lock", "RLock", "Unlock", "RUnlock":
	default:
		return nil
	}
	if s := c.pkg.Info.Selections[sel]; s != nil && len(s.Index()) > 1 {
		if name := source.TypeName(s.Recv()); name != nil {
			return name // it embeds the lock
		}
		return nil
	}
	return c.pkg.Named(sel.X)
}

// taken returns the locks that a function takes, itself or by a function of the package. u may be
// nil.
func (c *checker) taken(u *uses.Unit, byFunc map[*types.Func]*uses.Unit, seen map[*uses.Unit]bool) locks {
	l := locks{}
	if u == nil || seen[u] {
		return l
	}
	seen[u] = true
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || isGo(u, call) {
			return
		}
		f := c.pkg.Callee(call)
		if lock := c.lockOf(call); lock != nil && (f.Name() == "Lock" || f.Name() == "RLock") {
			l[lock] = true
		}
		maps.Copy(l, c.taken(byFunc[f], byFunc, seen))
	})
	return l
}

// queue reports whether a Run queues the releases of Close, and returns the variable or field of the
// Queue, or nil.
func (c *checker) queue(run ast.Expr) (queues bool, queue types.Object) {
	call, ok := ast.Unparen(run).(*ast.CallExpr)
	if !ok {
		_, zero := ast.Unparen(run).(*ast.CompositeLit)
		return !zero, nil
	}
	f := c.pkg.Callee(call)
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && f != nil && f.Signature().Recv() != nil {
		queue = c.pkg.Named(sel.X)
	}
	return !source.IsFunc(f, analyzer.Own, "Workers") && !source.IsFunc(f, analyzer.Own, "Inline"), queue
}

// poolOf returns the variable or the field that gets the pool with these options, or nil.
func (c *checker) poolOf(options *ast.CompositeLit) types.Object {
	call, ok := c.pkg.Parent(options).(*ast.CallExpr)
	if !ok || !source.IsFunc(c.pkg.Callee(call), analyzer.Own, "NewPool") {
		return nil
	}
	return c.pkg.Receiver(call)
}

// owns learns from a call such as m.h.Own(pool, ...) of which pool an owner is. The types of a Handle of
// a type of C are not known.
func (c *checker) owns(call *ast.CallExpr, pools, r releasers) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	switch sel.Sel.Name {
	case "Own", "OwnWith", "Make":
		r.add(c.pkg.Named(sel.X), pools[c.pkg.Named(call.Args[0])])
	}
}

// releasing has the methods that may call a release function. The value is true if they do, or wait for
// it, where Close and Use only queue the release.
var releasing = map[string]bool{"Use": false, "TryUse": false, "Close": false, "CloseWait": true, "Drain": true, "Reserve": true}

// releases returns the locks that release functions take which a call may call, and the name of what is
// called.
func (c *checker) releases(u *uses.Unit, call *ast.CallExpr, r releasers) (name string, taken locks) {
	if isGo(u, call) {
		return "", nil
	}
	if f := c.pkg.Callee(call); f != nil && r[f] != nil {
		return f.Name(), r[f]
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return "", nil
	}
	name = sel.Sel.Name
	waits, ok := releasing[name]
	if !ok || name == "Close" && c.isUsed(u, sel.X) {
		return "", nil
	}
	taken = locks{}
	for lock, now := range r[c.pkg.Named(sel.X)] {
		if now || waits {
			taken[lock] = true
		}
	}
	return name, taken
}

// isUsed reports whether u is the function of a Use of the owner x, which releases after it.
func (c *checker) isUsed(u *uses.Unit, x ast.Expr) bool {
	call, ok := c.pkg.Parent(u.Node).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "Use" || sel.Sel.Name == "TryUse") && types.ExprString(sel.X) == types.ExprString(x)
}

func isGo(u *uses.Unit, call *ast.CallExpr) bool {
	_, ok := u.Parent(call).(*ast.GoStmt)
	return ok
}
