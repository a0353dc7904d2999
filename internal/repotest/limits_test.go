package repotest

import (
	"flag"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var updateLimits = flag.Bool("limits.update", false, "write the list of docs/reference/limits.md anew")

// TestLimits compares the list of docs/reference/limits.md of what is not promised with the documentation of
// the packages. With -limits.update the list is written anew.
func TestLimits(t *testing.T) {
	t.Parallel()
	const name, head, foot = "docs/reference/limits.md", "<!-- not promised -->\n", "<!-- end -->\n"
	want := ""
	for _, file := range []string{"doc.go", "own/doc.go"} {
		items := notPromised(t, file)
		if len(items) == 0 {
			t.Errorf("%s has no list of what is not promised", file)
		}
		for _, item := range items {
			want += "- " + item + "\n"
		}
	}
	text := read(t, name)
	before, rest, found := strings.Cut(text, head)
	got, after, found2 := strings.Cut(rest, foot)
	if !found || !found2 {
		t.Fatalf("%s has no place for the list", name)
	}
	if *updateLimits {
		if err := os.WriteFile(filepath.Join(root(t), filepath.FromSlash(name)), []byte(before+head+want+foot+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s has\n%s\nthe packages say\n%s\n(go test ./internal/repotest -limits.update writes it anew)", name, got, want)
	}
}

// notPromised returns the items of the lists in the section What is not promised of the comment of a
// package, each in one line.
func notPromised(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	p := comment.Parser{LookupSym: func(string, string) bool { return true }}
	var items []string
	inside := false
	for _, block := range p.Parse(f.Doc.Text()).Content {
		switch block := block.(type) {
		case *comment.Heading:
			inside = plainText(block.Text) == "What is not promised"
		case *comment.List:
			if !inside {
				continue
			}
			for _, item := range block.Items {
				for _, paragraph := range item.Content {
					items = append(items, plainText(paragraph.(*comment.Paragraph).Text))
				}
			}
		}
	}
	return items
}

// plainText writes text in one line of Markdown.
func plainText(text []comment.Text) string {
	var b strings.Builder
	for _, part := range text {
		switch part := part.(type) {
		case comment.Plain:
			b.WriteString(string(part))
		case comment.Italic:
			b.WriteString(string(part))
		case *comment.Link:
			b.WriteString(plainText(part.Text))
		case *comment.DocLink:
			b.WriteString("`" + plainText(part.Text) + "`")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
