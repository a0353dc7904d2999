package calls_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestWithoutCgo compares the names of the package with those for builds without cgo.
func TestWithoutCgo(t *testing.T) {
	names := map[bool]map[string]bool{false: {}, true: {}} // by whether they are for builds without cgo
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			for _, name := range declared(decl) {
				if ast.IsExported(name) {
					names[file.Name() == "nocgo.go"][name] = true
				}
			}
		}
	}
	for name := range names[false] {
		if !names[true][name] {
			t.Errorf("nocgo.go has no %s: its use would fail to compile without naming the cause", name)
		}
	}
	for name := range names[true] {
		if !names[false][name] {
			t.Errorf("nocgo.go has %s, which the package does not have", name)
		}
	}
}

// declared returns the names of a declaration of a package, but for methods.
func declared(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
