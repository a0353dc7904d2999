//go:build cgo && libgit2

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestValgrindFindsNothing checks that no object is freed twice, or used after it is
// freed. A build with the tag valgrind of Go tells valgrind about its memory, and
// about its stacks unless a goroutine is preempted. Valgrind does not report
// uninitialized memory here, because Go reads it when it adjusts stacks. It does not
// report leaks, because it gives up at blocks of Go that overlap; the next test does
// that.
func TestValgrindFindsNothing(t *testing.T) {
	binary := buildForValgrind(t, "libgit2,valgrind")
	h := history(t, 150)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			valgrind(t, binary, v, h.dir, "--leak-check=no")
		})
	}
}

// TestValgrindFindsNoLeak compares the memory in use at the end of a short history
// and of a longer one. Pointers that valgrind finds to a block say little, because
// unused Go memory is full of them. But a leak grows with the history, also one that
// package raw does not count.
func TestValgrindFindsNoLeak(t *testing.T) {
	binary := buildForValgrind(t, "libgit2")
	short, long := history(t, 50), history(t, 150)
	// Each thread counts as a block or two in valgrind, and libgit2 allocates one
	// block for each thread that has called it.
	const threads = 30
	if threads > long.want.Commits-short.want.Commits {
		t.Fatal("one block for each commit would not be noticed")
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			a := inUseAtExit(t, valgrind(t, binary, v, short.dir, "--leak-check=summary"))
			b := inUseAtExit(t, valgrind(t, binary, v, long.dir, "--leak-check=summary"))
			if b-a > threads {
				t.Errorf("%d blocks are in use after %d commits, and %d after %d",
					a, short.want.Commits, b, long.want.Commits)
			}
		})
	}
}

// buildForValgrind builds the command.
func buildForValgrind(t *testing.T, tags string) string {
	t.Helper()
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed (Debian, Ubuntu: apt-get install valgrind)")
	}
	binary := filepath.Join(t.TempDir(), "git")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags="+tags, "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// valgrind runs the command until all objects are freed, and returns the output of
// valgrind. With --leak-check=no that must report no error.
func valgrind(t *testing.T, binary string, v variant, dir, leakCheck string) string {
	t.Helper()
	const found = 99
	args := []string{leakCheck, "--undef-value-errors=no"}
	if leakCheck == "--leak-check=no" {
		args = append(args, "--error-exitcode="+strconv.Itoa(found))
	}
	cmd := exec.CommandContext(t.Context(), "valgrind", append(args, binary, "-binding", v.name, "-stats", dir)...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == found:
		t.Fatalf("valgrind has found something:\n%s", out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case !strings.Contains(string(out), "freed since"):
		t.Fatalf("the command has not freed what was forgotten:\n%s", out)
	}
	return string(out)
}

var inUse = regexp.MustCompile(`in use at exit: [\d,]+ bytes in ([\d,]+) blocks`)

func inUseAtExit(t *testing.T, out string) int {
	t.Helper()
	m := inUse.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("valgrind does not say what is in use:\n%s", out)
	}
	n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
	testcall.Must(t, err)
	return n
}
