package repotest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside is the environment of a program that knows the checkout only by a
// replace line. The workspace would know it anyway. What go mod tidy adds is
// in the checkout's own go.sum files, so the network is not asked again. With
// -trimpath the packages do not depend on the folder that they are in, so the
// build cache has them.
var outside = []string{"GOWORK=off", "GOFLAGS=-buildvcs=false -trimpath", "GONOSUMDB=golang.org/x/sys,github.com/google/pprof"}

// blockOf returns the one code block of README.md in a language that contains a text.
func blockOf(t *testing.T, lang, contains string) codeBlock {
	t.Helper()
	var found []codeBlock
	for _, b := range parseDocument(t, "README.md").blocks {
		if b.lang == lang && strings.Contains(b.text, contains) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		t.Fatalf("README.md has %d blocks of %s with %s, want 1", len(found), lang, contains)
	}
	return found[0]
}

// besideCheckout returns an empty folder beside a link to the checkout.
func besideCheckout(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	if err := os.Symlink(root(t), filepath.Join(top, "cheap")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "hello")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCheckout does what README.md says about a program that depends on a
// checkout: in an empty folder its commands run the first program.
func TestCheckout(t *testing.T) {
	t.Parallel()
	if goEnv(t, "CGO_ENABLED") != "1" {
		return // the first program is a binding
	}
	const text = "12345" // that the commands pass to the program
	script := blockOf(t, "sh", "-replace=").text
	if !strings.HasSuffix(script, "seq 100000 | go run . "+text+"\n") {
		t.Fatalf("the commands do not end by running the program:\n%s", script)
	}
	want := map[string]bool{}
	for i := range text {
		for j := i + 1; j <= len(text); j++ {
			want[text[i:j]] = true
		}
	}
	got := map[string]bool{}
	for _, line := range strings.Fields(command(t, besideCheckout(t), outside, "sh", "-ec", script)) {
		got[line] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("the first program prints %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestReplaceLines reads the lines of README.md for the other modules, and builds a program with
// them that imports two, of which one requires the other's.
func TestReplaceLines(t *testing.T) {
	t.Parallel()
	lines := blockOf(t, "text", "replace (").text
	want := "replace (\n"
	for _, dir := range modules {
		top, _, _ := strings.Cut(dir, "/")
		// Others have programs, or are nobody's import.
		if top == "cmem" || top == "inspect" || top == "x" {
			want += fmt.Sprintf("\t%s/%s => ../cheap/%s\n", modulePath, dir, dir)
		}
	}
	if want += ")\n"; lines != want {
		t.Errorf("README.md has the lines\n%s\nwant\n%s", lines, want)
	}
	dir := besideCheckout(t)
	writeFiles(t, dir, map[string]string{
		"go.sum": read(t, "inspect/go.sum"),
		"main.go": `package main

import (
	_ "` + modulePath + `/cmem"
	"` + modulePath + `/inspect"
)

func main() { inspect.SetRate(0) }
`,
	})
	for line := range strings.Lines(blockOf(t, "sh", "-replace=").text) {
		if strings.HasPrefix(line, "go mod tidy") {
			text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			writeFiles(t, dir, map[string]string{"go.mod": string(text) + lines})
		}
		if strings.HasPrefix(line, "go mod ") {
			runLines(t, dir, line)
		}
	}
	runLines(t, dir, "go vet .")
}

// TestExcerpts looks at what README.md shows of the first program: a binding and a main, short.
// TestDocumentsShowWhatRuns compares them with the program.
func TestExcerpts(t *testing.T) {
	t.Parallel()
	var excerpts []codeBlock
	for _, b := range parseDocument(t, "README.md").blocks {
		if b.lang == "go" {
			excerpts = append(excerpts, b)
		}
	}
	if len(excerpts) != 2 {
		t.Errorf("README.md shows %d pieces of Go, want 2", len(excerpts))
	}
	for _, b := range excerpts {
		if n := strings.Count(b.text, "\n"); n > 15 {
			t.Errorf("README.md:%d: an excerpt of %d lines; 15 are what a reader takes in", b.line, n)
		}
	}
}

// TestLength counts the words of documents that are read from begin to end. What grows beyond
// its bound belongs on another page, or is said twice.
func TestLength(t *testing.T) {
	t.Parallel()
	bounds := map[string]int{
		"README.md": 1100, "CONTRIBUTING.md": 800, "SECURITY.md": 600,
		"docs/guide.md": 6000, "docs/porting.md": 3000, "docs/memory.md": 6000, "docs/tools.md": 4000,
		"docs/limits.md": 2000, "docs/internals.md": 6000, "docs/decisions.md": 7000,
	}
	for _, dir := range modules[1:] {
		if name := path.Join(dir, "README.md"); exists(t, name) {
			bounds[name] = 200
		}
	}
	for name, bound := range bounds {
		if n := len(strings.Fields(read(t, name))); n > bound {
			t.Errorf("%s has %d words, and should have at most %d", name, n, bound)
		}
	}
}

// runLines runs commands, one a line, and returns what they print.
func runLines(t *testing.T, dir, lines string) string {
	t.Helper()
	var out string
	for line := range strings.Lines(lines) {
		out += command(t, dir, outside, strings.Fields(line)...)
	}
	return out
}
