package cfree

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// A release is a call of a function of C that ends what a variable points to.
type release struct {
	call *ast.CallExpr
	name string   // of the function
	at   ast.Node // where the call happens, or is deferred
	late bool     // in a literal that is deferred: the variable is read when the function ends
	over bool     // the function takes the memory over
	said bool     // only a comment says so
	v    types.Object
}

// sure reports whether a function of C ends what it is given, as the table of libraries or its definition says, or one of a cgo.Handle.
func (c *checker) sure(name string) bool {
	f, _ := c.pkg.Defined(name)
	return name == "free" || name == deleteHandle || c.pkg.Ends(name) || slices.Contains(f.Frees, true)
}

// moves reports whether the variable gets a new block from realloc.
func (r release) moves(p *source.Package) bool { return r.v == p.Receiver(p.Dressed(r.call)) }

// ends matches the names of functions of C after which nothing may use what they were given.
var ends = regexp.MustCompile(`(?i)(free|destroy|delete|finalize|dispose|fclose|closedir|_close$)`)

// counts matches the names of functions that may be called once for each reference.
var counts = regexp.MustCompile(`(?i)(ref|release|retain|count|detach|list|all|array|internal|clear)`)

// checkAfter reports variables that are freed twice on a path through a function, and what is used when it is freed.
func (c *checker) checkAfter(u *uses.Unit) {
	list := c.releasesIn(u)
	reported := map[*ast.CallExpr]bool{}
	for i, first := range list {
		writes, plain := c.writes(u, first.v)
		if !plain {
			continue
		}
		for _, second := range list[i+1:] {
			switch {
			case reported[second.call] || !c.sameValue(u, first.v, second.v):
			case c.follows(u, first, second, writes):
				c.reportTwice(first, second)
				reported[second.call] = true
			case c.follows(u, second, first, writes):
				c.reportTwice(second, first)
				reported[second.call] = true
			}
		}
		if loop := u.Loop(first.at); loop != nil && first.call == first.at && !u.Within(first.v, loop) && u.Leads(first.at, writes, first.at) && !first.over && !first.moves(c.pkg) && c.sure(first.name) {
			c.reportTwice(first, first)
			reported[first.call] = true
		}
		if !reported[first.call] && !first.over {
			c.checkUses(u, first, writes)
		}
	}
}

func (c *checker) reportTwice(first, second release) {
	message := fmt.Sprintf("%s is freed twice: line %d frees it as well", second.v.Name(), c.Fset.Position(first.call.Pos()).Line)
	switch {
	case first == second:
		message = fmt.Sprintf("%s is freed again in the next round of the loop", second.v.Name())
	case first.over, second.over:
		over := first
		if second.over {
			over = second
		}
		message = fmt.Sprintf("%s is freed, and C.%s takes it over in line %d", second.v.Name(), over.name, c.Fset.Position(over.call.Pos()).Line)
	}
	c.reportAt(second.call, "twice", message, nil, analysis.RelatedInformation{Pos: first.call.Pos(), Message: "the other free"})
}

// follows reports whether there is a way from one release to another by the same function on which nothing writes to the
// variable. Two functions may have two tasks: C.mutex_destroy(m) and C.free(m), or C.free(name) and C.file_delete(name).
func (c *checker) follows(u *uses.Unit, first, second release, writes []ast.Node) bool {
	if over := first.over || second.over; over && !first.said && !second.said && !c.endsBy(u, first, second) {
		return false
	}
	if first.name != second.name && first.name != "realloc" && !first.over && !second.over || first.over && second.over ||
		(first.said || second.said) && (c.pkg.Ends(first.name) || c.pkg.Ends(second.name)) && first.name != "free" && second.name != "free" {
		return false // what a library says of its objects is more than a comment
	}
	_, deferred := first.at.(*ast.DeferStmt)
	if loop := u.Loop(second.at); u.Loop(first.at) != loop && !(deferred && u.Loop(first.at) == nil && !u.Within(second.v, loop)) {
		return false // the variable, or what it has, may be another one in each round
	}
	search := uses.Search{
		From: first.at, Stop: map[ast.Node]bool{}, Nil: map[types.Object]bool{first.v: true}, To: second.at,
	}
	for _, w := range writes {
		if (first.late || second.late) && w.Pos() > min(first.at.Pos(), second.at.Pos()) {
			return false // the literal frees another value
		}
		search.Stop[w] = true
	}
	if first.over {
		search.Made = true
	} else if result := c.pkg.Receiver(c.pkg.Dressed(first.call)); result != nil { // realloc frees nothing where it returns nil
		search.Nil[result] = true
	}
	if loop := u.Loop(first.at); loop != nil {
		search.Stop[loop] = true
		if first.at.Pos() > second.at.Pos() {
			return false // in the next round
		}
	}
	return u.Find(search) == second.at
}

// again matches the names of functions of C behind which an object that was taken over may be released once more.
var again = regexp.MustCompile(`(?i)(ref|unlink|detach|remove|pop|dup|copy)`)

// endsBy reports whether a defer releases what a library takes over, which nothing else makes good: no other reference, and no function that
// takes it out again.
func (c *checker) endsBy(u *uses.Unit, first, second release) bool {
	_, deferred := first.at.(*ast.DeferStmt)
	return deferred && !slices.ContainsFunc(u.Idents(first.v), func(id *ast.Ident) bool {
		call := c.outer(u, id)
		return call != nil && call != first.call && again.MatchString(c.pkg.C(call.Fun))
	})
}

// releasesIn returns the calls of a unit that free a local variable or a parameter: those that happen in the
// unit, and those that it defers, in a literal as well.
func (c *checker) releasesIn(u *uses.Unit) (list []release) {
	add := func(call *ast.CallExpr, at ast.Node, late bool) {
		name, arg := c.ends(call)
		if v := c.pkg.Variable(arg); name != "" && v != nil && u.Within(v, u.Node) {
			list = append(list, release{call, name, at, late, false, false, v})
		}
		cname := c.pkg.C(call.Fun)
		for i, arg := range call.Args {
			if v := c.pkg.Variable(arg); v != nil && name == "" && u.Local(v) && cname != "" && c.takes(call, cname, i) {
				list = append(list, release{call, cname, at, late, true, !c.pkg.Takes(cname, i), v})
			}
		}
	}
	u.Own(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			at := ast.Node(n)
			switch s := u.Parent(n).(type) {
			case *ast.DeferStmt:
				at = s
			case *ast.GoStmt:
				return
			}
			add(n, at, false)
		case *ast.DeferStmt:
			lit, ok := n.Call.Fun.(*ast.FuncLit)
			if !ok {
				return
			}
			for _, s := range lit.Body.List { // others depend on conditions
				if u.Returns(s) {
					break // what is behind may not happen
				}
				if e, ok := s.(*ast.ExprStmt); ok {
					if call, ok := e.X.(*ast.CallExpr); ok {
						add(call, n, true)
					}
				}
			}
		}
	})
	return list
}

// takes reports whether a call of C takes an argument over: its comment or its definition says so, or it is given C.free for it.
func (c *checker) takes(call *ast.CallExpr, name string, i int) bool {
	return c.pkg.Takes(name, i) || c.pkg.Declared(name).TakesAlways(i) || i > 0 && slices.ContainsFunc(call.Args[i:], func(arg ast.Expr) bool { return c.pkg.C(c.pkg.Bare(arg)) == "free" })
}

// ends returns the function that a call frees its argument with, and the argument. The function may be one of Go that does nothing
// else.
func (c *checker) ends(call *ast.CallExpr) (name string, arg ast.Expr) {
	if name := c.pkg.C(call.Fun); name != "" {
		if name == "realloc" && len(call.Args) == 2 {
			return name, call.Args[0]
		}
		if !c.pkg.Ends(name) && (!ends.MatchString(name) || counts.MatchString(name) || gets.MatchString(name)) || len(call.Args) != 1 || c.pkg.IsConversion(call) {
			return "", nil
		}
		if f, ok := c.pkg.Defined(name); ok && (len(f.Frees) != 1 || !f.Frees[0]) {
			return "", nil // it frees something else, or counts
		}
		return name, call.Args[0]
	}
	f := c.pkg.Callee(call)
	if f == nil || counts.MatchString(f.Name()) {
		return "", nil
	}
	sel, _ := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if isMethod(f, "runtime/cgo", "Delete") && sel != nil {
		return deleteHandle, sel.X
	}
	if u := c.byFunc[f]; u != nil {
		name, field := c.once(u)
		switch {
		case name == "":
		case f.Signature().Recv() != nil && sel != nil && len(call.Args) == 0 && !c.pkg.Info.Types[sel.X].IsType() && c.sure(name):
			return f.FullName(), sel.X
		case f.Signature().Recv() == nil && len(call.Args) == 1 && !field:
			return name, call.Args[0]
		}
		return "", nil
	}
	var fact Releases
	if sel != nil && f.Signature().Recv() != nil && len(call.Args) == 0 && c.ImportObjectFact(f, &fact) && fact.Once {
		return f.FullName(), sel.X
	}
	return "", nil
}

// deleteHandle is the function that ends a cgo.Handle.
const deleteHandle = "Delete"

// once returns the function of C to which a unit passes its only parameter or, with field, a field of that, whatever is there. It is "" if
// the unit may do so only once: it sets the field, or something else gets the parameter.
func (c *checker) once(u *uses.Unit) (name string, field bool) {
	params := u.Params()
	if len(params) != 1 || params[0] == nil {
		return "", false
	}
	var arg ast.Expr
	for _, s := range u.Body.List {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.AssignStmt, *ast.ReturnStmt:
			for n := range ast.Preorder(s) {
				if call, ok := n.(*ast.CallExpr); ok && c.pkg.C(call.Fun) != "" && u.Lit(call.Pos()) == nil {
					n, e := c.ends(call)
					if addr, ok := c.pkg.Bare(e).(*ast.UnaryExpr); ok && addr.Op == token.AND {
						return "", false // which may clear it
					}
					if is := fieldOf(c.pkg, e) == types.Object(params[0]); n != "" && (is || c.pkg.Variable(e) == types.Object(params[0])) {
						name, arg, field = n, c.pkg.Bare(e), is
					}
				}
			}
		}
		if u.Returns(s) {
			break
		}
	}
	for _, id := range u.Idents(params[0]) {
		e := ast.Expr(id)
		sel, ok := u.Parent(id).(*ast.SelectorExpr)
		if ok && c.pkg.Func(sel) == nil {
			e = sel
		}
		call, is := u.Parent(c.pkg.Dressed(e)).(*ast.CallExpr)
		passed := is && call.Fun != e && (c.pkg.C(call.Fun) != "" || source.IsFunc(c.pkg.Callee(call), "runtime", "KeepAlive"))
		if arg == nil || !passed && (e == id || types.ExprString(e) == types.ExprString(arg)) {
			return "", false
		}
	}
	return name, field
}

// writes returns the statements of a unit that give a variable a value. plain is false if others may do so:
// its address is taken, or a literal writes to it.
func (c *checker) writes(u *uses.Unit, v types.Object) (list []ast.Node, plain bool) {
	plain = true
	note := func(n ast.Node, e ast.Expr) {
		if c.pkg.ObjectOf(e) != v {
			return
		}
		if plain = plain && u.Lit(n.Pos()) == nil; plain {
			list = append(list, n)
		}
	}
	ast.Inspect(u.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				note(n, lhs)
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if e != nil {
					note(e, e)                                                                  // the graph has these in front of the loop
					plain = plain && (n.Tok != token.ASSIGN || types.ExprString(e) != v.Name()) // it has no object over a list of C
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				note(n, name)
			}
		case *ast.UnaryExpr:
			if n.Op != token.AND || c.pkg.ObjectOf(n.X) != v {
				break
			}
			if call, ok := u.Parent(n).(*ast.CallExpr); ok && c.pkg.C(call.Fun) != "" && !c.pkg.IsConversion(call) {
				note(call, n.X) // C keeps no pointer to the variable
			} else {
				plain = false
			}
		}
		return plain
	})
	return list, plain
}
