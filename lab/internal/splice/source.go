package splice

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Unmatched error says that the change was not made for a runtime.
type Unmatched struct {
	Reason string
}

func (e *Unmatched) Error() string { return "the installed Go runtime " + e.Reason }

func unmatchedf(format string, args ...any) error {
	return &Unmatched{fmt.Sprintf(format, args...)}
}

// listNames are identifiers of the runtime. A declaration without any of them cannot
// access a span's list of specials.
var listNames = map[string]bool{
	"specials":               true, // the head, a field of mspan
	"specialFindSplicePoint": true,
	"specialsIter":           true,
	"newSpecialsIter":        true,
	"unlinkAndNext":          true,
}

// byEdit are the declarations whose edits find what they need in the text, or fail.
// Other parts of these declarations do not matter.
var byEdit = map[string]bool{"mspan": true, "(*mspan).init": true}

// declarations returns, by name, a digest of each declaration of package runtime that
// uses the lists, and of the type of their elements. They are those of all systems,
// built or not.
func declarations(goroot string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(goroot, "src", "runtime", "*.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no source of Go's runtime in %s", filepath.Join(goroot, "src", "runtime"))
	}
	digests := make(map[string]string)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := digestFile(digests, path, text); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// digestFile adds the declarations of a file.
func digestFile(digests map[string]string, path string, text []byte) error {
	if !bytes.Contains(text, []byte("special")) {
		return nil // most files need not be parsed
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		for name, node := range named(decl) {
			if byEdit[name] || name != "special" && !knowsLists(node) {
				continue
			}
			if digests[name] != "" {
				name += " of " + filepath.Base(path) // several systems have one each
			}
			digests[name] = digest(text[fset.Position(node.Pos()).Offset:fset.Position(node.End()).Offset])
		}
	}
	return nil
}

// named returns the names of a declaration: those of methods are as in
// "(*mspan).init". A declaration of constants or variables has one name.
func named(decl ast.Decl) map[string]ast.Node {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		return map[string]ast.Node{funcName(decl): decl}
	case *ast.GenDecl:
		all := make(map[string]ast.Node)
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				all[spec.Name.Name] = spec
			case *ast.ValueSpec:
				all[spec.Names[0].Name] = spec
			}
		}
		return all
	}
	return nil
}

// funcName returns the name of a function as stack traces have it.
func funcName(decl *ast.FuncDecl) string {
	name := decl.Name.Name
	if decl.Recv == nil {
		return name
	}
	switch t := decl.Recv.List[0].Type.(type) {
	case *ast.Ident:
		return t.Name + "." + name
	case *ast.StarExpr:
		if t, ok := t.X.(*ast.Ident); ok {
			return "(*" + t.Name + ")." + name
		}
	}
	return "(generic)." + name
}

// knowsLists reports whether a declaration has one of listNames.
func knowsLists(node ast.Node) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && listNames[id.Name] {
			found = true
		}
		return !found
	})
	return found
}

// digest returns the hash of the tokens of a text, without comments and layout.
func digest(text []byte) string {
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", -1, len(text)), text, nil, 0)
	hash := sha256.New()
	for {
		_, tok, literal := s.Scan()
		if tok == token.EOF {
			return fmt.Sprintf("%x", hash.Sum(nil)[:8])
		}
		if tok == token.SEMICOLON {
			literal = ";" // a line's end is one, too
		}
		fmt.Fprintf(hash, "%v %s\n", tok, literal)
	}
}

// check compares digests with those that are known, and names what differs.
func check(digests map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		switch {
		case known[name] == "":
			return unmatchedf("has %s, which may change lists of specials and did not exist when the change was made", name)
		case known[name] != digests[name]:
			return unmatchedf("has another %s than the one that the change was made for", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if digests[name] == "" {
			return unmatchedf("has no %s", name)
		}
	}
	return nil
}
