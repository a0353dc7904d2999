package uses

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
)

// A Fate is all that becomes of a value that a variable was given.
type Fate struct {
	Uses  []Use          // Frees, Keeps, Leaves and Writes
	Inner []Use          // the same, of variables that have the value within, or got it from one of these
	Vars  []types.Object // the variables that have the value, the first one first
}

// Has reports whether there is a use with one of the roles.
func (f Fate) Has(roles ...Role) bool {
	return slices.ContainsFunc(slices.Concat(f.Uses, f.Inner), func(use Use) bool { return slices.Contains(roles, use.Role) })
}

// Fate follows the value of a variable, or with inner what is in it, through the variables that
// get it.
func (u *Unit) Fate(v types.Object, inner bool, roles ArgumentRole) Fate {
	return u.FateIn(v, inner, "", roles)
}

// FateIn is Fate for what is in the field of that name. With no name it may be anywhere in the variable.
func (u *Unit) FateIn(v types.Object, inner bool, in string, roles ArgumentRole) Fate {
	type item struct {
		v     types.Object
		inner bool
		in    string
		via   bool // another variable has it within
	}
	var f Fate
	todo, seen := []item{{v, inner, in, false}}, map[item]bool{}
	for len(todo) > 0 {
		it := todo[0]
		todo = todo[1:]
		if seen[it] {
			continue
		}
		seen[it] = true
		f.Vars = append(f.Vars, it.v)
		for _, id := range u.Idents(it.v) {
			use := u.follow(carrier{id, it.inner, it.in}, roles)
			if it.inner && use.Role == Writes {
				continue
			}
			use = u.outside(id, use)
			switch use.Role {
			case Looks, Drops:
			case Names, Stores:
				todo = append(todo, item{use.Var, use.Inner, use.In, it.via || it.inner})
			default:
				if it.inner || it.via && use.Role != Writes {
					f.Inner = append(f.Inner, use)
				} else if use.Role != Writes || it.v == v {
					f.Uses = append(f.Uses, use)
				}
			}
		}
		if it.inner {
			// Elements that are written through a pointer are those of what it points into.
			for _, w := range u.sources(it.v) {
				if u.Local(w) {
					todo = append(todo, item{w, true, "", it.via})
				} else {
					f.Inner = append(f.Inner, Use{Role: Keeps, Node: u.Body})
				}
			}
		}
	}
	return f
}

// Stores returns the statements of u that put the value of a variable into a field or an element of
// a local variable.
func (u *Unit) Stores(v types.Object, roles ArgumentRole) []ast.Node {
	var list []ast.Node
	for _, id := range u.Idents(v) {
		if use := u.Follow(id, false, roles); use.Role == Stores || use.Role == Names && use.Inner {
			list = append(list, use.Node)
		}
	}
	return list
}

// Idents returns the uses of a variable in u, in its function literals as well.
func (u *Unit) Idents(v types.Object) []*ast.Ident {
	var list []*ast.Ident
	ast.Inspect(u.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && u.Info.ObjectOf(id) == v && v != nil {
			list = append(list, id)
		}
		return true
	})
	return list
}

// outside turns a use in a function literal into what it is for u: that of a literal that is
// called or deferred where it is written happens there, and one in any other literal at an
// unknown time.
func (u *Unit) outside(id *ast.Ident, use Use) Use {
	lit := u.Lit(id.Pos())
	if lit == nil || use.Role == Looks || use.Role == Drops || use.Role == Names || use.Role == Stores {
		return use
	}
	if call, ok := u.Parent(lit).(*ast.CallExpr); ok && call.Fun == lit {
		if _, ok := u.Parent(call).(*ast.GoStmt); !ok && use.Role == Frees {
			return Use{Role: Frees, Node: call}
		}
	}
	return Use{Role: Keeps, Node: lit}
}

// newName matches the names of functions of C whose result is no part of what they are given.
var newName = regexp.MustCompile(`(?i)(new|create|copy|dup|clone|alloc|open|make|init)`)

// partOf returns the argument of a call of C that has the result as a part, or nil: the result of
// list_append(list, ...) is a part of list.
func (u *Unit) partOf(call *ast.CallExpr) ast.Expr {
	name := u.C(call.Fun)
	if name == "" || newName.MatchString(name) || u.Allocates(name) || u.IsConversion(call) || len(call.Args) == 0 {
		return nil
	}
	switch t := u.Info.TypeOf(call.Args[0]); t := t.(type) {
	case nil, *types.Pointer:
		return call.Args[0]
	case *types.Basic:
		if t.Kind() == types.Invalid || t.Kind() == types.UnsafePointer {
			return call.Args[0]
		}
	}
	return nil
}

// sources returns the variables from which v was made by conversions and slicing, and those that have
// it as a part in C.
func (u *Unit) sources(v types.Object) []types.Object {
	var list []types.Object
	root := func(e ast.Expr) {
		for {
			switch x := ast.Unparen(e).(type) {
			case *ast.Ident:
				if obj := u.Info.ObjectOf(x); obj != nil && obj != v {
					list = append(list, obj)
				}
				return
			case *ast.SliceExpr:
				e = x.X
			case *ast.UnaryExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.BinaryExpr:
				e = x.X // of an address as a number
			case *ast.SelectorExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.CallExpr:
				switch {
				case u.IsConversion(x) || u.Unsafe(x):
					e = x.Args[0]
				case u.partOf(x) != nil:
					e = u.partOf(x)
				default:
					return
				}
			default:
				return
			}
		}
	}
	u.Own(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, lhs := range n.Lhs {
				if id, ok := lhs.(*ast.Ident); ok && u.Info.ObjectOf(id) == v && (i == 0 || len(n.Lhs) == len(n.Rhs)) {
					root(n.Rhs[i]) // also of x, ok := m[key]
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if i < len(n.Values) && u.Info.Defs[id] == v {
					root(n.Values[i])
				}
			}
		}
	})
	return list
}

// Assigned returns what becomes of the result of a call, with several results of the one with
// the index. With inner that is what is in the result.
func (u *Unit) Assigned(call *ast.CallExpr, index int, inner bool, roles ArgumentRole) Use {
	switch p := u.Parent(call).(type) {
	case *ast.AssignStmt:
		if len(p.Rhs) == 1 && index < len(p.Lhs) {
			return u.assigned(p, p.Lhs[index], carrier{inner: inner})
		}
	case *ast.ValueSpec:
		if len(p.Values) == 1 && index < len(p.Names) {
			return u.assigned(p, p.Names[index], carrier{inner: inner})
		}
	case *ast.ReturnStmt:
		if len(p.Results) == 1 {
			return Use{Role: Leaves, Node: p, Index: index, Inner: inner}
		}
	case *ast.ExprStmt:
		return Use{Role: Drops, Node: p}
	}
	return u.Follow(call, inner, roles)
}
