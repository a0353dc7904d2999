package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"modernc.org/memory"
)

// options are the options of a work.
type options struct {
	scale int    // amount of work: rows of SQL, or calls of the API in thousands
	conns int    // number of connections at a time, for works with several
	dir   string // for databases in files; empty
}

// A result is the output of the command, in JSON.
type result struct {
	Ours   bool   // whether the memory is that of this repository
	Digest string // of all data that was read

	// The cost. WaitNs is the time that goroutines have waited for mutexes, added up
	// over all goroutines.
	Ns, WaitNs int64
	PeakRSS    int64 // bytes; 0 if the system does not tell
}

// works are the works, by name. Each returns a digest of the data that it has read, which
// is the same for the same scale and number of connections.
var works = map[string]func(context.Context, options) (string, error){
	"single":  single,
	"private": private,
	"shared":  shared,
	"api":     api,
	"calloc0": calloc0,
}

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sqlitetest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	scale := flags.Int("scale", 1000, "how much `work` there is to do")
	conns := flags.Int("conns", 4, "`number` of connections, for private and shared")
	profile := flags.String("cpuprofile", "", "write where the time goes to `file`")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	work := works[flags.Arg(0)]
	if work == nil || flags.NArg() != 1 || *scale < 1 || *conns < 1 {
		names := slices.Sorted(maps.Keys(works))
		fmt.Fprintf(stderr, "usage: sqlitetest [flags] %s\n", strings.Join(names, "|"))
		return 2
	}
	r, err := measure(ctx, work, options{scale: *scale, conns: *conns}, *profile)
	if err == nil {
		err = json.NewEncoder(stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(stderr, "sqlitetest:", err)
		return 1
	}
	return 0
}

// measure does a work in a directory of its own, and writes a profile of it if profile is
// not empty.
func measure(ctx context.Context, work func(context.Context, options) (string, error), o options, profile string) (r result, err error) {
	if o.dir, err = os.MkdirTemp("", "sqlitetest"); err != nil {
		return r, err
	}
	defer os.RemoveAll(o.dir)
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return r, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return r, err
		}
		defer pprof.StopCPUProfile()
	}
	runtime.GC()
	waited, start := mutexWait(), time.Now()
	r.Digest, err = work(ctx, o)
	r.Ns, r.WaitNs = time.Since(start).Nanoseconds(), mutexWait()-waited
	r.Ours, r.PeakRSS = ours(), peakRSS()
	return r, err
}

// ours reports whether package memory is that of this repository: only that one has a
// field for a heap.
func ours() bool {
	_, ok := reflect.TypeFor[memory.Allocator]().FieldByName("heap")
	return ok
}

func mutexWait() int64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return int64(s[0].Value.Float64() * 1e9)
}

// peakRSS returns the largest resident size that the process has had.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}
