//go:build cgo && cheap_times

package explain

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The programs of testdata/known have shares that are known by construction. The programs
// themselves measure them, without a profile, by the times of their parts. So no other program may
// run.

var long = flag.Bool("explain.long", false, "measure all programs, with all versions of Go")

// versions are the versions of Go that build the programs: that of the go command, and the
// newest.
var versions = []string{"", "go1.27.0"}

// scenes are the programs.
var (
	scenes      = []string{"noop", "result", "struct", "spin-200", "spin-2000", "spin-here-200", "spin-result-200", "spin-struct-200", "callback", "callback-10", "callback-10000", "cstring", "cleanup", "cleanup-c", "finalizer", "locks", "mixture"}
	shortScenes = map[string][]string{"": {"noop", "result", "struct", "spin-200", "spin-here-200", "spin-struct-200", "callback-10000", "cstring", "cleanup", "mixture"}, "go1.27.0": {"mixture"}}
)

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
	if err := os.CopyFS(dir, source); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module known\n\ngo 1.24\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	plain = filepath.Join(out, "plain.exe")
	build := exec.Command("go", "build", "-o", plain, ".")
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	t.Chdir(dir)
	built, err := Build(t.Context(), []string{"."}, out)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	return truth
}

// shareNamed returns a share of a report by its name in the programs.
func shareNamed(r *Report, name string) Share {
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
	for _, version := range versions {
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
			if err != nil {
				t.Fatal(err)
			}
			cal, err := Calibrate(t.Context(), calibrator)
			if err != nil {
				t.Fatal(err)
			}
			list := shortScenes[version]
			if *long {
				list = scenes
			}
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
	if err != nil {
		t.Fatal(err)
	}
	return New(p, scene, cal, Stored, false, 0)
}
