//go:build cgo && unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// jemallocs are the paths of jemalloc on different systems.
var jemallocs = []string{
	"/usr/lib/*-linux-gnu/libjemalloc.so.2", // Debian, Ubuntu
	"/usr/lib64/libjemalloc.so.2",           // Fedora, SUSE
	"/usr/lib/libjemalloc.so.2",             // Alpine, Arch
	"/usr/local/lib/libjemalloc.so.2",
}

// inPreloaded runs only the calling test or benchmark again, in a child process with
// another malloc. It reports the metrics of a benchmark, and fails if the child
// fails. If that malloc is not installed, it skips.
func inPreloaded(tb testing.TB, malloc string) {
	tb.Helper()
	if os.Getenv(preloadedEnv) != "" {
		tb.Fatalf("preloading %s has not made it this process's malloc", os.Getenv(preloadedEnv))
	}
	if malloc != "jemalloc" {
		tb.Skip("another malloc is preloaded")
	}
	library := findJemalloc()
	if library == "" {
		tb.Skipf("there is no jemalloc at %s; Debian and Ubuntu have it in the package libjemalloc2", strings.Join(jemallocs, ", "))
	}
	run, bench := "^$", "^$"
	b, isBenchmark := tb.(*testing.B)
	if isBenchmark {
		bench = exactly(tb.Name())
	} else {
		run = exactly(tb.Name())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run="+run, "-test.bench="+bench, "-test.benchtime=1x",
		"-test.cpu="+strconv.Itoa(runtime.GOMAXPROCS(0)), "-test.timeout=0")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library, preloadedEnv+"="+library,
		"GORACE=atexit_sleep_ms=0") // otherwise the exit takes a second
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	if !isBenchmark {
		return
	}
	metrics, err := readMetrics(string(out))
	if err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	for unit, value := range metrics {
		if unit == "ns/op" {
			continue // not the time of anything
		}
		report(b, unit, value)
	}
	b.ReportMetric(0, "ns/op")
}

func findJemalloc() string {
	for _, pattern := range jemallocs {
		if files, _ := filepath.Glob(pattern); len(files) > 0 {
			return files[0]
		}
	}
	return ""
}

// exactly returns a pattern for one test or benchmark.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + parts[i] + "$"
	}
	return strings.Join(parts, "/")
}

// readMetrics returns the metrics by unit of the one benchmark in a test
// binary's output.
func readMetrics(out string) (map[string]float64, error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(line, "Benchmark") {
			continue // a result is a name, a number of iterations, and pairs
		}
		metrics := map[string]float64{}
		for i := 2; i < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("the child's benchmark: %w", err)
			}
			metrics[fields[i+1]] = v
		}
		return metrics, nil
	}
	return nil, errors.New("the child has printed no result of a benchmark")
}

func TestReadMetrics(t *testing.T) {
	got, err := readMetrics("goos: linux\nBenchmarkX/a=b-2 \t       1\t         0.5000 bar\t  1.25 x-manual-wall\nPASS\n")
	if err != nil || len(got) != 2 || got["bar"] != 0.5 || got["x-manual-wall"] != 1.25 {
		t.Errorf("read %v, %v", got, err)
	}
	if got, err := readMetrics("PASS\n"); err == nil {
		t.Errorf("read %v of nothing", got)
	}
}
