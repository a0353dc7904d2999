package fixes

import (
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
)

// TestFiles adds fixes of a file, of which some overlap, and some are made twice.
func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.go")
	const text = "package p\n\nvar abc = 1\n"
	const odd = "package p\n\nvar abc  = 1\nfunc f( ) {\n}\n" // not as gofmt writes it
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	base := token.Pos(fset.AddFile(name, -1, len(text)).Base())
	fix := func(edits ...edit) (f analysis.SuggestedFix) {
		for _, e := range edits {
			f.TextEdits = append(f.TextEdits, analysis.TextEdit{Pos: base + token.Pos(e.from), End: base + token.Pos(e.to), NewText: []byte(e.text)})
		}
		return f
	}
	var files Files
	for _, one := range []struct {
		fix  analysis.SuggestedFix
		want bool
	}{
		{fix(edit{15, 18, "x"}, edit{10, 10, "import \"C\"\n"}), true},
		{fix(edit{10, 10, "import \"C\"\n"}, edit{len(text), len(text), "var y = 2\n"}), true},
		{fix(edit{10, 10, "import \"C\"\n"}, edit{15, 18, "x"}), true}, // the first again
		{fix(edit{16, 17, "z"}, edit{0, 0, "// Lost.\n"}), false},
		{fix(edit{16, 16, "z"}), false},
		{fix(edit{15, 15, "a"}), true},
		{fix(edit{18, 18, "b"}), true},
	} {
		if got := files.Add(fset, one.fix); got != one.want {
			t.Errorf("Add of %v is %v, want %v", one.fix.TextEdits, got, one.want)
		}
	}
	got, err := files.Apply()
	if want := "package p\n\nimport \"C\"\n\nvar axb = 1\nvar y = 2\n"; err != nil || string(got[name]) != want {
		t.Errorf("%q, %v, want %q", got[name], err, want)
	}
	// The lines that no fix changes stay as they are in a file that gofmt has not written.
	if err := os.WriteFile(name, []byte(odd), 0o666); err != nil {
		t.Fatal(err)
	}
	files = Files{}
	files.Add(fset, fix(edit{15, 18, "x"}))
	got, err = files.Apply()
	if want := strings.Replace(odd, "abc", "x", 1); err != nil || string(got[name]) != want {
		t.Errorf("%q, %v, want %q", got[name], err, want)
	}
}
