package cfree

import (
	"go/ast"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/register"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// An object is a value of a type in Go with a method that releases what a function of C has made,
// such as a Mat with Close. If the type has no finalizer and no cleanup, the method must be called.

// Releases marks methods that release what their receiver has got from C. Once says that a method does nothing else, so that it
// must not be called twice.
type Releases struct{ Once bool }

// AFact marks facts.
func (*Releases) AFact() {}

func (*Releases) String() string { return "releases" }

var _ analysis.Fact = new(Releases)

// findReleases finds the methods that release what their receiver has got from C, and the types
// that have one.
func (c *checker) findReleases() {
	finalized := map[*types.TypeName]bool{}
	for _, call := range register.Calls(c.pkg) {
		if name := source.TypeName(c.pkg.Info.TypeOf(call.Ptr)); name != nil {
			finalized[name] = true
		}
	}
	for more := true; more; {
		more = false
		for f, u := range c.byFunc {
			if c.releases[f] || f.Signature().Recv() == nil || f.Signature().Params().Len() > 0 {
				continue
			}
			name := source.TypeName(f.Signature().Recv().Type())
			if name == nil || finalized[name] || !c.releasesReceiver(u) {
				continue
			}
			c.releases[f], more = true, true
			c.objects[name] = true
		}
	}
}

// releasesReceiver reports whether a method passes a field of its receiver to a function of C that
// releases it, or calls a method that does.
func (c *checker) releasesReceiver(u *uses.Unit) bool {
	params := u.Params()
	if len(params) == 0 || params[0] == nil {
		return false
	}
	found := false
	ast.Inspect(u.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if name := c.pkg.C(call.Fun); name != "" && c.pkg.Releases(name) && !c.pkg.IsConversion(call) {
			for _, arg := range call.Args {
				if fieldOf(c.pkg, arg) == params[0] {
					found = true
					ast.Inspect(arg, func(n ast.Node) bool {
						if sel, ok := n.(*ast.SelectorExpr); ok {
							if v, ok := c.pkg.Info.Uses[sel.Sel].(*types.Var); ok {
								c.released[v.Origin()] = true
							}
						}
						return true
					})
				}
			}
		}
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && c.releases[c.pkg.Callee(call)] {
			found = found || c.pkg.ObjectOf(sel.X) == params[0]
		}
		return true
	})
	return found
}

// fieldOf returns the variable x if the expression is x.f, perhaps converted, or nil.
func fieldOf(p *source.Package, e ast.Expr) types.Object {
	for {
		switch x := p.Bare(e).(type) {
		case *ast.UnaryExpr:
			e = x.X
		case *ast.SelectorExpr:
			return p.ObjectOf(x.X)
		default:
			return nil
		}
	}
}

// lends matches the names of functions of C whose result belongs to something else.
var lends = regexp.MustCompile(`(?i)(borrow|peek|parent|(^|_)current|(^|_)(set|add)_|^initscr$|_at$|_data$|_ref$|_key$|_value$|(^|_)(first|last|nth)$)`)

// owns matches the names of fields that say that an object has to be released.
var owns = regexp.MustCompile(`(?i)own`)

// findObjects finds the functions that return an object which they have made: a literal, or what
// another function of the package makes of what a function of C has returned.
func (c *checker) findObjects() {
	for _, u := range c.units {
		if u.Obj == nil {
			continue
		}
		results := u.Obj.Signature().Results()
		if results.Len() == 0 || !c.isObject(results.At(0).Type()) {
			continue
		}
		u.Own(func(n ast.Node) {
			ret, ok := n.(*ast.ReturnStmt)
			if !ok || len(c.results[u.Obj]) > 0 {
				return
			}
			var result ast.Expr
			if len(ret.Results) > 0 {
				result = ret.Results[0]
			} else if names := u.Type.Results.List[0].Names; len(names) > 0 {
				result = names[0]
			}
			if v := c.pkg.ObjectOf(result); u.Local(v) && u.Fate(v, false, c.calls).Has(uses.Keeps) {
				return // something else has it as well, such as a cleanup of a test
			}
			if result != nil && c.wraps(u, result, 0) {
				c.results[u.Obj] = []int{0}
			}
		})
	}
}

// isObject reports whether a type, or what it points to, has a method that releases.
func (c *checker) isObject(t types.Type) bool {
	name := source.TypeName(t)
	if name == nil || name.Pkg() == c.pkg.Types {
		return c.objects[name]
	}
	named, ok := name.Type().(*types.Named)
	if !ok {
		return false
	}
	for m := range named.Methods() {
		if c.releasesObject(m) {
			return true
		}
	}
	return false
}

// wraps reports whether an expression is an object around what a function of C has made.
func (c *checker) wraps(u *uses.Unit, e ast.Expr, depth int) bool {
	var parts []ast.Expr
	switch x := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return c.wraps(u, x.X, depth)
	case *ast.CompositeLit:
		parts = x.Elts
	case *ast.CallExpr:
		if f := c.pkg.Callee(x); f == nil || f.Pkg() != c.pkg.Types || f.Signature().Recv() != nil {
			return false
		}
		parts = x.Args
	case *ast.Ident:
		for _, def := range c.definitions(u, c.pkg.ObjectOf(x)) {
			if depth < 3 && c.wraps(u, def, depth+1) {
				return true
			}
		}
		return false
	}
	for _, part := range parts {
		key := ""
		if kv, ok := part.(*ast.KeyValueExpr); ok {
			key, part = types.ExprString(kv.Key), kv.Value
		}
		switch id, _ := part.(*ast.Ident); {
		case id == nil:
		case id.Name == "true" && !owns.MatchString(key), id.Name == "false" && owns.MatchString(key):
			return false // a mark, such as freed: true, or owner: false
		}
	}
	for _, part := range parts {
		if kv, ok := part.(*ast.KeyValueExpr); ok {
			part = kv.Value
		}
		if id, ok := c.pkg.Bare(part).(*ast.Ident); ok {
			if defs := c.definitions(u, c.pkg.ObjectOf(id)); len(defs) == 1 {
				part = defs[0]
			}
		}
		if _, name := c.pkg.Result(part); name != "" && !lends.MatchString(name) {
			if f, _ := c.pkg.Defined(name); f.News || !gets.MatchString(name) {
				return true
			}
		}
	}
	return false
}

// definitions returns what a local variable, or a result with a name, is given.
func (c *checker) definitions(u *uses.Unit, v types.Object) []ast.Expr {
	if !u.Local(v) && !u.IsResult(v) {
		return nil
	}
	return c.pkg.Given(v)
}

// releasesObject reports whether a method releases its receiver.
func (c *checker) releasesObject(f *types.Func) bool {
	return c.releases[f] || f.Pkg() != nil && f.Pkg() != c.pkg.Types && c.ImportObjectFact(f, new(Releases))
}
