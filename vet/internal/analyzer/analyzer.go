// Package analyzer has what the analyzers have in common: how they are made, how they report, which
// findings a comment leaves out, and the packages that they know by name.
package analyzer

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
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
			report, found := pass.Report, []analysis.Diagnostic(nil)
			pass.Report = func(d analysis.Diagnostic) { found = append(found, d) }
			run(pass, pkg)
			for _, d := range grouped(pass, found) {
				report(d)
			}
			return nil, nil
		},
	}
}

// ManyAlike is how many findings with the same message in a file are reported one by one. More have been written by a generator.
var ManyAlike = 50

// grouped returns findings, many alike as one, which has the fixes of all.
func grouped(pass *analysis.Pass, found []analysis.Diagnostic) []analysis.Diagnostic {
	by := map[string][]analysis.Diagnostic{}
	key := func(d analysis.Diagnostic) string {
		return fmt.Sprint(pass.Fset.PositionFor(d.Pos, false).Filename, d.Category, d.Message, len(d.SuggestedFixes) > 0)
	}
	for _, d := range found {
		by[key(d)] = append(by[key(d)], d)
	}
	var list []analysis.Diagnostic
	for _, d := range found {
		same := by[key(d)]
		switch {
		case len(same) <= ManyAlike:
			list = append(list, d)
		case d.Pos == same[0].Pos:
			d.Message = fmt.Sprintf("%s, and so in %d more places of this file", d.Message, len(same)-1)
			if len(d.SuggestedFixes) > 0 {
				fix := analysis.SuggestedFix{Message: d.SuggestedFixes[0].Message + ", in all places"}
				seen := map[string]bool{}
				for _, other := range same {
					for _, e := range other.SuggestedFixes[0].TextEdits {
						if id := fmt.Sprintf("%d %d %s", e.Pos, e.End, e.NewText); !seen[id] { // such as an import
							seen[id] = true
							fix.TextEdits = append(fix.TextEdits, e)
						}
					}
				}
				d.SuggestedFixes = []analysis.SuggestedFix{fix}
			}
			list = append(list, d)
		}
	}
	return list
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

// Indent returns a break and what stands in front of a statement in its line, or tabs as gofmt writes them.
func Indent(pass *analysis.Pass, n ast.Node) string {
	pos := pass.Fset.PositionFor(n.Pos(), false)
	start := pos.Offset - pos.Column + 1
	if text, err := os.ReadFile(pos.Filename); err == nil && pos.Offset <= len(text) {
		if prefix := string(text[start:pos.Offset]); strings.TrimSpace(prefix) == "" {
			return "\n" + prefix
		}
	}
	return "\n" + strings.Repeat("\t", pos.Column-1)
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
