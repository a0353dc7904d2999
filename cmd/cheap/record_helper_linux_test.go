//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

var recordToolchain = flag.String("record.toolchain", "", "build the programs that are recorded with this GOTOOLCHAIN")

// runVariable has the test program be the command.
const runVariable = "CHEAP_TEST_RUN_MAIN"

// buildRecorded builds testdata/record, with these flags of go build.
func buildRecorded(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), "./testdata/record")...)
	if *recordToolchain != "" {
		build.Env = append(os.Environ(), "GOTOOLCHAIN="+*recordToolchain)
	}
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return path
}

// A recordRun is a run of cheap record.
type recordRun struct {
	stdout, stderr string
	code           int
	out            string // the file of the profile
}

// recordCommandLine returns the command with these arguments behind -o.
func recordCommandLine(t *testing.T, env []string, args ...string) (command *exec.Cmd, out string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(t.TempDir(), "out.pb.gz")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	command = exec.CommandContext(ctx, self, append([]string{"record", "-o", out}, args...)...)
	command.Env = append(append(os.Environ(), runVariable+"=1"), env...)
	return command, out
}

func recordEnv(t *testing.T, env []string, args ...string) *recordRun {
	t.Helper()
	command, out := recordCommandLine(t, env, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Stdin = strings.NewReader("from stdin\n")
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return &recordRun{stdout.String(), stderr.String(), command.ProcessState.ExitCode(), out}
}

func record(t *testing.T, args ...string) *recordRun { return recordEnv(t, nil, args...) }

// stacks returns what the profile has, of a sample type, by stack: the functions with spaces
// between them, innermost first.
func (r *recordRun) stacks(t *testing.T, kind string) map[string]int64 {
	t.Helper()
	f, err := os.Open(r.out)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.stderr)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == kind })
	all := map[string]int64{}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, line.Function.Name)
			}
		}
		all[strings.Join(names, " ")] += s.Value[i]
	}
	return all
}

// sum adds the stacks up that match an expression.
func sum(stacks map[string]int64, expression string) int64 {
	n := int64(0)
	for stack, v := range stacks {
		if regexp.MustCompile(expression).MatchString(stack) {
			n += v
		}
	}
	return n
}

func readTrace(t *testing.T, file string) *trace.Trace {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
