//go:build asan

package asan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocument runs the program of docs/reference/attacks.md that reads a freed block. What it prints has
// each line that the document shows, in this order, but for addresses, directories and the lines
// that need a tool to be complete.
func TestDocument(t *testing.T) {
	program := filepath.Join(t.TempDir(), "reads")
	build := exec.Command("go", "build", "-asan", "-o", program, "./testdata/reads")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("../docs/reference/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "```text\n==")
	shown, _, ok := strings.Cut(shown, "\n```")
	out, err := exec.Command(program).CombinedOutput()
	if !ok || err == nil {
		t.Fatalf("found in the document: %v; the program: %v\n%s", ok, err, out)
	}
	changing := regexp.MustCompile(`\d*==|0x[0-9a-f]+|\S*/testdata/reads/`)
	rest := changing.ReplaceAllString(string(out), "")
	for line := range strings.Lines(changing.ReplaceAllString("=="+shown+"\n", "")) {
		if line == "...\n" || strings.HasPrefix(line, "    #") {
			continue
		}
		before, behind, ok := strings.Cut(rest, line)
		if !ok || before != "" && !strings.HasSuffix(before, "\n") {
			t.Fatalf("the document has this line, and not the program:\n%s\n%s", line, out)
		}
		rest = behind
	}
}
