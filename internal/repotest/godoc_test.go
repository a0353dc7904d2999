package repotest

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// publicPackages are the packages of the root module that others may import, and its drop-ins.
var publicPackages = []string{".", "calls", "cheaptest", "libc", "own", "pace", "x/cgoalloc"}

// A godoc is the documentation of a package, and its tests: those of an external test package, and
// of a drop-in those of the package itself.
type godoc struct {
	*doc.Package
	fset  *token.FileSet
	tests []*ast.File
}

// parsePackage returns the documentation of a package, with cgo.
var parsePackage = kept(func(t *testing.T, name string) godoc {
	t.Helper()
	dir := filepath.Join(root(t), filepath.FromSlash(name))
	context := build.Default
	context.CgoEnabled = true
	p, err := context.ImportDir(dir, build.ImportComment)
	testcall.Must(t, err)
	fset := token.NewFileSet()
	parse := func(names ...[]string) (list []*ast.File) {
		for _, name := range slices.Concat(names...) {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
			testcall.Must(t, err)
			list = append(list, f)
		}
		return list
	}
	tests := parse(p.XTestGoFiles)
	if strings.HasPrefix(name, "x/") {
		// A replace line may give the module another path, under which go mod tidy reads its tests:
		// none imports the package.
		tests = parse(p.TestGoFiles)
	}
	d, err := doc.NewFromFiles(fset, parse(p.GoFiles, p.CgoFiles), name)
	testcall.Must(t, err)
	return godoc{d, fset, tests}
})

// values returns all constants and variables.
func (d godoc) values() []*doc.Value {
	list := slices.Concat(d.Consts, d.Vars)
	for _, typ := range d.Types {
		list = slices.Concat(list, typ.Consts, typ.Vars)
	}
	return list
}

// funcs returns all functions, and with methods those as well.
func (d godoc) funcs(methods bool) []*doc.Func {
	list := slices.Clone(d.Funcs)
	for _, typ := range d.Types {
		list = append(list, typ.Funcs...)
		if methods {
			list = append(list, typ.Methods...)
		}
	}
	return list
}

// text returns all comments and declarations that go doc -all prints.
func (d godoc) text(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(d.Doc)
	add := func(comment string, decl ast.Decl) {
		b.WriteString(comment)
		testcall.Must(t, printer.Fprint(&b, d.fset, decl))
		b.WriteString("\n")
	}
	for _, v := range d.values() {
		add(v.Doc, v.Decl)
	}
	for _, typ := range d.Types {
		add(typ.Doc, typ.Decl)
	}
	for _, f := range d.funcs(true) {
		add(f.Doc, f.Decl)
	}
	return b.String()
}

// TestDocComments requires of each public package: a comment for the package; a
// comment for each exported name that begins with the name; and an example that
// runs, in an external test package where the package can be imported.
func TestDocComments(t *testing.T) {
	t.Parallel()
	for _, name := range publicPackages {
		d := parsePackage(t, name)
		if !strings.HasPrefix(d.Doc, "Package "+d.Name+" ") {
			t.Errorf("%s: the comment of the package does not begin with Package %s", name, d.Name)
		}
		missing := func(pos token.Pos, what string) {
			t.Errorf("%s: the comment of %s does not begin with its name", d.fset.Position(pos), what)
		}
		for _, f := range d.funcs(true) {
			if !strings.HasPrefix(f.Doc, f.Name+" ") {
				missing(f.Decl.Pos(), f.Name)
			}
		}
		for _, v := range d.values() {
			for _, spec := range v.Decl.Specs {
				spec := spec.(*ast.ValueSpec)
				text := spec.Doc.Text() + spec.Comment.Text()
				if len(v.Decl.Specs) == 1 {
					text = v.Doc + text
				}
				for _, id := range spec.Names {
					if ast.IsExported(id.Name) && !strings.HasPrefix(text, id.Name+" ") {
						missing(id.Pos(), id.Name)
					}
				}
			}
		}
		for _, typ := range d.Types {
			begin := regexp.MustCompile(`^((A|An|The) )?` + typ.Name + `\b`)
			if !begin.MatchString(typ.Doc) {
				missing(typ.Decl.Pos(), typ.Name)
			}
		}
		runs := func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }
		if !slices.ContainsFunc(doc.Examples(d.tests...), runs) {
			t.Errorf("%s: there is no example with an output", name)
		}
	}
}

// TestDocShowsNoInternals looks for names of internal packages in what go doc
// prints: a reader cannot look them up.
func TestDocShowsNoInternals(t *testing.T) {
	t.Parallel()
	var internal []string
	for name := range imports {
		if strings.Contains(name, "internal/") && name != "internal/heap" { // a Heap is a heap.Heap, and heap is a variable in examples
			internal = append(internal, filepath.Base(name))
		}
	}
	re := regexp.MustCompile(`\binternal/|\b(` + strings.Join(internal, "|") + `)\.[A-Z]\w*`)
	for _, name := range publicPackages {
		for _, m := range re.FindAllString(parsePackage(t, name).text(t), -1) {
			t.Errorf("go doc of %s shows %s", name, m)
		}
	}
}
