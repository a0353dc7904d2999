package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVettool runs go vet with the command.
func TestVettool(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // go list leaves packages with cgo out without it
	tool := filepath.Join(t.TempDir(), "cheapvet.exe")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command("go", "vet", "-vettool="+tool, "../../internal/corpus/testdata/small").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "small.go:25:2: a finalizer for each object, which ends in C.tree_free") {
		t.Errorf("go vet: %v\n%s", err, out)
	}
	out, err = exec.Command("go", "vet", "-vettool="+tool, "-cfree", "../../internal/corpus/testdata/small").CombinedOutput()
	if err != nil {
		t.Errorf("go vet -cfree: %v\n%s", err, out)
	}
}
