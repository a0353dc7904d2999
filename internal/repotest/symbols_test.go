package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A symbolTable holds what a set of packages declares: "name", "Type.Method"
// and "Type.Field" below the package's name, which is the last element of its
// directory, "Type>Embedded" of a type of the same package, and all of it once more
// under "".
type symbolTable map[string]map[string]bool

// has reports whether there is a name, or a member that an embedded type has.
func (s symbolTable) has(pkg, name string) bool {
	if s[pkg][name] {
		return true
	}
	typ, member, _ := strings.Cut(name, ".")
	for n := range s[pkg] {
		if embedded, ok := strings.CutPrefix(n, typ+">"); ok && s[pkg][embedded+"."+member] {
			return true
		}
	}
	return false
}

func (s symbolTable) add(pkg, name string) {
	for _, p := range []string{pkg, ""} {
		if s[p] == nil {
			s[p] = map[string]bool{}
		}
		s[p][name] = true
	}
}

// addFile adds what a Go file declares. Its text is read if src is nil.
func (s symbolTable) addFile(t *testing.T, pkg, name string, src any) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	testcall.Must(t, err)
	s.addDecls(pkg, f)
}

// addDecls adds what the file declares.
func (s symbolTable) addDecls(pkg string, f *ast.File) {
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			fn := decl.Name.Name
			if decl.Recv != nil {
				fn = receiver(decl.Recv.List[0].Type) + "." + fn
			}
			s.add(pkg, fn)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						s.add(pkg, id.Name)
					}
				case *ast.TypeSpec:
					s.add(pkg, spec.Name.Name)
					s.addMembers(pkg, spec.Name.Name, spec.Type)
				}
			}
		}
	}
}

// addMembers adds the fields and methods that a type lists.
func (s symbolTable) addMembers(pkg, name string, typ ast.Expr) {
	var list *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return
	}
	for _, f := range list.List {
		if f.Names == nil {
			s.add(pkg, name+">"+receiver(f.Type))
		}
		for _, id := range f.Names {
			s.add(pkg, name+"."+id.Name)
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// ourSymbols returns what the root module declares, tests included, for all
// systems and under all build tags.
func ourSymbols(t *testing.T) symbolTable {
	t.Helper()
	s := symbolTable{}
	for _, name := range files(t) {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			continue
		}
		pkg := path.Base(path.Dir(name))
		if path.Dir(name) == "." {
			pkg = "cheap"
		}
		s.addFile(t, pkg, name, read(t, name))
	}
	return s
}

// standardSymbols returns what the packages of the standard library that the
// documents speak of declare.
func standardSymbols(t *testing.T) symbolTable {
	t.Helper()
	src := filepath.Join(goEnv(t, "GOROOT"), "src")
	s := symbolTable{}
	for _, pkg := range []string{"os", "runtime", "runtime/pprof", "sync", "sync/atomic", "testing", "time", "unsafe", "weak"} {
		dir := filepath.Join(src, filepath.FromSlash(pkg))
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && name != "." {
				return fs.SkipDir
			}
			if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				s.addFile(t, path.Base(pkg), filepath.Join(dir, name), nil)
			}
			return nil
		})
		testcall.Must(t, err)
	}
	return s
}
