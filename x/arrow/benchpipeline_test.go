//go:build cgo && linux

package cheaparrow_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/cheapgo/cheap/x/arrow/internal/pipeline"
)

var (
	rows    = flag.Int("rows", 1_000_000, "rows of the table that is taken through the pipeline")
	measure = flag.String("measure", "", "take the pipeline through once with this allocator, print what it took, and exit")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *measure != "" {
		if err := measurePipeline(*measure); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A taken is the cost of the pipeline in one process.
type taken struct {
	Wall, CPU time.Duration
	Cycles    uint32        // of the collector
	Collector time.Duration // processor time of the collector
	Peak      int64         // resident bytes
}

// A setting is an allocator, and how much the collector lets the Go heap grow. Memory
// outside the Go heap does not count for that, so with ours the Go heap is a quarter of
// that with Go memory: the collector runs more often, and has less to do. A part of the
// saved memory can be used to let it run less often.
type setting struct{ name, allocator, gogc string }

var settings = []setting{
	{"cheap", "cheap", "100"},
	{"cheap,GOGC=300", "cheap", "300"},
	{"go", "go", "100"},
	{"mallocator", "mallocator", "100"},
}

// ours is the number of settings, from the first, with our allocator.
const ours = 2

// BenchmarkPipeline takes a table through the pipeline, each time in a process of its
// own, with each setting in turn. It reports the cost with ours divided by that with the
// others: time on the clock, processor time, collections, and peak resident memory.
func BenchmarkPipeline(b *testing.B) {
	all := make([][]taken, len(settings))
	for b.Loop() {
		for round := range *rounds {
			for i := range settings {
				i = (i + round) % len(settings)
				all[i] = append(all[i], child(b, settings[i]))
			}
		}
	}
	b.ReportMetric(0, "ns/op") // not the time of anything
	for _, m := range []struct {
		unit string
		of   func(taken) float64
	}{
		{"s", func(t taken) float64 { return t.Wall.Seconds() }},
		{"cpu-s", func(t taken) float64 { return t.CPU.Seconds() }},
		{"collector-cpu-s", func(t taken) float64 { return t.Collector.Seconds() }},
		{"collections", func(t taken) float64 { return float64(t.Cycles) }},
		{"peak-MiB", func(t taken) float64 { return float64(t.Peak) / (1 << 20) }},
	} {
		var medians []float64
		for _, runs := range all {
			var xs []float64
			for _, t := range runs {
				xs = append(xs, m.of(t))
			}
			medians = append(medians, median(xs))
		}
		for i, us := range settings[:ours] {
			b.ReportMetric(medians[i], us.name+"-"+m.unit)
			for j, than := range settings[ours:] {
				b.ReportMetric(medians[i]/medians[ours+j], us.name+"/"+than.name+"-"+m.unit)
			}
		}
	}
}

// child measures the pipeline in a process of its own.
func child(b *testing.B, s setting) taken {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-measure="+s.allocator, "-rows="+strconv.Itoa(*rows))
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GOGC="+s.gogc, "GOMEMLIMIT=off")
	out, err := cmd.Output()
	var t taken
	if err == nil {
		err = json.Unmarshal(out, &t)
	}
	if err != nil {
		b.Fatalf("the process that measures %s: %v", s.name, err)
	}
	return t
}

// measurePipeline runs in the child.
func measurePipeline(allocator string) error {
	i := slices.IndexFunc(allocators, func(a allocatorRow) bool { return a.name == allocator })
	if i < 0 {
		return fmt.Errorf("no allocator %q", allocator)
	}
	dir, err := os.MkdirTemp("", "pipeline")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	collector, cpu, start := collectorTime(), cpuTime(), time.Now()
	if _, err := pipeline.Run(context.Background(), allocators[i].mem, *rows, dir); err != nil {
		return err
	}
	t := taken{Wall: time.Since(start), CPU: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	t.Cycles = after.NumGC - before.NumGC
	runtime.GC() // brings collectorTime up to date
	t.Collector = collectorTime() - collector
	if t.Peak, err = peakResident(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // no argument can be wrong
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// collectorTime returns the processor time of the collector, up to its last cycle.
func collectorTime() time.Duration {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}

// peakResident returns the largest resident memory. Maxrss of getrusage cannot be
// used: it begins with that of the parent.
func peakResident() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	n, ok := procfs.Bytes(status, "VmHWM")
	if !ok {
		return 0, fmt.Errorf("no VmHWM in /proc/self/status")
	}
	return n, nil
}
