package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestFacadeTypes looks for assertions that a value of any type is a Heap or a Local of package cheap,
// in the packages of the root module. What is stored there is a Heap or a Local of package heap, of
// which such an assertion is false. An Allocator that a caller has passed may be one of package cheap.
func TestFacadeTypes(t *testing.T) {
	t.Parallel()
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") || path.Dir(name) == "internal/heap" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
		if err != nil {
			continue // a template of a program
		}
		for _, of := range facadeAssertions(f, path.Dir(name) == ".") {
			t.Errorf("%s asserts that %s is a Heap or a Local; what is stored is one of package heap", name, of)
		}
	}
}

// facadeAssertions returns what is asserted to be a *Heap or a *Local, except for parameters that
// are an Allocator.
func facadeAssertions(f *ast.File, inside bool) (found []string) {
	for _, d := range f.Decls {
		allocators := map[string]bool{}
		if fn, ok := d.(*ast.FuncDecl); ok {
			for _, p := range fn.Type.Params.List {
				for _, n := range p.Names {
					allocators[n.Name] = isNamed(p.Type, inside, "Allocator")
				}
			}
		}
		note := func(x ast.Expr, typ ast.Expr) {
			star, ok := typ.(*ast.StarExpr)
			if id, isName := x.(*ast.Ident); ok && isNamed(star.X, inside, "Heap", "Local") && !(isName && allocators[id.Name]) {
				found = append(found, types.ExprString(x))
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				note(n.X, n.Type)
			case *ast.TypeSwitchStmt:
				var x ast.Expr
				switch e := n.Assign.(type) {
				case *ast.ExprStmt:
					x = e.X.(*ast.TypeAssertExpr).X
				case *ast.AssignStmt:
					x = e.Rhs[0].(*ast.TypeAssertExpr).X
				}
				for _, c := range n.Body.List {
					for _, typ := range c.(*ast.CaseClause).List {
						note(x, typ)
					}
				}
			}
			return true
		})
	}
	return found
}

// isNamed reports whether an expression is one of the names in package cheap, inside of which it
// stands.
func isNamed(x ast.Expr, inside bool, names ...string) bool {
	if sel, ok := x.(*ast.SelectorExpr); ok {
		of, ok := sel.X.(*ast.Ident)
		return ok && of.Name == "cheap" && isNamed(sel.Sel, true, names...)
	}
	id, ok := x.(*ast.Ident)
	return ok && inside && slices.Contains(names, id.Name)
}

// TestFacadeAssertions has facadeAssertions find each kind, and let an Allocator pass.
func TestFacadeAssertions(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func _(a Allocator, v any) {
	_ = a.(*Heap)
	_ = v.(*Heap)
	_ = v.(*cheap.Local)
	switch v.(type) { case int, *Heap: }
	switch a := a.(type) { case *Heap: _ = a }
	switch w := v.(type) { case *Local: _ = w }
	_ = v.(*heap.Heap)
}`, parser.SkipObjectResolution)
	testcall.Must(t, err)
	if found := facadeAssertions(f, true); len(found) != 4 {
		t.Errorf("found: %v", found)
	}
}
