package analyzer

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/source"
)

const prefix = "//cheapvet:ignore "

// ignore changes pass.Report so that it leaves out what a comment
//
//	//cheapvet:ignore name why
//
// names: at the end of the line or on the line before, in the comment of a function for all of
// it, and before the package clause for a file. Several names have commas between them.
func ignore(pass *analysis.Pass, pkg *source.Package) {
	type span struct{ from, to token.Pos }
	var ignored []span
	for _, f := range pkg.Files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				rest, ok := strings.CutPrefix(c.Text, prefix)
				if !ok {
					continue
				}
				names, _, _ := strings.Cut(rest, " ")
				if !slices.Contains(strings.Split(names, ","), pass.Analyzer.Name) {
					continue
				}
				if c.Pos() < f.Package {
					ignored = append(ignored, span{f.FileStart, f.FileEnd})
					continue
				}
				file := pass.Fset.File(c.Pos())
				line := file.Line(c.Pos())
				s := span{file.LineStart(line), f.FileEnd}
				if line+2 <= file.LineCount() {
					s.to = file.LineStart(line + 2)
				}
				ignored = append(ignored, s)
			}
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Doc != nil {
				for _, s := range ignored {
					if s.from <= d.Doc.End() && d.Doc.Pos() < s.to && s.from >= d.Doc.Pos() {
						ignored = append(ignored, span{d.Pos(), d.End()})
						break
					}
				}
			}
		}
	}
	if ignored == nil {
		return
	}
	report := pass.Report
	pass.Report = func(d analysis.Diagnostic) {
		for _, s := range ignored {
			if s.from <= d.Pos && d.Pos < s.to {
				return
			}
		}
		report(d)
	}
}
