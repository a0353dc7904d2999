//go:build cgo && libgit2

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestValgrindFindsNothing looks for objects that are freed twice, or used after
// that. The memory of a build with Go's tag valgrind is known to valgrind, and
// its stacks are, as long as no goroutine is preempted in the middle of things.
// What is not initialized is not looked for, since Go reads it where it adjusts
// its stacks; nor are leaks, because valgrind gives up at blocks of Go that have
// moved into each other (the next test does).
func TestValgrindFindsNothing(t *testing.T) {
	binary := buildForValgrind(t, "libgit2,valgrind")
	h := history(t, 150)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			valgrind(t, binary, v, h.dir, "--leak-check=no")
		})
	}
}

// TestValgrindFindsNoLeak compares what is in use at the end of a short history
// and of a longer one. That valgrind finds no pointer to a block says little:
// unused memory of Go's is full of them. But what leaks grows with the history,
// be it counted by package raw or not.
func TestValgrindFindsNoLeak(t *testing.T) {
	binary := buildForValgrind(t, "libgit2")
	short, long := history(t, 50), history(t, 150)
	// Valgrind sees each thread as a block or two, and libgit2 has one for each
	// thread that it has been called in.
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

// valgrind runs the command until everything is freed, and returns what
// valgrind says. With --leak-check=no it must find nothing wrong.
func valgrind(t *testing.T, binary string, v variant, dir, leakCheck string) string {
	t.Helper()
	const found = 99
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := []string{leakCheck, "--undef-value-errors=no"}
	if leakCheck == "--leak-check=no" {
		args = append(args, "--error-exitcode="+strconv.Itoa(found))
	}
	cmd := exec.CommandContext(ctx, "valgrind", append(args, binary, "-binding", v.name, "-stats", dir)...)
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
	if err != nil {
		t.Fatal(err)
	}
	return n
}
