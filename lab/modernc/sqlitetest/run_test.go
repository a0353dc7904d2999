package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	scale = flag.Int("scale", 200, "how much work the tests and benchmarks do")
	conns = flag.Int("conns", 4, "how many connections at once the tests and benchmarks use")
)

// do runs the command in this process.
func do(t testing.TB, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", args, code, &stderr)
	}
	return decode(t, stdout.Bytes())
}

func decode(t testing.TB, b []byte) (r result) {
	t.Helper()
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if r.Digest == "" {
		t.Fatalf("no digest in %s", b)
	}
	return r
}

// original builds the command with modernc.org/memory, once.
func original(t testing.TB) string { return built(t, "original.mod") }

var builds = struct {
	sync.Mutex
	dir   string
	paths map[string]string
}{paths: map[string]string{}}

// built builds the command with a go.mod and returns its path.
func built(t testing.TB, modfile string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if builds.paths[modfile] == "" {
		path := filepath.Join(builds.dir, modfile+".exe")
		goCommand(t, "build", "-modfile="+modfile, "-o", path, ".")
		builds.paths[modfile] = path
	}
	return builds.paths[modfile]
}

func goCommand(t testing.TB, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// child runs the command in a process of its own. It also returns the processor time of
// that process.
func child(t testing.TB, path string, args ...string) (result, time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, &stderr)
	}
	return decode(t, out), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
