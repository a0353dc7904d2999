//go:build cgo && cheap_times

package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// The programs of testdata/known have shares that are known by construction. The programs
// themselves measure them, without a profile, by the times of their parts. So no other program may
// run.

// scenes are the programs, by the version of Go that builds them: that of the go command, and the newest.
var scenes = map[string][]string{
	"": {
		"go", "noop", "result", "struct", "spin-200", "spin-here-200", "spin-struct-200", "library", "getters", "checks", "callback-10", "callback-10000",
		"malloc", "cstring", "cleanup", "cleanup-c", "finalizer", "locks", "mixture",
	},
	"go1.27.0": {"mixture"},
}

// A scene is measured so often, and the means are compared, once. They may be five points away from
// what is known, and two standard errors: that of a share of 300 samples is up to 2.6 points.
const (
	times     = 4
	tolerance = 0.05 + 2*0.026/2 // 2 is the root of times
)

// knownPrograms builds the programs twice: as Build does, and as a program that profiles itself
// has no help from it.
func knownPrograms(t *testing.T) (built *Program, plain string) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	source := os.DirFS(filepath.Join("testdata", "known"))
	testcall.Must(t, os.CopyFS(dir, source))
	testcall.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module known\n\ngo 1.24\n"), 0o644))
	plain = filepath.Join(out, "plain.exe")
	build := exec.Command("go", "build", "-o", plain, ".")
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Chdir(dir)
	built, err := Build(t.Context(), []string{"."}, out)
	testcall.Must(t, err)
	if !built.CallsC {
		t.Error("the program calls C, and that is not known")
	}
	return built, plain
}

// hasVersion reports whether the go command can be the version of GOTOOLCHAIN.
func hasVersion() bool { return exec.Command("go", "version").Run() == nil }

// known asks a program for its shares.
func known(t *testing.T, program, scene string) map[string]float64 {
	t.Helper()
	text, err := exec.Command(program, "-truth", scene).Output()
	if err != nil {
		t.Fatalf("%s: %v", scene, err)
	}
	var truth map[string]float64
	testcall.Must(t, json.Unmarshal(text, &truth))
	return truth
}

// shareNamed returns a share of a report by its name in the programs.
func shareNamed(r *Report, name string) Share {
	if name == "checks" {
		return Share{name, r.Checks, r.Checks, r.Checks}
	}
	for _, n := range mechanismNames {
		if string(n.of[0]) == name {
			return Of(r.Mechanisms, n.name)
		}
	}
	for _, n := range purposeNames {
		if string(n.of) == name {
			return Of(r.Purposes, n.name)
		}
	}
	panic("no share " + name)
}

func TestKnownShares(t *testing.T) {
	for version, list := range scenes {
		name := version
		if name == "" {
			name = "go"
		}
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOWORK", "off")
			t.Setenv("GOFLAGS", "")
			if version != "" {
				t.Setenv("GOTOOLCHAIN", version)
			}
			if !hasVersion() {
				t.Logf("%s is not here", version)
				return
			}
			program, plain := knownPrograms(t)
			calibrator, err := BuildCalibrator(t.Context(), ".", t.TempDir())
			testcall.Must(t, err)
			cal, err := Calibrate(t.Context(), calibrator)
			testcall.Must(t, err)
			for _, scene := range list {
				t.Run(scene, func(t *testing.T) { testScene(t, program, plain, scene, cal) })
			}
		})
	}
}

// A comparison has the means of what is known of a share, and of what was found.
type comparison struct{ known, exact, sampled, low, high float64 }

func testScene(t *testing.T, program *Program, plain, scene string, cal Calibration) {
	sums := map[string]*comparison{}
	for range times {
		truth := known(t, plain, scene)
		exact, sampled := runKnown(t, program, scene, cal), profileKnown(t, plain, scene, cal)
		for _, r := range []*Report{exact, sampled} {
			checkSums(t, r)
			if u := Of(r.Rest, "unclassified").Share; u > 0.08 {
				t.Errorf("%.3f is unclassified", u)
			}
		}
		for name, share := range truth {
			sum := sums[name]
			if sum == nil {
				sum = new(comparison)
				sums[name] = sum
			}
			got, other := shareNamed(exact, name), shareNamed(sampled, name)
			sum.known, sum.exact, sum.sampled = sum.known+share/times, sum.exact+got.Share/times, sum.sampled+other.Share/times
			sum.low, sum.high = sum.low+other.Low/times, sum.high+other.High/times
		}
	}
	for name, sum := range sums {
		text := fmt.Sprintf("%s is %.3f, exact %.3f, sampled %.3f (%.3f to %.3f)", name, sum.known, sum.exact, sum.sampled, sum.low, sum.high)
		t.Log(text)
		// What a range encloses is not claimed to be known better.
		if math.Abs(sum.exact-sum.known) > tolerance || sum.known < sum.low-tolerance || sum.known > sum.high+tolerance {
			t.Error(text)
		}
	}
}

// runKnown has the program profiled from outside.
func runKnown(t *testing.T, program *Program, scene string, cal Calibration) *Report {
	t.Helper()
	p, run := profileOf(t, program, "-for", "3s", scene)
	r := New(p, scene, cal, Stored, program.Exact, run.Calls)
	return r
}

// profileKnown has the program profile itself.
func profileKnown(t *testing.T, plain, scene string, cal Calibration) *Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	if output, err := exec.Command(plain, "-for", "3s", "-cpuprofile", file, scene).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the program has written no profile")
	} else if err != nil {
		t.Fatal(err)
	}
	p, err := Read(data)
	testcall.Must(t, err)
	return New(p, scene, cal, Stored, false, 0)
}

// TestKnownByPerf compares the share of C itself with that of perf in the same run. Two programs are of the Go
// project: one computes digits of pi by libgmp, the other is gofmt.
func TestKnownByPerf(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	known, _ := knownPrograms(t)
	source := filepath.Join(runtime.GOROOT(), "misc", "cgo", "gmp")
	for file, to := range map[string]string{"gmp.go": "gmp", "pi.go": "pi"} {
		text, err := os.ReadFile(filepath.Join(source, file))
		testcall.Must(t, err)
		changed := strings.NewReplacer("//go:build ignore", "", `big "."`, `big "known/gmp"`, "i >= 1000 ", "i >= 30000 ").Replace(string(text))
		testcall.Must(t, errors.Join(os.Mkdir(to, 0o755), os.WriteFile(filepath.Join(to, file), []byte(changed), 0o644)))
	}
	pi, err := Build(t.Context(), []string{"./pi"}, t.TempDir())
	testcall.Must(t, err)
	src := filepath.Join(runtime.GOROOT(), "src")
	gofmt, err := Build(t.Context(), []string{filepath.Join(src, "cmd", "gofmt")}, t.TempDir())
	testcall.Must(t, err)
	for name, test := range map[string]struct {
		program *Program
		args    []string
	}{
		"spin":    {known, []string{"-for", "4s", "spin-200"}},
		"mixture": {known, []string{"-for", "4s", "mixture"}},
		"pi":      {pi, nil},
		"gofmt":   {gofmt, []string{"-l", filepath.Join(src, "cmd")}},
	} {
		t.Run(name, func(t *testing.T) {
			data, script := filepath.Join(t.TempDir(), "perf.data"), filepath.Join(t.TempDir(), "perf.sh")
			text := fmt.Sprintf("#!/bin/sh\nexec perf record -q -e cpu-clock:u -F 999 -o %s -- %s \"$@\" >/dev/null\n", data, test.program.Path)
			testcall.Must(t, os.WriteFile(script, []byte(text), 0o755))
			watched := *test.program
			watched.Path = script
			p, _ := profileOf(t, &watched, test.args...)
			r := New(p, name, StoredCalibration(""), Stored, watched.Exact, 0)
			output, err := exec.Command("perf", "script", "-i", data, "-F", "ip,sym,dso").Output()
			testcall.Must(t, err)
			// What has no name of Go is C, except for what cgo has made.
			inC, all := 0.0, 0.0
			for line := range strings.Lines(string(output)) {
				_, where, _ := strings.Cut(strings.TrimSpace(line), " ")
				name, file, _ := cutLast(where, " ")
				ofGo := strings.Contains(name, ".") || strings.HasSuffix(name, "body") || strings.HasPrefix(name, "_cgo") || name == "crosscall2"
				if all++; !ofGo || strings.Contains(file, ".so") {
					inC++
				}
			}
			got, want := Of(r.Mechanisms, C).Share, inC/max(1, all)
			t.Logf("C itself is %.3f of %d samples, by perf %.3f of %.0f", got, r.Samples, want, all)
			if r.Samples < 300 || math.Abs(got-want) > 0.05 {
				t.Error("that is too far off, or of too few samples")
			}
		})
	}
}
