package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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
	vet := func(flags ...string) (string, error) {
		args := append(append([]string{"vet", "-vettool=" + tool}, flags...), "../../internal/corpus/testdata/small")
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1") // go list leaves packages with cgo out without it
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
