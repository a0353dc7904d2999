package vettest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

const source = `package p

var a = 1 // want "found"
var b = 2
var c = 3 // want "found" fact:"makes"
var d = 4 // want found
var e = 5 // want "another"
`

// What is reported and not wanted, what is wanted and not reported, and what is no pattern must
// each be told.
func TestCompare(t *testing.T) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	act := &checker.Action{Package: &packages.Package{Fset: fset, Syntax: []*ast.File{f}}}
	for _, d := range f.Decls {
		act.Diagnostics = append(act.Diagnostics, analysis.Diagnostic{Pos: d.Pos(), Message: "it is found"})
	}
	got := compare(act)
	slices.Sort(got)
	want := []string{
		"p.go:4: not wanted:  it is found",
		"p.go:5: missing: fact `makes`",
		"p.go:6: not wanted:  it is found",
		"p.go:6:11: in a comment want: no colon behind found",
		"p.go:7: missing:  `another`",
		"p.go:7: not wanted:  it is found",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
