//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// buildLibrary makes a library.
func buildLibrary(t *testing.T, name string, env ...string) {
	t.Helper()
	command := exec.Command("cheap", "record", "-build", name)
	command.Env = append(os.Environ(), env...)
	said, err := command.CombinedOutput()
	want := `^cheap record: \S+ is for programs with (glibc 2\.\d+ or later|musl)\n$`
	if err != nil || !regexp.MustCompile(want).Match(said) {
		t.Fatalf("%v: %s", err, said)
	}
}

// TestRecordLibrary records with a library that was made before, where there is neither a compiler nor a
// folder for temporary files.
func TestRecordLibrary(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	library := filepath.Join(folder, "made.so")
	testcall.Must(t, os.WriteFile(library, []byte("in the place of what is made\n"), 0o600))
	buildLibrary(t, library)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v are left beside the library: %v", left, err)
	}
	without := []string{"CC=no-such-compiler", "TMPDIR=" + folder + "/none"}
	r := recordEnv(t, without, "-rate", "1", "-library", library, theRecorded(t), "leak")
	if n := sum(r.stacks(t, "inuse_space"), `main\.leaky main\.main`); r.code != 3 || n != 1_000_000 {
		t.Errorf("code %d, %d bytes leaked, want 1,000,000: %s", r.code, n, r.stderr)
	}
	if r = recordEnv(t, without, theRecorded(t), "leak"); r.code != exitFailed || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("without a folder and a library: code %d, %s", r.code, r.stderr)
	}

	text, err := os.ReadFile(library)
	testcall.Must(t, err)
	at := bytes.Index(text, []byte("cmem_source"))
	hash := regexp.MustCompile(`[0-9a-f]{64}\x00`).FindIndex(text)
	if at < 0 || hash == nil {
		t.Fatal("the library does not say of what it was made")
	}
	text[hash[0]] ^= 1
	testcall.Must(t, os.WriteFile(library, text, 0o700))
	r = recordEnv(t, nil, "-library", library, theRecorded(t), "leak")
	if r.code != exitUsage || !strings.Contains(r.stderr, "is of another version of this command; make it again with cheap record -build\n") {
		t.Errorf("a library of another version: code %d, %s", r.code, r.stderr)
	}
	for _, name := range []string{t.TempDir(), "/nowhere/library.so"} {
		said, err := exec.Command("cheap", "record", "-build", name).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage ||
			!strings.HasPrefix(string(said), "cheap record: "+name+" cannot be written: ") || strings.Contains(string(said), ".cheap-build") {
			t.Errorf("-build %s: %v, %s", name, err, said)
		}
	}
}

// TestRecordMusl records programs with musl: in C, and with -record.builds in Go.
func TestRecordMusl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		return // as there is no other compiler for musl
	}
	ofGlibc, err := library()
	testcall.Must(t, err)
	folder := t.TempDir()
	library, program := filepath.Join(folder, "musl.so"), filepath.Join(folder, "program")
	buildLibrary(t, library, "CC=musl-gcc")
	cc := exec.Command("musl-gcc", "-x", "c", "-o", program, "-")
	cc.Stdin = strings.NewReader(`
#include <stdlib.h>
#include <string.h>
extern char **environ;
void *volatile kept;
int main(int argc, char **argv) {
	for (char **e = environ; *e; e++)
		if (!**e || strncmp(*e, "LD_PRELOAD=", 11) == 0 || strncmp(*e, "CHEAP_CMEM_", 11) == 0)
			return 1;
	kept = malloc(123456);
	return 7;
}
`)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, args := range [][]string{{}, {"-library", library}} {
		r := recordEnv(t, []string{"CC=musl-gcc"}, append(args, "-rate", "1", program)...)
		if n := sum(r.stacks(t, "inuse_space"), ``); r.code != 7 || n != 123456 {
			t.Errorf("%q: code %d, %d bytes in use, want 123,456: %s", args, r.code, n, r.stderr)
		}
	}
	for _, c := range []struct{ library, program, want string }{
		{ofGlibc, program, "uses musl, and the library that is preloaded is one for glibc"},
		{library, theRecorded(t), "uses glibc, and the library that is preloaded is one for musl"},
	} {
		r := recordEnv(t, nil, "-library", c.library, c.program)
		if r.code != exitUsage || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("code %d, want %q in %s", r.code, c.want, r.stderr)
		}
	}
	if !*recordBuilds {
		return
	}
	testcall.Must(t, testchild.Build(program, []string{"CC=musl-gcc", "CGO_ENABLED=1"}, "./testdata/record"))
	r := recordEnv(t, nil, "-library", library, "-rate", "1", program, "leak")
	if n := sum(r.stacks(t, "inuse_space"), `main\._Cfunc_leak main\.inlined main\.leaky main\.main runtime\.main runtime\.goexit$`); r.code != 3 || n != 1_000_000 || strings.Contains(r.stderr, "\n  mapped ") {
		t.Errorf("code %d, %d bytes leaked, want 1,000,000: %v, %s", r.code, n, r.stacks(t, "inuse_space"), r.stderr)
	}
}
