package cfree

import (
	"go/ast"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/internal/source"
	"github.com/cheapgo/cheap/vet/internal/uses"
)

// knowsFree returns the edits of a file after which C.free and unsafe.Pointer mean at s what they should. ok is false if there are
// none.
func (c *checker) knowsFree(u *uses.Unit, file *ast.File, s ast.Stmt) (edits []analysis.TextEdit, ok bool) {
	if !u.Imported(s, "unsafe", "unsafe") || !u.Imported(s, "C", "C") {
		return nil, false
	}
	decl, spec := importC(file)
	if decl == nil {
		return nil, false
	}
	if !c.hasFree(file) {
		doc := spec.Doc
		if doc == nil {
			doc = decl.Doc
		}
		if doc == nil {
			return nil, false
		}
		at, text, ok := c.behind(doc.List[len(doc.List)-1])
		if !ok {
			return nil, false
		}
		edits = append(edits, analysis.TextEdit{Pos: at, End: at, NewText: []byte(text)})
	}
	if !source.Imports(file, "unsafe") {
		at, text := decl.End(), "\n\nimport \"unsafe\""
		if decl.Lparen.IsValid() {
			at, text = spec.End(), "\n\t\"unsafe\""
		}
		edits = append(edits, analysis.TextEdit{Pos: at, End: at, NewText: []byte(text)})
	}
	return edits, true
}

// behind returns where a line may be put at the end of a comment with C code, and the line. Above the code it could come before a
// macro that headers need.
func (c *checker) behind(comment *ast.Comment) (at token.Pos, text string, ok bool) {
	const line = "#include <stdlib.h>"
	if strings.HasPrefix(comment.Text, "//") {
		return comment.End(), "\n// " + line, !strings.HasSuffix(comment.Text, "\\")
	}
	// A comment has no carriage returns in the tree, and so may end elsewhere in the file.
	file := c.Fset.File(comment.Pos())
	src, err := c.ReadFile(file.Name())
	if err != nil { // a driver that knows only what cgo has made of the file
		src, err = os.ReadFile(file.Name())
	}
	end := file.Offset(comment.End())
	if err != nil || end > len(src) || string(src[end-len("*/"):end]) != "*/" {
		return 0, "", false
	}
	text = "\n" + line + "\n"
	body := strings.TrimSuffix(comment.Text, "*/")
	if i := strings.LastIndexByte(body, '\n'); i >= 0 && strings.TrimSpace(body[i:]) == "" {
		text = line + body[i:] // as far to the right as the end
	}
	return comment.End() - token.Pos(len("*/")), text, true
}

// importC returns the import of C with its comment. Both are nil if the file does not import C.
func importC(file *ast.File) (*ast.GenDecl, *ast.ImportSpec) {
	for _, decl := range file.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok || decl.Tok != token.IMPORT {
			continue
		}
		for _, spec := range decl.Specs {
			if spec := spec.(*ast.ImportSpec); spec.Path.Value == `"C"` && spec.Name == nil {
				return decl, spec
			}
		}
	}
	return nil, nil
}

// hasFree reports whether a file knows C.free: it includes its header, or uses C.free.
func (c *checker) hasFree(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, comment := range group.List {
			if strings.Contains(comment.Text, "stdlib.h") && group.End() < f.Imports[len(f.Imports)-1].End() {
				return true
			}
		}
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "free" && c.pkg.C(sel) != "" {
			found = true
		}
		return !found
	})
	return found
}
