package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	scale = flag.Int("scale", 200, "how much work the tests and benchmarks do")
	conns = flag.Int("conns", 4, "how many connections at once the tests and benchmarks use")
)

// built builds the command with a go.mod and returns its path.
func built(t testing.TB, modfile string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), modfile+".exe")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-modfile="+modfile, "-o", path, ".")
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// child runs the command in a process of its own, and returns its processor time as well.
func child(t testing.TB, path string, args ...string) (r result, cpu time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, append([]string{fmt.Sprint("-scale=", *scale), fmt.Sprint("-conns=", *conns)}, args...)...)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil || r.Digest == "" {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return r, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// TestSameResults: each work has the same results with both memories, in this process,
// which may be instrumented, and in one with the original. Other rows give another digest.
func TestSameResults(t *testing.T) {
	original := built(t, "original.mod")
	for name, work := range works {
		got, err := measure(work, options{scale: *scale, conns: *conns})
		if err != nil {
			t.Fatal(err)
		}
		want, _ := child(t, original, name)
		if !got.Ours || want.Ours || got.Digest != want.Digest {
			t.Errorf("%s: %+v, with the original %+v", name, got, want)
		}
		if other, err := measure(work, options{scale: *scale + 5, conns: *conns}); err != nil || other.Digest == got.Digest {
			t.Errorf("%s: other rows: %s, %v", name, other.Digest, err)
		}
	}
}

// BenchmarkMemory has the cost of the same work in processes with our memory and with the original,
// which take turns. For benchstat: -count=9, and -col=/memory.
func BenchmarkMemory(b *testing.B) {
	paths := map[string]string{"original": built(b, "original.mod"), "cheap": built(b, "go.mod")}
	for name := range works {
		for _, memory := range []string{"original", "cheap"} {
			b.Run("work="+name+"/memory="+memory, func(b *testing.B) {
				for b.Loop() {
					r, cpu := child(b, paths[memory], name)
					b.ReportMetric(float64(r.Ns), "ns/op")
					b.ReportMetric(float64(cpu), "cpu-ns/op")
					b.ReportMetric(float64(r.PeakRSS), "peak-RSS-bytes")
				}
			})
		}
	}
}
