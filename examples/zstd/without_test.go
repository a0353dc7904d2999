//go:build !zstd

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/cheapgo/cheap/libc" // linked into the tests below; without these imports
	_ "github.com/cheapgo/cheap/own"  // go test would take a result from its cache when they change
	_ "github.com/cheapgo/cheap/pace"
)

// TestWithZstd runs the other tests, which need zstd to build.
func TestWithZstd(t *testing.T) {
	if out, err := exec.Command("pkg-config", "--exists", "--print-errors", "libzstd").CombinedOutput(); err != nil {
		t.Skipf("%v %s\n%s", err, bytes.TrimSpace(out), install)
	}
	if out := goCommand(t, "env", "CGO_ENABLED"); strings.TrimSpace(out) != "1" {
		t.Skip("cgo is off, or there is no C compiler")
	}
	// Files that a test opens become part of the key in go test's cache.
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-tags=zstd"}
	if testing.Verbose() {
		args = append(args, "-v")
	}
	t.Logf("go %s\n%s", strings.Join(args, " "), goCommand(t, append(args, "./...")...))
}

func TestRunWithoutZstdSaysHowToInstall(t *testing.T) {
	var stderr strings.Builder
	if code := run(t.Context(), nil, nil, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "apt-get install libzstd-dev") {
		t.Errorf("exit code %d, and %q", code, stderr.String())
	}
}

// goCommand returns the output of a go command.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
