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

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// makesObject matches the names of functions of C whose result somebody has to release.
var makesObject = regexp.MustCompile(`(?i)(open|new|create|alloc|init|parse|load|dup|clone|copy|make|decode|start|connect|begin|prepare)`)

// gets matches the names of functions of C that give what belongs to something else, perhaps.
var gets = regexp.MustCompile(`(^|_)([gG]et|lookup)|[a-zA-Z]Get[A-Z]`)

// checkObjects reports what a function of C has made, where the function releases it, or a library says that it has to be, but not on the
// way to some return; and the same of a cgo.Handle, and of a runtime.Pinner that pins.
func (c *checker) checkObjects(u *uses.Unit) {
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		name := c.pkg.C(call.Fun)
		switch f := c.pkg.Callee(call); {
		case source.IsFunc(f, "runtime/cgo", "NewHandle"):
			c.checkMade(u, call, "cgo.NewHandle")
		case isMethod(f, "runtime", "Pin"):
			if v := c.pkg.ObjectOf(ast.Unparen(call.Fun).(*ast.SelectorExpr).X); u.Local(v) {
				c.checkObject(u, call, "Pin", v, 0)
			}
		case name == "" || c.pkg.IsConversion(call) || c.pkg.Releases(name) && !c.pkg.Listed(name):
		default:
			f, _ := c.pkg.Defined(name)
			same := !f.Calls && slices.Contains(f.Returns, true) // as a cast
			if c.rule(call, 0) != nil || !lends.MatchString(name) && !c.pkg.Declared(name).Borrowed() && name != "realloc" && !same {
				c.checkMade(u, call, "C."+name)
			}
			for i, arg := range call.Args {
				addr, ok := c.pkg.Bare(arg).(*ast.UnaryExpr)
				if !ok || addr.Op != token.AND {
					if v := c.pkg.Variable(arg); v != nil && c.rule(call, i+1) != nil && !c.isAddress(v) {
						c.checkObject(u, call, "C."+name, v, i+1)
					}
					continue
				}
				switch x := ast.Unparen(addr.X).(type) {
				case *ast.Ident:
					c.checkObject(u, call, "C."+name, c.pkg.ObjectOf(x), i+1)
				case *ast.SelectorExpr:
					field, _ := c.pkg.Info.Uses[x.Sel].(*types.Var)
					c.noteChild(call, field)
					if c.rule(call, i+1) != nil {
						c.checkOwner(u, call, "C."+name, c.pkg.ObjectOf(x.X), field, types.ExprString(x))
					}
				}
			}
		}
	})
}

// isAddress reports whether a variable has the address of another one.
func (c *checker) isAddress(v types.Object) bool {
	return slices.ContainsFunc(c.pkg.Values(v), func(e ast.Expr) bool {
		addr, ok := ast.Unparen(e).(*ast.UnaryExpr)
		return ok && addr.Op == token.AND
	})
}

// isMethod reports whether a function is a method of that name of a type of a package.
func isMethod(f *types.Func, path, name string) bool {
	return f != nil && f.Name() == name && f.Pkg() != nil && f.Pkg().Path() == path && f.Signature().Recv() != nil
}

// rule returns what a library says of what a call of C gives, but for memory that the other rules of the analyzer know.
func (c *checker) rule(call *ast.CallExpr, at int) *source.Rule {
	if r := c.pkg.Rule(call, at); r != nil && r.By != nil && !(at == 0 && c.pkg.Allocates(c.pkg.C(call.Fun))) {
		return r
	}
	return nil
}

// checkMade looks at what has the result of a call.
func (c *checker) checkMade(u *uses.Unit, call *ast.CallExpr, name string) {
	use := u.Assigned(call, 0, false, c.calls)
	if r := c.rule(call, 0); r != nil && (use.Role == uses.Drops || use.Role == uses.Looks) && !c.mayTake(call) && !c.runsOnce(u) {
		c.reportAt(call, "dropped", fmt.Sprintf("the result of %s is never released: nothing has it, for C.%s", name, r.By[0]), nil)
	}
	c.noteChild(call, use.Field)
	owned := c.rule(call, 0) != nil || c.pkg.Allocates(c.pkg.C(call.Fun)) || name == "cgo.NewHandle" && !c.given
	switch {
	case use.Role == uses.Names && !use.Inner:
		c.checkObject(u, call, name, use.Var, 0)
	case use.Role == uses.Stores:
		c.gets[use.Field] = append(c.gets[use.Field], call)
		if s, ok := use.Node.(*ast.AssignStmt); ok && owned {
			c.checkOwner(u, call, name, use.Var, use.Field, types.ExprString(s.Lhs[0]))
		}
	case use.Role == uses.Keeps:
		c.gets[use.Field] = append(c.gets[use.Field], call)
		e, _ := use.Node.(ast.Expr)
		if addr, ok := u.Parent(use.Node).(*ast.UnaryExpr); ok {
			e = addr
		}
		if v := c.pkg.Receiver(e); v != nil && use.Field != nil && owned {
			c.checkOwner(u, call, name, v, use.Field, v.Name()+"."+use.Field.Name())
		}
	}
}

// A birth is the call that makes a child, and the field with its parent.
type birth struct {
	call   *ast.CallExpr
	parent *types.Var
}

// noteChild notes the field that a child gets, and that of its parent.
func (c *checker) noteChild(call *ast.CallExpr, field *types.Var) {
	if field != nil && c.makesChild(call) {
		if sel, ok := c.pkg.Bare(call.Args[0]).(*ast.SelectorExpr); ok {
			if parent, ok := c.pkg.Info.Uses[sel.Sel].(*types.Var); ok && parent != field {
				c.childOf[field] = birth{call, parent}
			}
		}
	}
}

// checkObject looks for a return at which what a variable has got from a call is lost, by its address in the argument at, from 1 on.
func (c *checker) checkObject(u *uses.Unit, call *ast.CallExpr, name string, v types.Object, at int) {
	if !u.Local(v) || name == "cgo.NewHandle" && c.given || c.pkg.IsNumber(v) {
		return
	}
	values := slices.DeleteFunc(slices.Clone(c.pkg.Values(v)), func(e ast.Expr) bool { return types.ExprString(e) == "nil" })
	out := len(values) == 0 // it gets its value by its address
	rule := c.rule(call, at)
	block := rule != nil && at > 0 && c.pkg.Variable(call.Args[at-1]) == v // which is freed besides
	if name == "Pin" || block {
		out = true
	} else if others := func(e ast.Expr) bool { _, by := c.pkg.Result(e); return by == "" }; (len(values) > 1 || !out && c.pkg.Bare(values[0]) != ast.Expr(call)) &&
		(rule == nil || at > 0 || slices.ContainsFunc(values, others)) {
		return
	}
	what := "the result of " + name
	switch {
	case out && name == "Pin":
		what = "what " + v.Name() + " has pinned"
	case out:
		what = "what " + name + " gives " + v.Name()
	}
	fate := u.Fate(v, false, c.calls)
	by, isC := strings.CutPrefix(name, "C.")
	search := uses.Search{From: call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{}, Overwrites: map[ast.Node]bool{}, Made: isC && (rule == nil || !rule.Both), Fails: rule != nil && rule.Fails}
	freed, late := false, false
	for _, use := range slices.Concat(fate.Uses, fate.Inner) {
		if use.Role == uses.Writes && len(values) > 1 && !u.Within(call, use.Node) {
			search.Overwrites[use.Node] = true
		}
		if by, ok := use.Node.(*ast.CallExpr); u.Within(use.Node, call) || use.Role == uses.Writes || block && ok && c.pkg.C(by.Fun) == "free" {
			continue
		}
		if use.Node.Pos() < call.Pos() {
			return // a defer, or what has its address
		}
		search.Stop[use.Node] = true
		freed = freed || use.Role == uses.Frees
		late = late || use.Role == uses.Frees && !c.failing(u, use.Node)
	}
	if name == "cgo.NewHandle" && len(search.Stop) == 0 && len(fate.Inner) == 0 && !c.runsOnce(u) {
		c.reportAt(call, "never", what+" is never deleted", nil)
	} else if name == "cgo.NewHandle" && len(u.Idents(v)) > 1 {
		unknown := uses.Search{From: call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{}}
		for _, id := range u.Idents(v)[1:] {
			unknown.Stop[id] = true
		}
		if ret, ok := u.Find(unknown).(*ast.ReturnStmt); ok {
			c.lostAt(call, ret, "object", what, ": nothing else has it there")
			return
		}
	}
	if rule == nil {
		if !freed || c.pkg.Allocates(by) || out && !late {
			return
		}
	} else {
		on := c.handsOn(u, fate, call)
		if len(search.Stop)+len(fate.Inner)+len(on) == 0 && !(c.runsOnce(u) && u.Loop(call) == nil) {
			c.reportAt(call, "object", fmt.Sprintf("%s is never released with C.%s", what, rule.By[0]), nil)
		}
		if len(fate.Inner) > 0 || len(search.Stop) == 0 {
			return
		}
		for _, n := range on {
			search.Stop[n] = true
		}
	}
	c.notNil(&search, fate)
	end := u.Find(search)
	if search.Overwrites[end] {
		c.reportAt(call, "overwritten", fmt.Sprintf("%s is not released before %s gets another value", what, v.Name()), nil,
			analysis.RelatedInformation{Pos: end.Pos(), Message: "another value"})
		return
	}
	ret, ok := end.(*ast.ReturnStmt)
	if !ok || c.failed(u, ret, v) {
		return
	}
	switch fails := c.fails(u, ret); {
	case isC && rule == nil: // only its name says that the function makes something
		ok = freed && fails && makesObject.MatchString(by)
	case rule != nil && freed:
	default:
		ok = fails && (late || rule != nil)
	}
	if !ok {
		return
	}
	c.lostAt(call, ret, "object", what, "")
}

// deletesGiven reports whether a call deletes a cgo.Handle that C or a caller has given the package, as a number or by a pointer. Its type
// is not known where it is made of a number of C.
func (c *checker) deletesGiven(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Delete" || len(call.Args) > 0 {
		return false
	}
	v, _ := c.pkg.ObjectOf(sel.X).(*types.Var)
	x := ast.Unparen(sel.X)
	if list := c.pkg.Values(v); len(list) == 1 {
		x = ast.Unparen(list[0])
	}
	known := isMethod(c.pkg.Callee(call), "runtime/cgo", "Delete")
	switch x := x.(type) {
	case *ast.CallExpr:
		return known && !source.IsFunc(c.pkg.Callee(x), "runtime/cgo", "NewHandle") || isHandle(c.pkg.Info.TypeOf(x.Fun))
	case *ast.StarExpr:
		return known
	}
	return known && v != nil && v.Kind() == types.ParamVar
}

// handsOn returns the calls of functions of C, other than the one that has made an object, that may keep it: they get it for something else,
// and their names say that they keep, or a part goes on.
func (c *checker) handsOn(u *uses.Unit, fate uses.Fate, by *ast.CallExpr) (list []ast.Node) {
	for _, v := range fate.Vars {
		for _, id := range u.Idents(v) {
			call := c.outer(u, id)
			if call == nil || call == by || c.pkg.C(call.Fun) == "" {
				continue
			}
			if e := c.pkg.Dressed(id); call.Args[0] != e && c.mayTake(e) || call.Args[0] == e && c.givesPart(u, call) {
				list = append(list, call)
			}
		}
	}
	return list
}

// mayTake reports whether a function of C that gets an expression may keep it, by its name.
func (c *checker) mayTake(e ast.Expr) bool {
	call, ok := c.pkg.Parent(c.pkg.Dressed(e)).(*ast.CallExpr)
	if !ok {
		return false
	}
	name := c.pkg.C(call.Fun)
	return sends.MatchString(name) || mayKeep.MatchString(name) && !onlyReads.MatchString(name) && !options.MatchString(name)
}

// options matches the names of functions of C that set an option, and leave what they get to their caller. sends matches those that may
// hand on what they get.
var (
	options = regexp.MustCompile(`(?i)setopt`)
	sends   = regexp.MustCompile(`(?i)(message|post|emit|give|transfer|own|_full$)`)
)

// givesPart reports whether the result of a function of C, which may be a part of what it is given, leaves the function or is kept.
func (c *checker) givesPart(u *uses.Unit, call *ast.CallExpr) bool {
	if c.isNumber(u, call) || ofString.MatchString(c.pkg.C(call.Fun)) || c.rule(call, 0) != nil || !c.pkg.Declared(c.pkg.C(call.Fun)).MayPoint() {
		return false
	}
	switch use := u.Assigned(call, 0, false, c.calls); use.Role {
	case uses.Keeps, uses.Leaves, uses.Stores:
		return true
	case uses.Names:
		return u.FateIn(use.Var, use.Inner, use.In, c.calls).Has(uses.Keeps, uses.Leaves)
	}
	return false
}

// failing reports whether a node is in a block that returns an error.
func (c *checker) failing(u *uses.Unit, n ast.Node) bool {
	for ; n != nil && n != u.Body; n = u.Parent(n) {
		if block, ok := n.(*ast.BlockStmt); ok {
			ret, ok := block.List[len(block.List)-1].(*ast.ReturnStmt)
			return ok && (c.fails(u, ret) || u.ReturnsError(ret))
		}
	}
	return false
}

var failName = regexp.MustCompile(`(?i)(err|fail|wrap)`)

// fails reports whether a return statement says that the function has failed: it returns an error on the way out of a block, or nil
// alone.
func (c *checker) fails(u *uses.Unit, ret *ast.ReturnStmt) bool {
	if len(ret.Results) == 0 || c.isError(u, ret) {
		return len(ret.Results) > 0
	}
	if u.Parent(ret) == ast.Node(u.Body) {
		return false
	}
	first, last := ret.Results[0], ret.Results[len(ret.Results)-1]
	if !u.ReturnsError(ret) {
		return len(ret.Results) == 1 && types.ExprString(first) == "nil" && !c.returnsErrors(u)
	}
	if len(ret.Results) > 1 {
		return types.ExprString(first) == "nil"
	}
	call, ok := ast.Unparen(last).(*ast.CallExpr)
	return ok && failName.MatchString(types.ExprString(call.Fun))
}

// returnsErrors reports whether the last result of a unit is an error.
func (c *checker) returnsErrors(u *uses.Unit) bool {
	if u.Type.Results == nil || len(u.Type.Results.List) == 0 {
		return false
	}
	list := u.Type.Results.List
	return types.Identical(c.pkg.Info.TypeOf(list[len(list)-1].Type), types.Universe.Lookup("error").Type())
}

// checkOwner looks for a return of an error that forgets a struct of Go with what a call has made in a field which the package releases.
func (c *checker) checkOwner(u *uses.Unit, call *ast.CallExpr, name string, v types.Object, field *types.Var, text string) {
	if field == nil || len(c.freed[field]) == 0 || !u.Local(v) || len(c.pkg.Values(v)) > 1 || u.Loop(call) != nil {
		return
	}
	for _, value := range c.pkg.Values(v) {
		addr, ok := ast.Unparen(value).(*ast.UnaryExpr)
		if ok {
			value = addr.X
		}
		_, lit := ast.Unparen(value).(*ast.CompositeLit)
		if call, ok := value.(*ast.CallExpr); !lit && !(ok && types.ExprString(call.Fun) == "new") {
			return // others have it
		}
	}
	search := uses.Search{From: call, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{v: true}, NotNil: text, Made: true}
	fate := u.FateIn(v, true, field.Name(), c.calls)
	for _, use := range slices.Concat(fate.Uses, fate.Inner) {
		if use.Node.Pos() < call.Pos() && !u.Within(call, use.Node) {
			return
		}
		search.Stop[use.Node] = true
	}
	if ret, ok := u.Find(search).(*ast.ReturnStmt); ok && c.fails(u, ret) {
		c.lostAt(call, ret, "object", "what "+name+" has made for "+search.NotNil, "")
	}
}

// checks matches the names of functions of Go that say by an error whether C has made something.
var checks = regexp.MustCompile(`(?i)(check|err|exception|valid)`)

// failed reports whether a return is under a condition that compares a variable, or asks whether it is valid: there is nothing to release.
func (c *checker) failed(u *uses.Unit, ret ast.Node, v types.Object) bool {
	found := false
	for n := u.Parent(ret); n != nil && n != u.Node; n = u.Parent(n) {
		s, ok := n.(*ast.IfStmt)
		if !ok {
			continue
		}
		ast.Inspect(s.Cond, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.LOR { // v == nil || status != OK
					x, ok := ast.Unparen(n.X).(*ast.BinaryExpr)
					found = found || ok && types.ExprString(x.Y) == "nil" && c.pkg.Variable(x.X) == v && !u.Mentions(n.Y, v)
				}
				for _, e := range c.pkg.Values(c.pkg.ObjectOf(n.X)) { // err := check(v); err != nil
					call, ok := ast.Unparen(e).(*ast.CallExpr)
					found = found || ok && c.pkg.C(call.Fun) == "" && checks.MatchString(types.ExprString(call.Fun)) && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return c.pkg.Variable(arg) == v })
				}
				if n.Op != token.LAND && n.Op != token.LOR && types.ExprString(n.Y) != "nil" { // the search knows nil
					found = found || c.pkg.Variable(n.X) == v || c.pkg.Variable(n.Y) == v
				}
			case *ast.CallExpr:
				name := c.pkg.C(n.Fun)
				if f := c.pkg.Callee(n); f != nil {
					name = f.Name()
				}
				found = found || name != "" && validName.MatchString(name) && !c.pkg.Listed(name) && u.Mentions(n, v)
			}
			return true
		})
	}
	return found
}
