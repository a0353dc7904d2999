package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// The guide shows the code of a package: that of its binding and its examples.
const (
	guideDocument = "docs/guide.md"
	guidePackage  = "libc/internal/guide"
)

// TestGuideShowsWhatRuns finds each piece of code of the guide in a file of the
// package, line by line, and each example of the package in the guide. So what
// the guide shows is what the tests compile and run.
func TestGuideShowsWhatRuns(t *testing.T) {
	sources := guideSources(t)
	shown := ""
	for _, b := range parseDocument(t, guideDocument).blocks {
		if b.lang != "go" && b.lang != "c" {
			continue
		}
		shown += b.text
		if !isIn(sources, b.lang, b.text) {
			t.Errorf("%s:%d: no file of %s has this text:\n%s", guideDocument, b.line, guidePackage, b.text)
		}
	}
	examples := 0
	for name, text := range sources {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, e := range examplesOf(t, name, text) {
			examples++
			if !strings.Contains(shown, e.text) {
				t.Errorf("%s does not show %s as %s has it", guideDocument, e.name, name)
			}
			if !strings.Contains(e.text, "// Output:") {
				t.Errorf("%s: %s has no output, so that go test does not run it", name, e.name)
			}
		}
	}
	if examples == 0 {
		t.Errorf("%s has no examples", guidePackage)
	}
}

// guideSources returns the files of the package, by name.
func guideSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, name := range files(t) {
		if path.Dir(name) == guidePackage {
			sources[name] = read(t, name)
		}
	}
	return sources
}

// isIn reports whether whole lines of a file in a language are the text.
func isIn(sources map[string]string, lang, text string) bool {
	for name, source := range sources {
		ofLang := path.Ext(name) == ".go"
		if lang == "c" {
			ofLang = path.Ext(name) == ".c" || path.Ext(name) == ".h"
		}
		if ofLang && strings.Contains("\n"+source, "\n"+text) {
			return true
		}
	}
	return false
}

// An example is a function of a test file that go test runs.
type example struct{ name, text string }

func examplesOf(t *testing.T, name, source string) []example {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var examples []example
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
			text := source[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset]
			examples = append(examples, example{fn.Name.Name, text + "\n"})
		}
	}
	return examples
}
