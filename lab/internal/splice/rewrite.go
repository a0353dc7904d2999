package splice

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
)

// Supported returns nil if the runtime of an installation can be changed, and an
// [Unmatched] error if the change was not made for it.
func Supported(goroot string) error {
	_, _, err := rewrite(goroot)
	return err
}

// rewrite returns the file of an installation that is changed, and its changed
// text.
func rewrite(goroot string) (path string, text []byte, err error) {
	digests, err := declarations(goroot)
	if err != nil {
		return "", nil, err
	}
	if err := check(digests); err != nil {
		return "", nil, err
	}
	path = filepath.Join(goroot, "src", "runtime", "mheap.go")
	old, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	text, err = rewriteText(old)
	return path, text, err
}

// rewriteText changes the text of the file with the lists.
func rewriteText(old []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "mheap.go", old, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	r := rewriter{fset: fset, done: make(map[string]int)}
	for _, decl := range file.Decls {
		for name, node := range named(decl) {
			r.declaration(name, node)
		}
	}
	for _, name := range []string{"mspan", "(*mspan).init", "(*mspan).specialFindSplicePoint", "newSpecialsIter"} {
		if r.done[name] != 1 {
			return nil, unmatchedf("has no %s as the change expects it in mheap.go", name)
		}
	}
	return append(r.apply(old), mark...), nil
}

// A rewriter collects edits of one file.
type rewriter struct {
	fset  *token.FileSet
	edits []edit
	done  map[string]int // how many, by declaration
}

// An edit replaces the bytes from begin to end by a text.
type edit struct {
	begin, end int
	text       string
}

// replace replaces a part of a declaration by a text.
func (r *rewriter) replace(name string, from, to token.Pos, text string) {
	file := r.fset.File(from)
	r.edits = append(r.edits, edit{file.Offset(from), file.Offset(to), text})
	r.done[name]++
}

// insert inserts a text into a declaration.
func (r *rewriter) insert(name string, before token.Pos, text string) {
	r.replace(name, before, before, text)
}

// declaration edits a declaration, if it is one of those to be edited.
func (r *rewriter) declaration(name string, node ast.Node) {
	switch name {
	case "mspan":
		if head := headField(node); head != nil {
			r.insert(name, head.Pos(), field+"\n\t")
		}
	case "(*mspan).init":
		if emptied := emptying(node); emptied != nil {
			r.insert(name, emptied.Pos(), forget+"\n\t")
		}
	case "(*mspan).specialFindSplicePoint":
		r.replace(name, node.Pos(), node.End(), walk)
	case "newSpecialsIter":
		r.insert(name, node.(*ast.FuncDecl).Body.Lbrace+1, "\n\t"+forget)
	}
}

// The texts that are inserted into the runtime.
const (
	// field is guarded as the head of the list is. Like the head, it points outside
	// of the heap, and needs no write barrier.
	field = "specialPassed *special // in specials, or nil"

	// forget is for a span that is reused, and for its sweep.
	forget = "span.specialPassed = nil"

	// walk begins behind the remembered special, if that is before the wanted place.
	// It remembers a special of a lower offset, not only one before the place: the
	// kinds of one object's specials are looked up in any order, and all of them
	// need the same beginning.
	walk = `func (span *mspan) specialFindSplicePoint(offset uintptr, kind byte) (**special, bool) {
	iter := &span.specials
	passed := span.specialPassed
	if passed != nil && passed.offset < offset {
		iter = &passed.next
	} else {
		passed = nil
	}
	found := false
	for {
		s := *iter
		if s == nil {
			break
		}
		if offset == s.offset && kind == s.kind {
			found = true
			break
		}
		if offset < s.offset || (offset == s.offset && kind < s.kind) {
			break
		}
		if s.offset < offset {
			passed = s
		}
		iter = &s.next
	}
	span.specialPassed = passed
	return iter, found
}`

	// mark is for built.Changed.
	mark = `
//go:linkname specialPassedMark github.com/cheapgo/cheap/lab/internal/splice/built.changed
var specialPassedMark = true
`
)

// headField returns the field of a struct that is the head of the list, nil if there
// is none.
func headField(node ast.Node) *ast.Field {
	structure, ok := node.(*ast.TypeSpec).Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range structure.Fields.List {
		if len(field.Names) == 1 && field.Names[0].Name == "specials" && isPointerTo(field.Type, "special") {
			return field
		}
	}
	return nil
}

func isPointerTo(t ast.Expr, name string) bool {
	star, ok := t.(*ast.StarExpr)
	return ok && isName(star.X, name)
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// emptying returns the statement span.specials = nil of a function, nil if it has
// none.
func emptying(node ast.Node) ast.Stmt {
	for _, statement := range node.(*ast.FuncDecl).Body.List {
		set, ok := statement.(*ast.AssignStmt)
		if !ok || set.Tok != token.ASSIGN || len(set.Lhs) != 1 || len(set.Rhs) != 1 {
			continue
		}
		to, ok := set.Lhs[0].(*ast.SelectorExpr)
		if ok && isName(to.X, "span") && to.Sel.Name == "specials" && isName(set.Rhs[0], "nil") {
			return statement
		}
	}
	return nil
}

// apply returns the text with the edits.
func (r *rewriter) apply(old []byte) []byte {
	slices.SortFunc(r.edits, func(a, b edit) int { return a.begin - b.begin })
	var text []byte
	from := 0
	for _, e := range r.edits {
		text = append(append(text, old[from:e.begin]...), e.text...)
		from = e.end
	}
	return append(text, old[from:]...)
}
