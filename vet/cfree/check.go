package cfree

import (
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

// check reports an allocation that is not freed.
func (c *checker) check(u *uses.Unit, a allocation) {
	if c.runsOnce(u) && u.Loop(a.call) == nil || c.saidToGo(u, a) {
		return // it ends with the process, or somebody else frees it
	}
	if a.object && (c.pkg.C(a.call.Fun) != "" || c.mayTake(a.call)) {
		return // checkObjects looks at it, or C may have it
	}
	if a.out != nil {
		if slices.ContainsFunc(u.Idents(a.out), func(id *ast.Ident) bool { // another function gets its address
			addr, ok := u.Parent(id).(*ast.UnaryExpr)
			return ok && addr.Op == token.AND && !u.Within(addr, a.call)
		}) {
			return
		}
		if fate := u.Fate(a.out, false, c.calls); !fate.Has(uses.Frees, uses.Keeps, uses.Leaves) && !u.IsResult(a.out) {
			c.report(a, "never", "what %s gives "+a.out.Name()+" is never freed", nil)
		}
		return
	}
	use := u.Assigned(a.call, a.index, a.inner, c.calls)
	switch use.Role {
	case uses.Leaves:
		if c.ofPool(u) {
			c.report(a, "pool", "the result of %s is never freed: a sync.Pool drops what it has", nil)
		}
	case uses.Drops, uses.Looks:
		if a.inner {
			return
		}
		if s, ok := use.Node.(*ast.AssignStmt); ok && len(s.Lhs) > 1 {
			return // _, err := : the caller expects an error
		}
		c.report(a, "dropped", "the result of %s is never freed: nothing has it", c.fixDropped(u, a))
	case uses.Names, uses.Stores:
		fate := u.FateIn(use.Var, use.Inner, use.In, c.calls)
		if onlyField(fate) || c.given && c.hasHandle(u, fate) || a.object && len(c.handsOn(u, fate, a.call)) > 0 {
			return
		}
		if use.Inner {
			switch {
			case fate.Has(uses.Frees), fate.Has(uses.Leaves) && isList(use.Var):
				c.checkList(u, a, fate)
			case !fate.Has(uses.Keeps, uses.Leaves):
				c.report(a, "never", "the result of %s is never freed", nil)
			}
			return
		}
		c.checkVar(u, a, use, fate)
	}
}

// elsewhere matches comments that say that somebody else frees what is allocated beside them.
var elsewhere = regexp.MustCompile(`(?i)\b(freed|released|owned|deallocated) (\w+ )?(by|in|from|within)\b|\b(will free|takes ownership)\b`)

// saidToGo reports whether a comment in the line of an allocation, or one in the function that names its variable, says that somebody else
// frees it.
func (c *checker) saidToGo(u *uses.Unit, a allocation) bool {
	file, line := c.pkg.FileOf(a.call.Pos()), c.Fset.Position(a.call.Pos()).Line
	v := c.pkg.Receiver(c.pkg.Dressed(a.call))
	return file != nil && slices.ContainsFunc(file.Comments, func(g *ast.CommentGroup) bool {
		here := c.Fset.Position(g.Pos()).Line == line
		named := v != nil && u.Within(g, u.Node) && slices.Contains(strings.Fields(g.Text()), v.Name())
		return (here || named) && elsewhere.MatchString(g.Text())
	})
}

// runsOnce reports whether a unit runs once in a process: main, init, what a sync.Once calls, and what only one of these calls, in one
// place.
func (c *checker) runsOnce(u *uses.Unit) bool {
	once := func(e ast.Node) bool {
		call, ok := u.Parent(e).(*ast.CallExpr)
		if !ok || call.Fun == e {
			return false
		}
		switch f := c.pkg.Callee(call); {
		case f == nil || f.Pkg() == nil || f.Pkg().Path() != "sync":
			return false
		default:
			return f.Name() == "Do" || strings.HasPrefix(f.Name(), "Once")
		}
	}
	d, ok := u.Node.(*ast.FuncDecl)
	if !ok {
		return once(u.Node)
	}
	if d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main" && c.pkg.Types.Name() == "main") {
		return true
	}
	named := c.named[u.Obj]
	if len(named) == 1 && (!u.Obj.Exported() || c.pkg.Types.Name() == "main") {
		call, ok := c.pkg.Parent(named[0]).(*ast.CallExpr)
		for _, by := range c.units {
			if ok && call.Fun == named[0] && by != u && u.Within(named[0], by.Node) && by.Lit(call.Pos()) == nil && by.Loop(call) == nil && c.runsOnce(by) {
				return true
			}
		}
	}
	return len(named) > 0 && !slices.ContainsFunc(named, func(e ast.Expr) bool { return !once(e) })
}

// exported reports whether C calls a function.
func exported(u *uses.Unit) bool {
	d, ok := u.Node.(*ast.FuncDecl)
	return ok && d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(l *ast.Comment) bool { return strings.HasPrefix(l.Text, "//export ") })
}

// around returns what has the literal that a node is a part of.
func around(u *uses.Unit, n ast.Node) ast.Node {
	for {
		switch p := u.Parent(n).(type) {
		case *ast.CompositeLit, *ast.KeyValueExpr, *ast.UnaryExpr:
			n = p
		default:
			return p
		}
	}
}

// ofPool reports whether a unit is the function that makes the values of a sync.Pool.
func (c *checker) ofPool(u *uses.Unit) bool {
	kv, ok := u.Parent(u.Node).(*ast.KeyValueExpr)
	if !ok || types.ExprString(kv.Key) != "New" {
		return false
	}
	lit, ok := u.Parent(kv).(*ast.CompositeLit)
	name := source.TypeName(c.pkg.Info.TypeOf(lit))
	return ok && name != nil && name.Pkg() != nil && name.Pkg().Path() == "sync" && name.Name() == "Pool"
}

// checkList looks for a return within the loop that fills a list, or on the way to what frees the list, or the field of a struct.
func (c *checker) checkList(u *uses.Unit, a allocation, fate uses.Fate) {
	loop := u.Loop(a.call)
	returned := fate.Has(uses.Leaves)
	if fate.Has(uses.Keeps) || returned && !isList(fate.Vars[0]) {
		return
	}
	search := uses.Search{From: a.call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{}}
	search.Err, _ = u.LastResult(a.call)
	for _, use := range slices.Concat(fate.Uses, fate.Inner) {
		if use.Role == uses.Leaves {
			search.Stop[use.Node] = true
		}
		if use.Role != uses.Frees {
			continue
		}
		for n := use.Node; n != nil && n != u.Node; n = u.Parent(n) {
			search.Stop[n] = true
			switch n := n.(type) {
			case *ast.DeferStmt:
				if n.Pos() < a.call.Pos() {
					return
				}
			case *ast.RangeStmt:
				search.Stop[n.X] = n != loop
			case *ast.ForStmt:
				search.Stop[n.Cond] = n != loop
			}
			if n == loop {
				break
			}
		}
	}
	delete(search.Stop, loop)
	if ret, ok := u.Find(search).(*ast.ReturnStmt); ok && (loop != nil && u.Within(ret, loop) && !returned || c.fails(u, ret) && !c.failed(u, ret, fate.Vars[0])) {
		why := ": the list is freed later"
		if returned {
			why = ": the list is lost"
		}
		c.lostAt(a.call, ret, "path", "the result of "+a.name, why)
	}
}

// hasHandle reports whether memory of C gets a cgo.Handle, as a number: what deletes that may free the memory.
func (c *checker) hasHandle(u *uses.Unit, fate uses.Fate) (has bool) {
	u.Own(func(n ast.Node) {
		if s, ok := n.(*ast.AssignStmt); ok && slices.ContainsFunc(fate.Vars, func(v types.Object) bool { return u.Mentions(s.Lhs[0], v) }) {
			v := c.pkg.Variable(s.Rhs[0])
			has = has || v != nil && isHandle(v.Type())
		}
	})
	return has
}

// onlyField reports whether the only way of a value out of the function is a field.
func onlyField(fate uses.Fate) bool {
	fields := 0
	for _, use := range fate.Uses {
		switch {
		case use.Role == uses.Keeps && (use.Field != nil || use.C != ""):
			fields++
		case use.Role != uses.Writes:
			return false
		}
	}
	return fields == 1 && len(fate.Inner) == 0
}

// checkVar looks for a path on which a variable is not freed.
func (c *checker) checkVar(u *uses.Unit, a allocation, use uses.Use, fate uses.Fate) {
	if len(fate.Inner) > 0 && fate.Has(uses.Keeps, uses.Frees, uses.Leaves) {
		for _, use := range fate.Inner {
			if use.Role != uses.Writes {
				return // what was put into another value goes where that goes
			}
		}
	}
	search := uses.Search{From: a.call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{}, Overwrites: map[ast.Node]bool{}}
	freed := false
	for _, use := range fate.Uses {
		if call, ok := use.Node.(*ast.CallExpr); ok && use.Role == uses.Frees && call.Pos() < a.call.Pos() {
			_, deferred := u.Parent(call).(*ast.DeferStmt)
			if _, lit := call.Fun.(*ast.FuncLit); deferred && (lit || c.byAddress(call)) {
				return // it frees what the variable has at the end
			}
		}
		switch use.Role {
		case uses.Writes:
			search.Overwrites[use.Node] = true
		default:
			search.Stop[use.Node] = true
			freed = true
		}
	}
	c.notNil(&search, fate)
	delete(search.Overwrites, use.Node)
	if loop := u.Loop(use.Node); loop != nil && loop == u.Loop(a.call) {
		search.Overwrites[use.Node] = true
	}
	if f, ok := c.pkg.Defined(c.pkg.C(a.call.Fun)); ok && f.Allocates {
		search.Made = true // it may say by another argument that it has made nothing
	}
	err, of := u.LastResult(a.call)
	if of > 1 {
		search.Err = err
		if c.freedIf(u, a.call, fate) {
			return
		}
	}
	end := u.Find(search)
	if end == nil && a.beside && of > 1 {
		search.Err = nil
		if ret, ok := u.Find(search).(*ast.ReturnStmt); ok && freed {
			c.lostAt(a.call, ret, "beside", "the result of "+a.name, ": it may come with an error as well")
		}
	}
	switch end := end.(type) {
	case nil:
	case *ast.ReturnStmt:
		if c.onlyIfFailed(u, fate, end) {
			return
		}
		if !freed {
			c.report(a, "never", "the result of %s is never freed", c.fix(u, a, use, fate))
			return
		}
		if c.failed(u, end, use.Var) {
			return
		}
		c.lostAt(a.call, end, "path", "the result of "+a.name, "")
	case *ast.ExprStmt:
		if freed {
			c.lostAt(a.call, end, "path", "the result of "+a.name, ": it panics, and recovers")
		}
	default:
		if len(fate.Vars) > 1 && freed {
			return // another variable has it
		}
		if !freed {
			c.report(a, "never", "the result of %s is never freed", nil)
			return
		}
		c.reportAt(a.call, "overwritten", fmt.Sprintf("the result of %s is not freed before %s gets another value", a.name, use.Var.Name()), nil,
			analysis.RelatedInformation{Pos: end.Pos(), Message: "another value"})
	}
}

// byAddress reports whether a call is v.f(), and gives the method the address of v.
func (c *checker) byAddress(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	f := c.pkg.Callee(call)
	if !ok || f == nil || f.Signature().Recv() == nil {
		return false
	}
	s := c.pkg.Info.Selections[sel]
	_, toPtr := f.Signature().Recv().Type().Underlying().(*types.Pointer)
	if s == nil || !toPtr {
		return false
	}
	_, isPtr := s.Recv().Underlying().(*types.Pointer)
	return !isPtr
}

// notNil notes that the variables which have a value are not nil in a search: those that get others as well, as in a loop over a list,
// until they do.
func (c *checker) notNil(s *uses.Search, fate uses.Fate) {
	for i, v := range fate.Vars {
		s.Nil[v] = true
		if i > 0 && len(c.pkg.Values(v)) > 1 {
			s.Walks = append(s.Walks, v)
		}
	}
}

// onlyIfFailed reports whether all frees of a value are where a call of C that had it has failed, and a return is not: where the call does
// not fail it has taken the value over.
func (c *checker) onlyIfFailed(u *uses.Unit, fate uses.Fate, end *ast.ReturnStmt) bool {
	if c.fails(u, end) {
		return false
	}
	for _, v := range fate.Vars {
		for _, id := range u.Idents(v) {
			e := ast.Expr(id)
			if sel, ok := u.Parent(id).(*ast.SelectorExpr); ok && c.pkg.Func(sel) == nil {
				e = sel // its pointer
			}
			call := c.outer(u, e)
			if call == nil || c.pkg.C(call.Fun) == "" || c.pkg.Releases(c.pkg.C(call.Fun)) || c.forgets(u, call, true) && onlyReads.MatchString(c.pkg.C(call.Fun)) {
				continue
			}
			f, _ := c.pkg.Defined(c.pkg.C(call.Fun))
			if i := slices.Index(call.Args, c.pkg.Dressed(e)); 0 <= i && i < len(f.Keeps) && !f.Keeps[i] && !f.Passes[i] {
				continue // its body takes nothing over
			}
			search := uses.Search{From: call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{v: true}, Made: true}
			all := true
			for _, use := range fate.Uses {
				if use.Role == uses.Frees {
					search.To = use.Node
					all = all && u.Leads(call, nil, use.Node) && u.Find(search) == nil
				}
			}
			if all && fate.Has(uses.Frees) {
				return true
			}
		}
	}
	return false
}

// freedIf reports whether a free is under a condition about another result of the allocation: the other results may say whether
// there is something to free. An error says so as well, and is looked at by the search.
func (c *checker) freedIf(u *uses.Unit, call *ast.CallExpr, fate uses.Fate) bool {
	s, ok := u.Parent(call).(*ast.AssignStmt)
	if !ok {
		return false
	}
	about := func(e ast.Node) bool {
		return e != nil && slices.ContainsFunc(s.Lhs, func(lhs ast.Expr) bool {
			v := c.pkg.ObjectOf(lhs)
			return v != nil && !slices.Contains(fate.Vars, v) && !types.Identical(v.Type(), types.Universe.Lookup("error").Type()) && u.Mentions(e, v)
		})
	}
	for _, use := range slices.Concat(fate.Uses, fate.Inner) {
		if use.Role != uses.Frees {
			continue
		}
		for n := u.Parent(use.Node); n != nil && n != u.Node; n = u.Parent(n) {
			switch n := n.(type) {
			case *ast.IfStmt:
				if about(n.Cond) {
					return true
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && about(n.Tag) {
					return true
				}
			}
		}
	}
	return false
}

// holds reports whether the value of an expression is in it, and not the value itself.
func (c *checker) holds(e ast.Expr) bool {
	t := c.pkg.Info.Types[e].Type
	if t == nil {
		return false
	}
	switch t := t.Underlying().(type) {
	case *types.Slice:
		b, ok := t.Elem().Underlying().(*types.Basic)
		return !ok || b.Info()&types.IsNumeric == 0 || b.Kind() == types.Uintptr // bytes are the memory itself
	case *types.Map, *types.Array, *types.Struct:
		return true
	}
	return false
}

func (c *checker) report(a allocation, category, format string, fix []analysis.SuggestedFix) {
	c.reportAt(a.call, category, fmt.Sprintf(format, a.name), fix)
}

// lostAt reports what a call has given and a return forgets.
func (c *checker) lostAt(call, ret ast.Node, category, what, why string) {
	c.reportAt(call, category, fmt.Sprintf("%s is not freed on the way to the return in line %d%s", what, c.Fset.Position(ret.Pos()).Line, why), nil,
		analysis.RelatedInformation{Pos: ret.Pos(), Message: "it is not freed when the function returns here"})
}

func (c *checker) reportAt(n ast.Node, category, message string, fix []analysis.SuggestedFix, related ...analysis.RelatedInformation) {
	c.Report(analysis.Diagnostic{
		Pos: n.Pos(), End: n.End(), Category: category,
		Message: message, SuggestedFixes: fix, Related: related,
	})
}

// fix returns the fix that defers C.free behind the allocation. There is none where a function of C may keep what it is given.
func (c *checker) fix(u *uses.Unit, a allocation, use uses.Use, fate uses.Fate) []analysis.SuggestedFix {
	file, s := c.pkg.FileOf(a.call.Pos()), u.Statement(use.Node)
	if file == nil || s == nil || u.Loop(a.call) != nil || use.Var == nil || !strings.HasPrefix(a.name, "C.") {
		return nil
	}
	switch s.(type) {
	case *ast.AssignStmt, *ast.DeclStmt:
	default:
		return nil // the variable is of an if or a switch
	}
	if !c.forgetsAll(u, fate, a.name == "C.CString") {
		return nil
	}
	edits, ok := c.knowsFree(u, file, s)
	if !ok {
		return nil
	}
	arg := use.Var.Name()
	if conv, ok := u.Parent(a.call).(*ast.CallExpr); ok && c.pkg.IsConversion(conv) || a.name != "C.malloc" && a.name != "C.CBytes" {
		arg = "unsafe.Pointer(" + arg + ")"
	}
	return []analysis.SuggestedFix{{
		Message: "free it when the function returns",
		TextEdits: append(edits, analysis.TextEdit{
			Pos: s.End(), End: s.End(),
			NewText: []byte(analyzer.Indent(c.Pass, s) + "defer C.free(" + arg + ")"),
		}),
	}}
}
