// Package analyzer has what the analyzers have in common: how they are made, how they report, which
// findings a comment leaves out, and the packages that they know by name.
package analyzer

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/source"
)

// The paths of the packages that analyzers know by name.
const (
	Cheap = "github.com/cheapgo/cheap"
	Own   = Cheap + "/own"
)

// New returns the analyzer of a name. file is the source of the file with the package comment,
// which has the documentation: what it says below "# Analyzer name" and the line "name: summary".
// run looks at a package and reports what it finds, but for what a comment leaves out.
func New(name, file string, run func(pass *analysis.Pass, pkg *source.Package), facts ...analysis.Fact) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:             name,
		Doc:              doc(file, name),
		URL:              "https://github.com/cheapgo/cheap/blob/main/docs/tools.md#cheapvet",
		Requires:         []*analysis.Analyzer{source.Analyzer},
		RunDespiteErrors: true,
		FactTypes:        facts,
		Run: func(pass *analysis.Pass) (any, error) {
			pkg := pass.ResultOf[source.Analyzer].(*source.Package)
			ignore(pass, pkg)
			run(pass, pkg)
			return nil, nil
		},
	}
}

// doc returns the documentation of an analyzer, the summary first.
func doc(file, name string) string {
	_, text, ok := strings.Cut(file, "// # Analyzer "+name+"\n")
	if !ok {
		panic("no documentation of analyzer " + name)
	}
	text, _, _ = strings.Cut(text, "\npackage ")
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "//"), " "))
	}
	return strings.TrimPrefix(strings.TrimSpace(strings.Join(lines, "\n")), name+": ")
}

// Report reports a finding of that kind at a node.
func Report(pass *analysis.Pass, n ast.Node, kind, format string, args ...any) {
	pass.Report(analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Category: kind, Message: fmt.Sprintf(format, args...)})
}

// Imports reports whether a package imports the one of that path.
func Imports(pkg *types.Package, path string) bool {
	for _, p := range pkg.Imports() {
		if p.Path() == path {
			return true
		}
	}
	return false
}

// Declares reports whether the package of that path declares the object. obj may be nil.
func Declares(path string, obj types.Object) bool {
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == path
}

// OwnType returns the name of the type of package own that an expression in the source is, perhaps
// with its argument, or "". The type itself may be invalid, because P of a Handle[P] is a type of C.
func OwnType(pkg *source.Package, e ast.Expr) string {
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	if sel, ok := e.(*ast.SelectorExpr); ok && Declares(Own, pkg.Info.Uses[sel.Sel]) {
		return sel.Sel.Name
	}
	return ""
}
