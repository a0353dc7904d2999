package cfree

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

//go:embed doc.go
var doc string

// Analyzer reports C memory that is not freed.
var Analyzer = analyzer.New("cfree", doc, run, new(Params), new(Results), new(Releases))

// Params says what a function does with C memory that it is given.
type Params struct {
	// Roles has an entry for each parameter, the receiver first.
	Roles []uses.Role
}

// AFact marks facts.
func (*Params) AFact() {}

func (f *Params) String() string { return fmt.Sprint("params", f.Roles) }

// Results lists the results of a function that are C memory which the caller has to free. The function
// returns those of Beside with an error as well. Those of Lists are lists of such memory, and those of Objects are of libraries of C.
type Results struct{ Index, Beside, Lists, Objects []int }

// AFact marks facts.
func (*Results) AFact() {}

func (f *Results) String() string {
	if len(f.Beside) > 0 {
		return fmt.Sprint("results", f.Index, " beside an error", f.Beside)
	}
	if len(f.Lists) > 0 {
		return fmt.Sprint("results", f.Index, " lists", f.Lists)
	}
	if len(f.Objects) > 0 {
		return fmt.Sprint("results", f.Index, " objects", f.Objects)
	}
	return fmt.Sprint("results", f.Index)
}

type checker struct {
	*analysis.Pass
	pkg     *source.Package
	units   []*uses.Unit
	byFunc  map[*types.Func]*uses.Unit
	params  map[param]uses.Role
	results map[*types.Func][]int
	beside  map[*types.Func][]int // those that come with an error as well
	lists   map[*types.Func][]int
	library map[*types.Func][]int // those that are objects of libraries of C

	freed    map[types.Object][]*uses.Unit    // the functions of the package that free a field
	handed   map[types.Object]bool            // the fields whose memory goes elsewhere
	gets     map[types.Object][]*ast.CallExpr // the calls of C whose results fields get
	childOf  map[*types.Var]birth             // the fields with objects that functions of C have made of those in other fields
	given    bool                             // the package deletes cgo.Handles that C or a caller has given it
	named    map[*types.Func][]ast.Expr
	releases map[*types.Func]bool
	objects  map[*types.TypeName]bool
	released map[*types.Var]bool // fields that methods release

	newNames map[*uses.Unit]map[string]bool // of variables that fixes declare
}

type param struct {
	f     *types.Func
	index int // 0 is the receiver of a method
	inner bool
}

func run(pass *analysis.Pass, pkg *source.Package) {
	if !pkg.Cgo && !concerned(pass) {
		return
	}
	c := &checker{
		Pass: pass, pkg: pkg, units: uses.Units(pkg),
		byFunc: map[*types.Func]*uses.Unit{}, params: map[param]uses.Role{}, results: map[*types.Func][]int{}, beside: map[*types.Func][]int{}, lists: map[*types.Func][]int{}, library: map[*types.Func][]int{},
		releases: map[*types.Func]bool{}, objects: map[*types.TypeName]bool{}, released: map[*types.Var]bool{},
		gets: map[types.Object][]*ast.CallExpr{}, childOf: map[*types.Var]birth{},
		newNames: map[*uses.Unit]map[string]bool{},
	}
	for _, u := range c.units {
		u.Owns, u.Releasable = c.isObject, func(v *types.Var) bool { return v.Pkg() != pkg.Types || c.released[v] }
		if u.Obj != nil {
			c.byFunc[u.Obj] = u
		}
	}
	if pkg.Cgo {
		c.findReleases()
		c.findObjects()
	}
	// A function may return what another one has returned.
	for round := 0; round < 4 && c.findResults(); round++ {
	}
	for _, u := range c.units {
		c.findBeside(u)
	}
	c.exportFacts()
	c.named = map[*types.Func][]ast.Expr{}
	for id, obj := range c.pkg.Info.Uses {
		if f, ok := obj.(*types.Func); ok && c.byFunc[f] != nil {
			e := ast.Expr(id)
			if sel, ok := c.pkg.Parent(id).(*ast.SelectorExpr); ok {
				e = sel
			}
			c.named[f] = append(c.named[f], e)
		}
	}
	c.withEnds(func() {
		c.freedFields()
		for _, u := range c.units {
			c.checkObjects(u)
		}
		c.checkFields()
	})
	for _, u := range c.units {
		for _, a := range c.allocations(u) {
			c.check(u, a)
		}
		c.checkAfter(u)
		c.checkGo(u)
	}
	c.checkFinalizers()
}

// concerned reports whether a package without cgo may have C memory.
func concerned(pass *analysis.Pass) bool {
	return analyzer.Imports(pass.Pkg, analyzer.Cheap) || len(pass.AllObjectFacts()) > 0
}

// An allocation is a call with a result that has to be freed.
type allocation struct {
	call  *ast.CallExpr
	index int    // which result
	name  string // of the function, as it is written

	beside bool // it may come with an error
	inner  bool // it is a list of what has to be freed
	object bool // it is an object of a library of C

	out types.Object // the variable that gets it by its address
}

// allocations returns the allocations of a unit, but not those in literals in it.
func (c *checker) allocations(u *uses.Unit) []allocation {
	var list []allocation
	u.Own(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		if name := c.pkg.C(call.Fun); name != "" {
			if c.pkg.Allocates(name) {
				list = append(list, allocation{call: call, name: "C." + name})
			} else if c.rule(call, 0) != nil {
				list = append(list, allocation{call: call, name: "C." + name, object: true})
			}
			f, _ := c.pkg.Defined(name)
			for i, arg := range call.Args {
				addr, ok := ast.Unparen(arg).(*ast.UnaryExpr)
				if makes := i < len(f.Makes) && f.Makes[i]; ok && u.Local(c.pkg.ObjectOf(addr.X)) && (makes || i == c.pkg.Declared(name).MadeAt()) {
					list = append(list, allocation{call: call, name: "C." + name, out: c.pkg.ObjectOf(addr.X)})
				}
			}
			return
		}
		f := c.pkg.Callee(call)
		if f == nil {
			return
		}
		if fromCheap(c.pkg, f, call) {
			list = append(list, allocation{call: call, name: types.ExprString(call.Fun)})
		}
		if i := releaseOf(f); i >= 0 {
			if s, ok := u.Parent(call).(*ast.AssignStmt); !ok || i >= len(s.Lhs) || types.ExprString(s.Lhs[i]) != "_" {
				return
			}
		}
		results := c.resultsOf(f)
		for _, i := range results.Index {
			list = append(list, allocation{call: call, index: i, name: types.ExprString(call.Fun), beside: slices.Contains(results.Beside, i)})
		}
		for _, i := range results.Objects {
			list = append(list, allocation{call: call, index: i, name: types.ExprString(call.Fun), object: true})
		}
		for _, i := range results.Lists {
			list = append(list, allocation{call: call, index: i, name: types.ExprString(call.Fun), inner: true})
		}
	})
	return list
}

func (c *checker) resultsOf(f *types.Func) (fact Results) {
	if _, ok := c.byFunc[f]; ok {
		return Results{c.results[f], c.beside[f], c.lists[f], c.library[f]}
	}
	c.ImportObjectFact(f, &fact)
	return fact
}

// findResults finds the functions that return what they have allocated, and reports whether there
// are more than before.
func (c *checker) findResults() bool {
	found := false
	for _, u := range c.units {
		if u.Obj == nil {
			continue
		}
		for _, a := range c.allocations(u) {
			if a.out != nil {
				continue
			}
			use := u.Assigned(a.call, a.index, a.inner, c.calls)
			index, to := -1, c.results
			if a.object {
				to = c.library
			}
			switch {
			case use.Role == uses.Leaves && !use.Inner:
				index = use.Index
			case use.Role == uses.Leaves && a.inner:
				index, to = use.Index, c.lists
			case (use.Role == uses.Names || use.Role == uses.Stores) && use.Inner && isList(use.Var):
				if e, ok := use.From.(ast.Expr); ok && c.pkg.Bare(e) != ast.Expr(a.call) {
					continue // it is deeper than the elements
				}
				if fate := u.FateIn(use.Var, true, use.In, c.calls); !fate.Has(uses.Keeps, uses.Frees) && releaseOf(u.Obj) < 0 {
					for _, use := range fate.Inner {
						if use.Role == uses.Leaves {
							index, to = use.Index, c.lists
						}
					}
				}
			case use.Role == uses.Names && !use.Inner:
				if fate := u.Fate(use.Var, false, c.calls); !fate.Has(uses.Keeps) || releaseOf(u.Obj) >= 0 {
					for _, use := range fate.Uses {
						if use.Role == uses.Leaves && !use.Inner {
							index = use.Index
						}
					}
				}
			}
			if index >= 0 && !slices.Contains(to[u.Obj], index) {
				to[u.Obj] = append(to[u.Obj], index)
				found = true
			}
		}
	}
	return found
}

// isList reports whether a variable is a slice.
func isList(v types.Object) bool {
	_, ok := v.Type().Underlying().(*types.Slice)
	return ok
}

// releaseOf returns which result of a function is another function, to free the others with, or -1.
func releaseOf(f *types.Func) int {
	return slices.IndexFunc(slices.Collect(f.Signature().Results().Variables()), func(v *types.Var) bool {
		_, ok := v.Type().Underlying().(*types.Signature)
		return ok
	})
}

func (c *checker) exportFacts() {
	for f, u := range c.byFunc {
		obj := c.pkg.Object(f)
		if obj == nil {
			continue
		}
		if r := c.resultsOf(f); len(r.Index)+len(r.Lists)+len(r.Objects) > 0 {
			slices.Sort(r.Index)
			slices.Sort(r.Objects)
			slices.Sort(r.Beside)
			slices.Sort(r.Lists)
			c.ExportObjectFact(obj, &r)
		}
		if !f.Exported() {
			continue
		}
		if c.releases[f] {
			once, _ := c.once(u)
			c.ExportObjectFact(obj, &Releases{Once: c.sure(once)})
		}
		var roles []uses.Role
		pointers := false
		for i, v := range u.Params() {
			role := uses.Looks
			if v != nil && uses.MayHold(v.Type()) {
				pointers = true
				role = c.roleOf(f, i, false)
			}
			roles = append(roles, role)
		}
		if pointers {
			c.ExportObjectFact(obj, &Params{roles})
		}
	}
}

// harmless are packages whose functions neither free nor keep what they are given.
var harmless = map[string]bool{"fmt": true, "log": true, "log/slog": true, "runtime": true, "runtime/cgo": true, "strings": true, "bytes": true, "strconv": true, "errors": true}

// calls says what a call of a Go function does with an argument; see uses.ArgumentRole.
func (c *checker) calls(u *uses.Unit, call *ast.CallExpr, f *types.Func, arg int, inner bool) uses.Role {
	if f == nil || f.Pkg() == nil {
		return uses.Keeps
	}
	if source.IsFunc(f, "runtime", "AddCleanup") || source.IsFunc(f, "runtime", "SetFinalizer") {
		return uses.Keeps
	}
	if isMethod(f, "runtime/cgo", "Delete") || isMethod(f, "runtime", "Unpin") {
		return uses.Frees
	}
	if harmless[f.Pkg().Path()] {
		return uses.Looks
	}
	if freesForCheap(f, arg) || arg < 0 && c.releasesObject(f) {
		return uses.Frees
	}
	sig := f.Signature()
	if sig.Variadic() && arg >= sig.Params().Len()-1 {
		inner = inner || !call.Ellipsis.IsValid()
		arg = sig.Params().Len() - 1
	}
	if sig.Recv() != nil {
		arg++
	}
	role := c.roleOf(f, arg, inner)
	if _, deferred := u.Parent(call).(*ast.DeferStmt); deferred && role == uses.Looks && len(call.Args) == 1 && c.endsInC(f) {
		return uses.Frees // defer PutContainer(c), whatever its name
	}
	return role
}

// unlocks matches the names of functions that are deferred with an object, and release nothing.
var unlocks = regexp.MustCompile(`(?i)(unlock|print|log|show|dump|stop|end|leave|exit|restore)`)

// endsInC reports whether a function of the package gives a field of its only parameter, an object, to a function of C.
func (c *checker) endsInC(f *types.Func) bool {
	u := c.byFunc[f]
	if u == nil || unlocks.MatchString(f.Name()) {
		return false
	}
	params, found := u.Params(), false
	u.Own(func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && c.pkg.C(call.Fun) != "" && !unlocks.MatchString(c.pkg.C(call.Fun)) {
			found = found || len(params) == 1 && params[0] != nil && c.isObject(params[0].Type()) && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return fieldOf(c.pkg, arg) == types.Object(params[0]) })
		}
	})
	return found
}

func (c *checker) roleOf(f *types.Func, index int, inner bool) uses.Role {
	u := c.byFunc[f]
	if u == nil {
		var fact Params
		if !c.ImportObjectFact(f, &fact) || index < 0 || index >= len(fact.Roles) || inner {
			return uses.Keeps
		}
		return fact.Roles[index]
	}
	key := param{f, index, inner}
	if role, ok := c.params[key]; ok {
		return role
	}
	c.params[key] = uses.Looks // what a recursive call finds
	params := u.Params()
	if index < 0 || index >= len(params) {
		return uses.Keeps
	}
	role := uses.Looks
	if v := params[index]; v != nil {
		fate := u.Fate(v, inner, c.calls)
		switch {
		case fate.Has(uses.Frees):
			role = uses.Frees
		case fate.Has(uses.Keeps):
			role = uses.Keeps
		case fate.Has(uses.Leaves):
			role = uses.Keeps
			inner := slices.ContainsFunc(fate.Uses, func(use uses.Use) bool { return use.Role == uses.Leaves && (use.Inner || use.Index > 0) })
			if len(fate.Inner) == 0 && !inner && f.Signature().Results().Len() == 1 {
				role = uses.Leaves
			}
		}
	}
	c.params[key] = role
	return role
}
