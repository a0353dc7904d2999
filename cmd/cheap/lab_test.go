package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLabSource finds the module in the checkout that the command was built in.
func TestLabSource(t *testing.T) {
	want, err := filepath.Abs("../../lab")
	if err != nil {
		t.Fatal(err)
	}
	if got := labSource(); got != want {
		t.Errorf("from here: %q, want %q", got, want)
	}
	t.Chdir(filepath.Join(want, "internal"))
	if got := labSource(); got != want {
		t.Errorf("from the module: %q, want %q", got, want)
	}
}

// TestNoGo has no go command to build the module with.
func TestNoGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := buildLab(t.Context())
	var mistake *usageError
	if !errors.As(err, &mistake) || !strings.Contains(err.Error(), "no go command is in PATH") {
		t.Errorf("%v", err)
	}
}

// TestBuildLab builds a module that is broken, and one that is not.
func TestBuildLab(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/lab\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() { nothing() }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	err := goCommand(t.Context(), dir, "build", "-o", program, ".")
	var mistake *usageError
	if !errors.As(err, &mistake) || !strings.Contains(err.Error(), "undefined: nothing") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := goCommand(t.Context(), dir, "build", "-o", program, "."); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
}
