//go:build linux && (amd64 || arm64)

package shared

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestBuildKeeps counts how often the compiler is called for a library.
func TestBuildKeeps(t *testing.T) {
	cc, err := exec.LookPath("cc")
	testcall.Must(t, err)
	dir, cache := t.TempDir(), t.TempDir()
	calls, compiler := filepath.Join(dir, "calls"), filepath.Join(dir, "compiler")
	script := "#!/bin/sh\ncase $* in *-shared*) echo >>" + calls + ";; esac\nexec " + cc + " \"$@\" -O0 -g0\n"
	testcall.Must(t, os.WriteFile(compiler, []byte(script), 0o700))
	t.Setenv("CC", compiler)
	t.Setenv("XDG_CACHE_HOME", cache)
	build := func(what string, want int) {
		t.Helper()
		library, err := Build(t.TempDir())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		libc, _ := exec.Command(cc, "-print-file-name=libc.so.6").Output()
		if err := Fits(library, strings.TrimSpace(string(libc))); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := Fits(library, library); err == nil || !strings.Contains(err.Error(), "uses a glibc before 2.") {
			t.Errorf("%s: with a C library of no version: %v", what, err)
		}
		if log, _ := os.ReadFile(calls); strings.Count(string(log), "\n") != want {
			t.Errorf("%s: compiled %d times, want %d", what, strings.Count(string(log), "\n"), want)
		}
	}
	build("the first time", 1)
	build("again", 1)
	names, err := filepath.Glob(filepath.Join(cache, "cheap", "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	testcall.Must(t, os.Truncate(names[0], 1000))
	build("with a file that is cut off", 2)
	build("after that", 2)
	t.Setenv("CPATH", dir)
	build("with other files to include", 3)
	testcall.Must(t, os.RemoveAll(cache))
	testcall.Must(t, os.WriteFile(cache, nil, 0o600))
	build("with a file in place of the folder", 4)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	build("without a folder", 5)
}
