package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func TestKeepAlive(t *testing.T) {
	const source = `package p

import "C"

func (x *Tree) Name() string {
	return C.name(x.p)
}

// F has a comment.
func F(a, b *Tree, n *int, c Tree) { C.f(a.p, b.p) }

func (x *Tree) Go() int { return 1 }
`
	const want = `package p

import "C"
import "runtime"

func (x *Tree) Name() string {
	defer runtime.KeepAlive(x)
	return C.name(x.p)
}

// F has a comment.
func F(a, b *Tree, n *int, c Tree) {
	defer runtime.KeepAlive(a)
	defer runtime.KeepAlive(b)
	C.f(a.p, b.p)
}

func (x *Tree) Go() int { return 1 }
`
	got, err := keepAlive([]byte(source), []string{"Tree"})
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err := keepAlive([]byte(source), []string{"Node"}); err != nil || string(got) != source {
		t.Errorf("without such a type: %v\n%s", err, got)
	}
	if _, err := keepAlive([]byte("no Go"), nil); err == nil {
		t.Error("what is no Go is taken")
	}
}

func TestForget(t *testing.T) {
	const source = "\tdefer tree.Close()\n\t\ttree.Close()\n\tif err := f.Close(); err != nil {\n\ta.b.Close()\n"
	const want = "\t_ = tree\n\t\t_ = tree\n\tif err := f.Close(); err != nil {\n\ta.b.Close()\n"
	if got, err := forget([]byte(source)); err != nil || string(got) != want {
		t.Errorf("%v\n%q", err, got)
	}
}

// TestPatch applies a diff to a copy, and one that does not fit.
func TestPatch(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
		return name
	}
	original := write("a.go", "one\ntwo\nthree\n")
	diff := write("a.diff", "--- a/a.go\n+++ b/a.go\n@@ -2 +2 @@\n-two\n+2\n")
	c := &checkout{project: new(project), root: root, progress: io.Discard}
	files := layer{}
	testcall.Must(t, c.patch(t.Context(), dir, diff, files))
	got, err := os.ReadFile(files["a.go"])
	if err != nil || string(got) != "one\n2\nthree\n" {
		t.Errorf("%v, %q", err, got)
	}
	testcall.Must(t, c.patch(t.Context(), dir, write("c.diff", "--- a/a.go\n+++ b/a.go\n@@ -3 +3 @@\n-three\n+3\n"), files))
	if got, err := os.ReadFile(files["a.go"]); err != nil || string(got) != "one\n2\n3\n" {
		t.Errorf("with another diff: %v, %q", err, got)
	}
	if text, err := os.ReadFile(original); err != nil || !strings.Contains(string(text), "two") {
		t.Errorf("the original is %q, %v", text, err)
	}
	write("a.go", "other\n")
	if c.patch(t.Context(), dir, diff, layer{}) == nil {
		t.Error("a diff that does not fit is no error")
	}
	if c.patch(t.Context(), dir, write("b.diff", "--- a/b.go\n+++ b/b.go\n"), layer{}) == nil {
		t.Error("a diff of a file that is not there is no error")
	}
}
