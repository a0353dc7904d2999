package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/vet/internal/vettest"
)

// TestMain lets go vet run the test's binary in place of the command.
func TestMain(m *testing.M) {
	if fromGo(os.Args[1:]) {
		main()
	}
	os.Exit(m.Run())
}

// TestVettool runs go vet with the command.
func TestVettool(t *testing.T) {
	t.Parallel()
	tool, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := vettest.Host()
	if err != nil {
		t.Fatal(err)
	}
	vet := func(flags ...string) (string, error) {
		args := append(append([]string{"vet", "-vettool=" + tool}, flags...), "../../internal/corpus/testdata/small")
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(append(cmd.Environ(), "CGO_ENABLED=1"), host...) // go list leaves packages with cgo out without it
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := vet(); err == nil || !strings.Contains(out, "small.go:25:2: a finalizer for each object, which ends in C.tree_free") {
		t.Errorf("go vet: %v\n%s", err, out)
	}
	if out, err := vet("-cfree"); err != nil {
		t.Errorf("go vet -cfree: %v\n%s", err, out)
	}
}

// TestTrimpath vets two copies of a package with -trimpath. The go command runs cgo on the first alone,
// which is gone when the second is vetted. What the function of C does is known from its body in the file beside.
func TestTrimpath(t *testing.T) {
	t.Parallel()
	tool, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := vettest.Host()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		dir, err := os.MkdirTemp("", "trimpath")
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"go.mod": "module example.com/trimpath\n\ngo 1.26.0\n",
			"lost.go": "package trimpath\n\n// #include <stdlib.h>\n// char *made(void);\nimport \"C\"\n\n" +
				"func F() { C.made(); C.free(nil) }\n",
			"made.c": "#include <stdlib.h>\n\nchar *made(void) { return malloc(1); }\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, ".")
		cmd.Dir = dir
		cmd.Env = append(append(cmd.Environ(), "CGO_ENABLED=1", "GOWORK=off", "GOFLAGS=-trimpath"), host...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "lost.go:7:12: the result of C.made is never freed") {
			t.Errorf("go vet: %v\n%s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}
