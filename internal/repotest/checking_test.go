package repotest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestCheckingShowsWhatIsPrinted runs the program of docs/reference/attacks.md that writes where it must not,
// and compares what it prints with the document, but for addresses and directories.
func TestCheckingShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	run := func(argument string, env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", "run", "./testdata/writes", argument)
		cmd.Dir = root(t)
		cmd.Env = append(cmd.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	var shown []string
	before, _, _ := strings.Cut(read(t, "docs/reference/attacks.md"), "\n## Guard pages\n")
	for _, b := range parseDocument(t, "docs/reference/attacks.md").blocks {
		if b.line > strings.Count(before, "\n") {
			continue // a test of package inspect looks at these
		}
		switch b.lang {
		case "text":
			if strings.HasPrefix(b.text, "panic: ") { // package asan has a test of the other one
				shown = append(shown, strings.TrimSpace(b.text))
			}
		case "go":
			if !strings.Contains(read(t, "testdata/writes/main.go")+read(t, "testdata/reads/main.go"), b.text) {
				t.Errorf("docs/reference/attacks.md:%d: no program has this text", b.line)
			}
		}
	}
	arguments := []string{"over", "late"}
	if len(shown) != len(arguments) {
		t.Fatalf("the document shows %d outputs, want %d", len(shown), len(arguments))
	}
	if out, err := run("over"); err != nil || len(out) > 0 {
		t.Errorf("without CHEAP_CHECK: %v, %s", err, out)
	}
	address := regexp.MustCompile(`0x[0-9a-f]{6,}`)
	dir := regexp.MustCompile(`\S*/testdata/writes/`)
	same := func(s string) string { return address.ReplaceAllString(dir.ReplaceAllString(s, ""), "0x…") }
	for i, a := range arguments {
		out, err := run(a, "CHEAP_CHECK=stacks")
		if err == nil {
			t.Errorf("%s: the program ends as if nothing was wrong", a)
		}
		text, _, _ := strings.Cut(out, "\n\ngoroutine")
		if got, want := same(strings.TrimSpace(text)), same(shown[i]); got != want {
			t.Errorf("%s prints\n%s\nthe document shows\n%s", a, got, want)
		}
	}
}
