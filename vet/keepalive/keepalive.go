package keepalive

import (
	_ "embed"
	"errors"
	"go/ast"
	"go/types"
	"maps"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/analyzer"
	"github.com/cheapgo/cheap/vet/internal/register"
	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

//go:embed doc.go
var doc string

// Analyzer reports owners that may be collected while C uses what they own.
var Analyzer = analyzer.New("keepalive", doc, run, new(Owner), new(Accessor))

var group count = 10

func init() {
	Analyzer.Flags.Var(&group, "group", "report more than this `number` of calls with the pointer of one method or field as one finding; 0 reports each")
}

// A count is the value of a flag: a number that is not negative.
type count int

func (n *count) String() string { return strconv.Itoa(int(*n)) }

func (n *count) Set(s string) error {
	v, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return errors.New("give a number")
	case v < 0:
		return errors.New("the least is 0")
	}
	*n = count(v)
	return nil
}

// Owner marks types whose values have finalizers or cleanups.
type Owner struct{}

// AFact marks facts.
func (*Owner) AFact() {}

func (*Owner) String() string { return "owner" }

// Accessor marks methods that return a pointer which their receiver owns.
type Accessor struct{}

// AFact marks facts.
func (*Accessor) AFact() {}

func (*Accessor) String() string { return "accessor" }

type checker struct {
	*analysis.Pass
	pkg       *source.Package
	units     []*uses.Unit
	owners    map[*types.TypeName]bool
	cleanups  map[*types.TypeName]bool // owners with cleanups, which have a copy of the pointer
	immortal  map[*types.TypeName]bool // what the package keeps, or a finalizer that never runs
	locks     map[*types.TypeName]bool // owners whose finalizers wait for a lock
	whole     map[*types.TypeName]bool // owners none of whose finalizers is that of a part of another object
	accessors map[*types.Func]bool
	pointers  map[*types.Var]bool // fields that are pointers of C
	handles   map[*types.Var]bool // fields that are owners of package own
	callers   map[*types.Func][]site
	values    map[*types.Func]bool  // functions that are used as values
	spared    map[types.Object]bool // fields of owners that no finalizer looks at
	finals    map[*types.Func]bool  // finalizers
	finalLits map[ast.Node]bool     // the same, as literals
	registers []register.Call
	findings  []finding
}

// A site is a call of a function of the package.
type site struct {
	unit *uses.Unit
	call *ast.CallExpr
}

func run(pass *analysis.Pass, pkg *source.Package) {
	if !pkg.Cgo {
		return
	}
	c := &checker{
		Pass: pass, pkg: pkg, units: uses.Units(pkg),
		owners: map[*types.TypeName]bool{}, cleanups: map[*types.TypeName]bool{}, immortal: map[*types.TypeName]bool{}, locks: map[*types.TypeName]bool{}, whole: map[*types.TypeName]bool{}, accessors: map[*types.Func]bool{}, pointers: map[*types.Var]bool{}, handles: map[*types.Var]bool{}, spared: map[types.Object]bool{},
		callers: map[*types.Func][]site{}, values: map[*types.Func]bool{}, finals: map[*types.Func]bool{}, finalLits: map[ast.Node]bool{},
	}
	c.findFields()
	c.findOwners()
	c.findCalls()
	c.findAccessors()
	c.export()
	for _, u := range c.units {
		c.check(u)
	}
	c.report()
}

// findFields finds the fields whose types are pointers, and may be pointers of C, and the owners
// that are so because of a field: of package own, or one with owner in its name, which keeps the
// owner of a pointer in another field alive.
func (c *checker) findFields() {
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			pointer, parent := false, false
			for _, field := range st.Fields.List {
				pointer = pointer || c.pkg.IsPointer(field.Type)
				_, isBasic := c.pkg.Info.TypeOf(field.Type).(*types.Basic)
				for _, name := range field.Names {
					parent = parent || strings.Contains(strings.ToLower(name.Name), "owner") && !isBasic
				}
				if c.pkg.IsPointer(field.Type) {
					for _, name := range field.Names {
						if v, ok := c.pkg.Info.Defs[name].(*types.Var); ok {
							c.pointers[v] = true
						}
					}
				}
				if own := analyzer.OwnType(c.pkg, field.Type); own == "Handle" || own == "Number" {
					parent, pointer = true, true
					for _, name := range field.Names {
						if v, ok := c.pkg.Info.Defs[name].(*types.Var); ok {
							c.handles[v] = true
						}
					}
				}
			}
			if tn, ok := c.pkg.Info.Defs[spec.Name].(*types.TypeName); ok && parent && pointer {
				c.owners[tn] = true
			}
			return true
		})
	}
}

// findOwners finds the types whose values have finalizers or cleanups.
func (c *checker) findOwners() {
	touched := map[types.Object]bool{}
	defer func() { maps.DeleteFunc(c.spared, func(v types.Object, _ bool) bool { return touched[v] }) }()
	c.registers = register.Calls(c.pkg)
	for _, call := range c.registers {
		if final := c.pkg.Func(call.Func); final != nil {
			c.finals[final] = true
			c.findSecond(final)
		}
		if lit, ok := ast.Unparen(call.Func).(*ast.FuncLit); ok {
			if v := c.pkg.ObjectOf(call.Ptr); call.Unit.Local(v) && call.Unit.Mentions(lit, v) {
				c.immortal[source.TypeName(v.Type())] = true // it never runs
				continue
			}
			c.finalLits[lit] = true
			ast.Inspect(lit, func(n ast.Node) bool {
				if inner, ok := n.(*ast.CallExpr); ok {
					if sel, ok := inner.Fun.(*ast.SelectorExpr); ok && c.pkg.ObjectOf(sel.X) != nil && call.Unit.Within(c.pkg.ObjectOf(sel.X), lit) {
						c.finals[c.pkg.Callee(inner)] = true // a method of the object
					}
				}
				return true
			})
		}
		if name := source.TypeName(c.pkg.Info.TypeOf(call.Ptr)); name != nil && name.Pkg() == c.pkg.Types && !call.OfCopy() {
			if c.isKept(call) {
				c.immortal[name] = true
				continue
			}
			c.locks[name] = c.locks[name] || c.takesLock(call)
			c.whole[name] = (c.whole[name] || !c.owners[name]) && c.isWhole(call)
			c.owners[name] = true
			if call.Arg != nil {
				c.cleanups[name] = true
			}
			if st, ok := name.Type().Underlying().(*types.Struct); ok {
				only := c.finalFields(call)
				for v := range st.Fields() {
					touched[v] = touched[v] || only == nil || only[v]
					c.spared[v] = true
				}
			}
		}
	}
	// An interface that an owner implements may have one.
	scope := c.pkg.Types.Scope()
	for _, name := range scope.Names() {
		tn, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !types.IsInterface(tn.Type()) {
			continue
		}
		i := tn.Type().Underlying().(*types.Interface)
		if i.NumMethods() == 0 {
			continue
		}
		for owner := range c.owners {
			if types.Implements(types.NewPointer(owner.Type()), i) {
				c.owners[tn] = true
			}
		}
	}
}

// isWhole reports whether the object of a finalizer is a local variable that is made there, and so no part of another one.
func (c *checker) isWhole(call register.Call) bool {
	v := c.pkg.ObjectOf(call.Ptr)
	values := c.pkg.Values(v)
	if len(values) != 1 || !call.Unit.Local(v) {
		return false
	}
	switch e := ast.Unparen(values[0]).(type) {
	case *ast.UnaryExpr:
		_, ok := ast.Unparen(e.X).(*ast.CompositeLit)
		return ok
	case *ast.CallExpr:
		return types.ExprString(e.Fun) == "new"
	}
	return false
}

// isKept reports whether the function that registers a finalizer puts the object into a variable of the package, such as a map, or pins
// it with one: it is not collected before something takes it out.
func (c *checker) isKept(call register.Call) (kept bool) {
	global := func(e ast.Expr) bool {
		v := c.pkg.ObjectOf(e)
		return v != nil && v.Parent() == c.pkg.Types.Scope()
	}
	v := c.pkg.ObjectOf(call.Ptr)
	is := func(e ast.Expr) bool {
		if w := c.pkg.Variable(e); w != nil && w != v && len(c.pkg.Values(w)) == 1 {
			e = c.pkg.Values(w)[0] // p := unsafe.Pointer(v)
		}
		return v != nil && c.pkg.Variable(e) == v
	}
	call.Unit.Own(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				index, ok := ast.Unparen(lhs).(*ast.IndexExpr)
				kept = kept || ok && len(n.Lhs) == len(n.Rhs) && global(index.X) && is(n.Rhs[i]) && c.pkg.ObjectOf(n.Rhs[i]) != nil
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			kept = kept || ok && sel.Sel.Name == "Pin" && len(n.Args) == 1 && global(sel.X) && is(n.Args[0])
		}
	})
	return kept
}

// takesLock reports whether a finalizer or a cleanup takes a lock before it frees.
func (c *checker) takesLock(call register.Call) (locks bool) {
	for _, u := range c.units {
		if u.Node == c.pkg.Literal(call.Func) || u.Obj != nil && u.Obj == c.pkg.Func(call.Func) {
			u.Own(func(n ast.Node) {
				sel, ok := n.(*ast.SelectorExpr)
				locks = locks || ok && sel.Sel.Name == "Lock"
			})
		}
	}
	return locks
}

// findSecond finds the functions that a finalizer hands on, such as to a queue, and that nothing else names: they are parts of it.
func (c *checker) findSecond(final *types.Func) {
	for _, u := range c.units {
		if u.Obj == final {
			u.Own(func(n ast.Node) {
				if id, ok := n.(*ast.Ident); ok {
					if f := c.pkg.Func(id); f != nil && !f.Exported() && c.named(f) == 1 {
						c.finals[f] = true
					}
				}
			})
		}
	}
}

// named returns how often a package names a function.
func (c *checker) named(f *types.Func) (n int) {
	for _, obj := range c.pkg.Info.Uses {
		if obj == types.Object(f) {
			n++
		}
	}
	return n
}

// finalFields returns the fields of its object that a finalizer looks at, or nil if it does something else with it, or has what it frees
// from elsewhere.
func (c *checker) finalFields(call register.Call) map[types.Object]bool {
	fields := map[types.Object]bool{}
	for _, u := range c.units {
		if u.Node != ast.Unparen(call.Func) && (u.Obj == nil || u.Obj != c.pkg.Func(call.Func)) || call.Arg != nil {
			continue
		}
		params := u.Params()
		if sel, ok := ast.Unparen(call.Func).(*ast.SelectorExpr); ok && len(params) == 2 && !c.pkg.Info.Types[sel.X].IsType() {
			params = params[1:] // a method of something else
		}
		if len(params) != 1 || params[0] == nil {
			return nil
		}
		for _, id := range u.Idents(params[0]) {
			sel, ok := c.pkg.Parent(id).(*ast.SelectorExpr)
			if !ok || c.pkg.Func(sel) != nil {
				return nil
			}
			fields[c.pkg.Info.Uses[sel.Sel]] = true
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// owner reports whether values of a type, or what they point to, have finalizers or cleanups.
func (c *checker) owner(t types.Type) bool {
	name := source.TypeName(t)
	if name == nil || name.Pkg() == nil {
		return false
	}
	if name.Pkg() == c.pkg.Types {
		return c.owners[name]
	}
	return c.ImportObjectFact(name, new(Owner))
}

// findCalls notes who calls which function of the package.
func (c *checker) findCalls() {
	called := map[ast.Expr]bool{}
	for _, u := range c.units {
		u.Own(func(n ast.Node) {
			if call, ok := n.(*ast.CallExpr); ok {
				if f := c.pkg.Callee(call); f != nil && f.Pkg() == c.pkg.Types {
					c.callers[f] = append(c.callers[f], site{u, call})
					called[ast.Unparen(call.Fun)] = true
				}
			}
		})
	}
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			if f := c.pkg.Func(e); f != nil && !called[e] {
				if sel, ok := c.pkg.Parent(e).(*ast.SelectorExpr); !ok || !called[sel] {
					if decl, ok := c.pkg.Parent(e).(*ast.FuncDecl); !ok || decl.Name != e {
						c.values[f] = true
					}
				}
			}
			return true
		})
	}
}

// findAccessors finds the methods that return a pointer which their receiver owns, and methods of
// interfaces that do so.
func (c *checker) findAccessors() {
	for range 3 { // an accessor may call another one
		for _, u := range c.units {
			d, ok := u.Node.(*ast.FuncDecl)
			if !ok || u.Obj == nil || d.Recv == nil || d.Type.Results == nil || len(d.Type.Results.List) != 1 || d.Type.Params.NumFields() > 0 || c.accessors[u.Obj] {
				continue
			}
			if !c.pkg.IsPointer(d.Type.Results.List[0].Type) {
				continue
			}
			recv := u.Params()
			if len(recv) == 0 || recv[0] == nil {
				continue
			}
			u.Own(func(n ast.Node) {
				ret, ok := n.(*ast.ReturnStmt)
				if !ok || len(ret.Results) != 1 {
					return
				}
				if o := c.ownerOf(u, ret.Results[0], true); o != nil && o.root == recv[0] {
					c.accessors[u.Obj] = true
				}
			})
		}
	}
	for _, f := range c.pkg.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			i, ok := spec.Type.(*ast.InterfaceType)
			if !ok || !c.owner(c.pkg.Info.TypeOf(spec.Name)) {
				return true
			}
			for _, m := range i.Methods.List {
				ft, ok := m.Type.(*ast.FuncType)
				if ok && ft.Params.NumFields() == 0 && ft.Results.NumFields() == 1 && c.pkg.IsPointer(ft.Results.List[0].Type) {
					if f, ok := c.pkg.Info.Defs[m.Names[0]].(*types.Func); ok {
						c.accessors[f] = true
					}
				}
			}
			return true
		})
	}
}

func (c *checker) accessor(f *types.Func) bool {
	if f == nil || f.Pkg() == nil {
		return false
	}
	if f.Pkg() == c.pkg.Types {
		return c.accessors[f]
	}
	return c.ImportObjectFact(f, new(Accessor))
}

func (c *checker) export() {
	for name := range c.owners {
		if obj := c.pkg.TypeObject(name); obj != nil {
			c.ExportObjectFact(obj, new(Owner))
		}
	}
	for f := range c.accessors {
		if obj := c.pkg.Object(f); obj != nil && f.Exported() {
			c.ExportObjectFact(obj, new(Accessor))
		}
	}
}

// kept reports whether the comment of a function says that callers keep its arguments alive.
func kept(d *ast.FuncDecl) bool {
	if d.Doc == nil {
		return false
	}
	for _, line := range d.Doc.List {
		if strings.HasPrefix(line.Text, "//cheapvet:kept") {
			return true
		}
	}
	return false
}
