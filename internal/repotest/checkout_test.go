package repotest

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
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
	testcall.Must(t, os.Symlink(root(t), filepath.Join(top, "cheap")))
	dir := filepath.Join(top, "hello")
	testcall.Must(t, os.Mkdir(dir, 0o777))
	return dir
}

// getLatest is the line of README.md that needs a version.
const getLatest = "go get " + modulePath + "@latest\n"

// TestCheckout does what README.md says about a program that depends on a
// checkout: in an empty folder its commands run the first program. With a version
// the test of tools/release does the same.
func TestCheckout(t *testing.T) {
	t.Parallel()
	if goEnv(t, "CGO_ENABLED") != "1" {
		return // the first program is a binding
	}
	const text = "12345" // that the commands pass to the program
	script := blockOf(t, "sh", getLatest).text
	if !strings.HasSuffix(script, "seq 100000 | go run . "+text+"\n") {
		t.Fatalf("the commands do not end by running the program:\n%s", script)
	}
	script = strings.Replace(script, getLatest, blockOf(t, "sh", "-replace=").text, 1)
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

// libraries are the modules beside the root that programs import.
var libraries = []string{"cmem", "inspect", "vet", "x/arrow", "x/cgoalloc", "x/otel", "x/prometheus", "x/statsviz"}

// TestModulePages reads the page of each module that programs import: it leads to the only page that says
// how a module is required. A test of tools/release runs the lines that README.md has for a clone.
func TestModulePages(t *testing.T) {
	t.Parallel()
	for _, dir := range modules {
		if top, _, _ := strings.Cut(dir, "/"); (top == "cmem" || top == "inspect" || top == "vet" || top == "x") && !slices.Contains(libraries, dir) {
			t.Errorf("module %s is in no list", dir)
		}
	}
	for _, name := range libraries {
		page := read(t, path.Join(name, "README.md"))
		if strings.Contains(page, "go get ") || !strings.Contains(page, "../README.md#installing)") {
			t.Errorf("%s/README.md does not leave it to README.md how the module is required", name)
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
