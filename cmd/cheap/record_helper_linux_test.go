//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

var recordBuilds = flag.Bool("record.builds", false, "TestRecordLeak builds its program in ways for which the standard library is compiled again, too")

var recordToolchain = flag.String("record.toolchain", "", "build the programs that are recorded with this GOTOOLCHAIN")

// recordedOnce is testdata/record, built once.
var recordedOnce = sync.OnceValues(func() (string, error) { return goBuild(filepath.Join(kept, "recorded")) })

// theRecorded returns that program.
func theRecorded(t *testing.T) string {
	t.Helper()
	path, err := recordedOnce()
	testcall.Must(t, err)
	return path
}

// goBuild builds testdata/record into a folder, with these flags of go build.
func goBuild(folder string, flags ...string) (path string, err error) {
	path = filepath.Join(folder, "program")
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), "./testdata/record")...)
	if *recordToolchain != "" {
		build.Env = append(os.Environ(), "GOTOOLCHAIN="+*recordToolchain)
	}
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return path, nil
}

// compileC builds a program from a text in C.
func compileC(t *testing.T, program, text string, flags ...string) {
	t.Helper()
	cc := exec.Command("cc", append(flags, "-x", "c", "-o", program, "-")...)
	cc.Stdin = strings.NewReader(text)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// library is the library that is preloaded, made once. cheap record keeps it as well: see keeper.Run.
var library = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(kept, "library")
	if err := os.Mkdir(folder, 0o777); err != nil {
		return "", err
	}
	return shared.Build(folder)
})

// A recordRun is a run of cheap record.
type recordRun struct {
	stdout, stderr string
	code           int
	out            string // the file of the profile
}

// recordCommandLine returns the command with these arguments behind -o.
func recordCommandLine(t *testing.T, env []string, args ...string) (command *exec.Cmd, out string) {
	t.Helper()
	if _, err := library(); err != nil { // or each test that runs now would compile it
		t.Fatal(err)
	}
	out = filepath.Join(t.TempDir(), "out.pb.gz")
	command = exec.CommandContext(untilDeadline(t), "cheap", append([]string{"record", "-o", out}, args...)...)
	command.Env = append(os.Environ(), env...)
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
	nothingShared(t, command)
	return &recordRun{stdout.String(), stderr.String(), command.ProcessState.ExitCode(), out}
}

// nothingShared looks for a file that a command which has ended has left in memory.
func nothingShared(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/cheap-record-%d-*", command.Process.Pid)); len(left) > 0 {
		t.Errorf("%v: %q are left", command, left)
	}
}

func record(t *testing.T, args ...string) *recordRun { return recordEnv(t, nil, args...) }

// profile reads the profile.
func (r *recordRun) profile(t *testing.T) *profile.Profile {
	t.Helper()
	f, err := os.Open(r.out)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.stderr)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	testcall.Must(t, err)
	return p
}

// stacks returns what the profile has, of a sample type, by stack: the functions with spaces
// between them, innermost first.
func (r *recordRun) stacks(t *testing.T, kind string) map[string]int64 {
	t.Helper()
	p := r.profile(t)
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
	testcall.Must(t, err)
	defer f.Close()
	tr, err := trace.Read(f)
	testcall.Must(t, err)
	return tr
}
