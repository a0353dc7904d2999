package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// isLower reports whether a file is in a package that only packages of this repository import,
// and in no test.
func isLower(name string) bool {
	return (strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "own/internal/")) && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// TestNoHooks looks for function variables that a lower package calls and a higher one sets. They
// hide that the two import each other: docs/decisions.md. A lower package that has to call a higher
// one has an interface, of which the higher one gives it a value in its file wiring.go. Tests may
// replace a function, such as a clock.
func TestNoHooks(t *testing.T) {
	t.Parallel()
	packages := map[string][]*ast.File{} // the lower ones, by their folders
	called := map[string]bool{}          // functions of the lower ones
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") || slices.Contains(forTests, path.Dir(name)) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
		if err != nil {
			continue // a template of a program
		}
		set := usesOf(f, called)
		for _, v := range set {
			t.Errorf("%s sets the variable %s of another package; that package needs an interface instead", name, v)
		}
		if isLower(name) {
			packages[path.Dir(name)] = append(packages[path.Dir(name)], f)
		}
	}
	for dir, files := range packages {
		for _, f := range keepers(files) {
			name := path.Base(dir) + "." + f
			if called[name] {
				t.Errorf("%s of %s keeps a function in a package variable; it needs an interface instead", f, dir)
			}
		}
	}
}

// usesOf returns the package variables of lower packages that the file assigns to, or stores to by
// a method of package atomic. It adds the functions of these packages that the file uses to called.
func usesOf(f *ast.File, called map[string]bool) (set []string) {
	lower := map[string]bool{}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if p, ok := strings.CutPrefix(p, modulePath+"/"); ok && err == nil && isLower(p+"/x.go") && spec.Name == nil {
			lower[path.Base(p)] = true
		}
	}
	lowers := func(e ast.Expr) string {
		if s, ok := e.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && lower[x.Name] {
				return x.Name + "." + s.Sel.Name
			}
		}
		return ""
	}
	add := func(e ast.Expr) {
		if name := lowers(e); name != "" {
			set = append(set, name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				add(e)
			}
		case *ast.CallExpr:
			called[lowers(n.Fun)] = true
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && isStore(s) {
				add(s.X)
			}
		}
		return true
	})
	return set
}

func isStore(s *ast.SelectorExpr) bool {
	return slices.Contains([]string{"Store", "Swap", "CompareAndSwap"}, s.Sel.Name)
}

// keepers returns the exported functions of a package that store a parameter which is a function,
// or has some as fields, in a package variable.
func keepers(files []*ast.File) (list []string) {
	vars, types := map[string]bool{}, map[string]ast.Expr{}
	for _, f := range files {
		for _, d := range f.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						vars[n.Name] = d.Tok == token.VAR
					}
				case *ast.TypeSpec:
					types[s.Name.Name] = s.Type
				}
			}
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Body != nil && d.Name.IsExported() && keeps(d, vars, types) {
				list = append(list, d.Name.Name)
			}
		}
	}
	return list
}

// keeps reports whether a function stores such a parameter. vars and types are what the package
// declares.
func keeps(d *ast.FuncDecl, vars map[string]bool, types map[string]ast.Expr) (found bool) {
	params := map[string]bool{}
	for _, p := range d.Type.Params.List {
		for _, n := range p.Names {
			params[n.Name] = hasFunc(p.Type, types)
		}
	}
	given := func(list ...ast.Expr) bool {
		return slices.ContainsFunc(list, func(e ast.Expr) (is bool) {
			ast.Inspect(e, func(n ast.Node) bool {
				x, ok := n.(*ast.Ident)
				is = is || ok && params[x.Name]
				return true
			})
			return is
		})
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			found = found || slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return vars[rootOf(e)] }) && given(n.Rhs...)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && isStore(s) {
				found = found || vars[rootOf(s.X)] && given(n.Args...)
			}
		}
		return true
	})
	return found
}

// hasFunc reports whether a type is that of a function, or of a struct with functions, or of a
// pointer to one.
func hasFunc(e ast.Expr, types map[string]ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncType:
		return true
	case *ast.StarExpr:
		return hasFunc(e.X, types)
	case *ast.Ellipsis:
		return hasFunc(e.Elt, types)
	case *ast.Ident:
		switch named := types[e.Name].(type) {
		case *ast.FuncType:
			return true
		case *ast.StructType:
			return slices.ContainsFunc(named.Fields.List, func(f *ast.Field) bool {
				_, is := f.Type.(*ast.FuncType)
				return is
			})
		}
	}
	return false
}

// rootOf returns the variable of which e is a field or an element.
func rootOf(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return ""
		}
	}
}
