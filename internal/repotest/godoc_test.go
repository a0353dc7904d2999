package repotest

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// publicPackages are the packages of the root module that others may import.
var publicPackages = []string{".", "calls", "cgoalloc", "cgoparam", "cheaptest", "libc", "own", "pace"}

// longestLine is the number of columns that a line of a comment may have.
const longestLine = 100

// parsePackage returns the documentation of a package and of its tests. The tests
// are those of an external test package.
func parsePackage(t *testing.T, name string) (*token.FileSet, *doc.Package, []*ast.File) {
	t.Helper()
	dir := filepath.Join(root(t), filepath.FromSlash(name))
	context := build.Default
	context.CgoEnabled = true
	p, err := context.ImportDir(dir, build.ImportComment)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	parse := func(names ...[]string) (list []*ast.File) {
		for _, name := range slices.Concat(names...) {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, f)
		}
		return list
	}
	tests := parse(p.XTestGoFiles)
	d, err := doc.NewFromFiles(fset, parse(p.GoFiles, p.CgoFiles), name)
	if err != nil {
		t.Fatal(err)
	}
	return fset, d, tests
}

// TestDocComments requires of each public package: a comment for the package; a
// comment for each exported name that begins with the name; and an example that
// runs, in an external test package.
func TestDocComments(t *testing.T) {
	for _, name := range publicPackages {
		fset, d, tests := parsePackage(t, name)
		if !strings.HasPrefix(d.Doc, "Package "+d.Name+" ") {
			t.Errorf("%s: the comment of the package does not begin with Package %s", name, d.Name)
		}
		missing := func(pos token.Pos, what string) {
			t.Errorf("%s: the comment of %s does not begin with its name", fset.Position(pos), what)
		}
		function := func(f *doc.Func) {
			if !strings.HasPrefix(f.Doc, f.Name+" ") {
				missing(f.Decl.Pos(), f.Name)
			}
		}
		values := func(list []*doc.Value) {
			for _, v := range list {
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
		}
		for _, f := range d.Funcs {
			function(f)
		}
		values(d.Consts)
		values(d.Vars)
		for _, typ := range d.Types {
			begin := regexp.MustCompile(`^((A|An|The) )?` + typ.Name + `\b`)
			if !begin.MatchString(typ.Doc) {
				missing(typ.Decl.Pos(), typ.Name)
			}
			values(typ.Consts)
			values(typ.Vars)
			for _, f := range slices.Concat(typ.Funcs, typ.Methods) {
				function(f)
			}
		}
		runs := func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }
		if !slices.ContainsFunc(doc.Examples(tests...), runs) {
			t.Errorf("%s: there is no example with an output in package %s_test", name, d.Name)
		}
	}
}

// TestDocShowsNoInternals looks for names of internal packages in what go doc
// prints: a reader cannot look them up.
func TestDocShowsNoInternals(t *testing.T) {
	var internal []string
	for name := range imports {
		if strings.Contains(name, "internal/") {
			internal = append(internal, filepath.Base(name))
		}
	}
	re := regexp.MustCompile(`\binternal/|\b(` + strings.Join(internal, "|") + `)\.[A-Z]\w*`)
	for _, name := range publicPackages {
		out := command(t, root(t), []string{"CGO_ENABLED=1"}, "go", "doc", "-all", "./"+name)
		for _, m := range re.FindAllString(out, -1) {
			t.Errorf("go doc of %s shows %s", name, m)
		}
	}
}

// firstScreens are the packages whose documentation says in its first lines what
// the package is for and how to begin. The details follow under headings.
var firstScreens = []string{".", "calls", "libc", "own", "pace"}

// TestDocFirstScreen counts the lines that go doc prints before the first heading.
func TestDocFirstScreen(t *testing.T) {
	const screen = 24
	heading := regexp.MustCompile(`(?m)^(#|func|type|var|const) `)
	for _, name := range firstScreens {
		out := command(t, root(t), []string{"CGO_ENABLED=1"}, "go", "doc", "./"+name)
		at := heading.FindStringIndex(out)
		if at == nil {
			t.Fatalf("go doc of %s prints no heading and no names:\n%s", name, out)
		}
		if n := strings.Count(out[:at[0]], "\n"); n > screen {
			t.Errorf("go doc of %s prints %d lines before its first heading; a screen has %d", name, n, screen)
		}
	}
}

// TestCommentLines looks for lines of comments that were not wrapped.
func TestCommentLines(t *testing.T) {
	textFiles(t, func(name, text string) {
		if filepath.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			line = strings.TrimLeft(line, "\t")
			if n := utf8.RuneCountInString(line); strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "//go:") && n > longestLine {
				t.Errorf("%s:%d: a comment of %d columns; wrap it at %d", name, i+1, n, longestLine)
			}
		}
	})
}
