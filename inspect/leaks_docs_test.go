package inspect

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

// TestLeaksDocument compares README.md with the programs that it shows, and with what they print.
func TestLeaksDocument(t *testing.T) {
	if testenv.NoGo() {
		return // it builds programs
	}
	page, err := os.ReadFile("README.md")
	testcall.Must(t, err)
	var outputs []string
	suspects := run(t, []string{"CHEAP_LEAKS=all"}, "go", "run", "./testdata/server", filepath.Join(t.TempDir(), "leaks.pb.gz"))
	for _, out := range []string{forgottenTest(t), suspects} {
		outputs = append(outputs, strings.TrimSpace(out))
	}
	sources := ""
	for _, name := range []string{"leaktest/testdata/forgotten/forgotten_test.go", "testdata/server/main.go"} {
		text, err := os.ReadFile(name)
		testcall.Must(t, err)
		sources += string(text)
	}
	var shown []string
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		switch lang, text := m[1], m[2]; lang {
		case "go":
			if !strings.Contains(sources, text) {
				t.Errorf("no program has\n%s", text)
			}
		case "text":
			shown = append(shown, strings.TrimSpace(text))
		}
	}
	if !slices.Equal(shown, outputs) {
		t.Errorf("README.md shows\n%s\nand the programs print\n%s", strings.Join(shown, "\n\n"), strings.Join(outputs, "\n\n"))
	}
}

// run runs a command, and returns its output without what differs from run to run.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\S*/(forgotten_test\.go|main\.go):`).ReplaceAllString(string(out), "$1:")
	text = regexp.MustCompile(`, the oldest for \S+`).ReplaceAllString(text, "")
	return strings.ReplaceAll(text, "\r", "")
}

func forgottenTest(t *testing.T) string {
	out := run(t, nil, "go", "test", "-count=1", "-vet=off", "./leaktest/testdata/forgotten")
	out = regexp.MustCompile(`\(\d+\.\d+s\)`).ReplaceAllString(out, "(0.01s)")
	out, _, _ = strings.Cut(out, "FAIL\tgithub.com/")
	return out
}
