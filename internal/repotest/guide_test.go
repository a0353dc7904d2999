package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// demonstrations are the documents that show the code of packages, and these.
var demonstrations = map[string][]string{
	"README.md":          {"examples/first"},
	"docs/production.md": {"examples/first/forget"},
	"docs/guide.md": {
		"examples/first/forget", "libc/internal/guide", "libc/internal/guide/widgets",
		"examples/cache/internal/cache", "examples/lists/draw", "lab/followed/testdata/pressure",
	},
	"docs/porting.md": {"lab/internal/porting", "lab/internal/porting/shapes", "examples/lists/sqlite"},
}

// TestFirstIsCopied wants nothing internal in the program that README.md has its readers copy into a module of their own.
func TestFirstIsCopied(t *testing.T) {
	t.Parallel()
	for name, text := range sourcesOf(t, []string{"examples/first"}) {
		if strings.Contains(text, "/internal/") {
			t.Errorf("%s uses an internal package", name)
		}
	}
}

// TestDocumentsShowWhatRuns finds each piece of code of a demonstration in a file of its packages, line by
// line, and an output in each of their examples. So what the document shows is what the tests compile and run.
// A whole program that no package has is compiled.
func TestDocumentsShowWhatRuns(t *testing.T) {
	t.Parallel()
	for document, packages := range demonstrations {
		sources := sourcesOf(t, packages)
		for _, b := range parseDocument(t, document).blocks {
			switch {
			case extensions[b.lang] == nil || b.before || isIn(sources, b.lang, b.text): // or it is what a program had
			case b.lang == "go" && strings.HasPrefix(b.text, "package main\n"):
				dir := t.TempDir()
				writeFiles(t, dir, map[string]string{"main.go": b.text})
				command(t, dir, []string{"GOWORK=off"}, "go", "vet", "main.go")
			default:
				t.Errorf("%s:%d: no file of %s has this text:\n%s", document, b.line, packages, b.text)
			}
		}
		for name, text := range sources {
			if !strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, e := range examplesOf(t, name, text) {
				if !strings.Contains(e.text, "// Output:") {
					t.Errorf("%s: %s has no output, so that go test does not run it", name, e.name)
				}
			}
		}
	}
}

// sourcesOf returns the files of packages, by name.
func sourcesOf(t *testing.T, packages []string) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, name := range files(t) {
		if slices.Contains(packages, path.Dir(name)) {
			sources[name] = read(t, name)
		}
	}
	return sources
}

// extensions are those of the files of a language.
var extensions = map[string][]string{
	"go":  {".go"},
	"c":   {".c", ".h"},
	"cpp": {".cc", ".hpp"},
}

// isIn reports whether whole lines of a file in a language are the text.
func isIn(sources map[string]string, lang, text string) bool {
	for name, source := range sources {
		if slices.Contains(extensions[lang], path.Ext(name)) && strings.Contains("\n"+source, "\n"+text) {
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
	testcall.Must(t, err)
	var examples []example
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
			text := source[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset]
			examples = append(examples, example{fn.Name.Name, text + "\n"})
		}
	}
	return examples
}
