//go:build linux && cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
)

const mib = 1 << 20

type options struct {
	program    program
	ways       []*way
	goroutines int
	limit      int64 // MiB
	seconds    float64
	warm       float64 // the part of seconds that does not count
	factor     float64
	beside     int
	table      bool
	child      bool
	chart      string
	usage      string
}

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, o.usage)
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "container:", err)
		return 2
	case o.child:
		err = o.runChild(stdout)
	case o.table:
		err = o.runTable(ctx, stdout)
	default:
		err = o.runProgram(ctx, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "container:", err)
		return 1
	}
	return 0
}

// parse parses arguments. An error is one line.
func parse(args []string) (o options, err error) {
	var help strings.Builder
	flags := flag.NewFlagSet("container", flag.ContinueOnError)
	flags.SetOutput(&help)
	flags.Usage = func() {
		fmt.Fprintln(&help, "usage: container [flags] [chart.svg]")
		flags.PrintDefaults()
		for _, p := range programs {
			fmt.Fprintf(&help, "program %s: %s\n", p.name, p.what)
		}
		for _, w := range ways {
			fmt.Fprintf(&help, "way %s: %s\n", w.name, w.title)
		}
	}
	name := flags.String("program", "server", "run this `program`")
	names := flags.String("ways", "", "free objects in these `ways` (default cleanup,close,own; with -table close,own,reserve)")
	flags.IntVar(&o.goroutines, "n", 64, "serve in so many `goroutines`")
	flags.Int64Var(&o.limit, "limit", 0, "in a container of so many `MiB` (default: a quarter and 16 MiB more than the program needs)")
	flags.Float64Var(&o.seconds, "seconds", 5, "for so many `seconds`")
	flags.Float64Var(&o.warm, "warm", 0, "do not count requests of the first `seconds`")
	flags.Float64Var(&o.factor, "factor", 1, "declare the size of an object times this `factor`")
	flags.IntVar(&o.beside, "beside", 0, "beside so many `goroutines` that compute")
	flags.BoolVar(&o.table, "table", false, "run all programs, with 1, 8 and 64 goroutines")
	flags.BoolVar(&o.child, "child", false, "run in this process, without a container, and print a report as JSON")
	err = flags.Parse(args)
	o.usage = help.String()
	o.chart = flags.Arg(0)
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == *name })
	switch {
	case err != nil:
		return o, err
	case flags.NArg() > 1 || flags.NArg() == 1 && (o.table || o.child):
		return o, errors.New("one chart can be written, without -table")
	case i < 0:
		return o, fmt.Errorf("-program %s: -h lists the programs", *name)
	case o.goroutines < 1 || o.seconds <= 0 || o.factor < 0 || o.limit < 0 || o.beside < 0 || o.warm < 0 || o.warm >= o.seconds:
		return o, errors.New("-n and -seconds are more than 0, -limit, -factor, -beside and -warm at least 0, -warm less than -seconds")
	}
	o.program = programs[i]
	if o.limit == 0 && !o.table && !o.child {
		if o.program.needs[o.goroutines] == 0 {
			return o, fmt.Errorf("it is not known what %s needs with %d goroutines: give -limit", *name, o.goroutines)
		}
		o.limit = o.program.limit(o.goroutines)
	}
	if *names == "" {
		*names = "cleanup,close,own"
		if o.table {
			*names = "close,own,reserve"
		}
	}
	for name := range strings.SplitSeq(*names, ",") {
		w := find(name)
		if w == nil {
			return o, fmt.Errorf("-ways %s: -h lists the ways", name)
		}
		o.ways = append(o.ways, w)
	}
	return o, nil
}

// runChild is the child's part.
func (o options) runChild(stdout io.Writer) error {
	factor = o.factor
	r, err := o.program.serve(o.ways[0], o.goroutines, time.Duration(o.seconds*float64(time.Second)), time.Duration(o.warm*float64(time.Second)))
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(r)
}

const header = "program  goroutines  MiB  way      most MiB  requests/s    p50 ms    p99 ms  cpu us  refused  waits  collections  trims\n"

// runProgram runs one program in each way, prints a line for each, and draws the chart if the arguments
// name a file for it.
func (o options) runProgram(ctx context.Context, stdout io.Writer) error {
	fmt.Fprint(stdout, header)
	var curves []chart.Curve
	for _, w := range o.ways {
		points, killed, _, err := o.contained(ctx, w, stdout)
		if err != nil {
			return err
		}
		title := w.title
		if killed {
			title += " (killed)"
		}
		curves = append(curves, chart.Curve{Name: title, Points: o.alive(points, killed)})
	}
	if o.chart == "" {
		return nil
	}
	if len(curves) < chart.Curves {
		end := time.Duration(o.seconds * float64(time.Second))
		curves = append(curves, chart.Curve{Name: "limit", Points: []chart.Point{{Bytes: o.limit * mib}, {At: end, Bytes: o.limit * mib}}})
	}
	var svg bytes.Buffer
	title := fmt.Sprintf("%d MiB, %d goroutines: %s", o.limit, o.goroutines, o.program.what)
	if err := chart.Draw(&svg, title, chart.Bottom, curves); err != nil {
		return err
	}
	return os.WriteFile(o.chart, svg.Bytes(), 0o666)
}

// alive returns the points from before the process ended.
func (o options) alive(points []chart.Point, killed bool) []chart.Point {
	end := 1
	for i, p := range points {
		if killed && p.Bytes > points[end].Bytes || !killed && p.At.Seconds() <= o.seconds {
			end = i
		}
	}
	return points[:end+1]
}

// runTable runs all programs.
func (o options) runTable(ctx context.Context, stdout io.Writer) error {
	fmt.Fprint(stdout, header)
	runs, died, refused := 0, 0, 0
	for _, p := range programs {
		for _, n := range goroutines {
			for _, w := range o.ways {
				o.program, o.goroutines, o.limit = p, n, p.limit(n)
				_, killed, r, err := o.contained(ctx, w, stdout)
				if err != nil {
					return err
				}
				runs++
				refused += r.Refused
				if killed {
					died++
				}
			}
		}
	}
	fmt.Fprintf(stdout, "%d of %d were killed, %d requests were refused\n", died, runs, refused)
	return nil
}

// contained runs the program in a container, and prints a line. It returns what the cgroup was charged, over
// time.
func (o options) contained(ctx context.Context, w *way, stdout io.Writer) (points []chart.Point, killed bool, r report, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, false, r, err
	}
	g, err := makeCgroup(o.limit * mib)
	if err != nil {
		return nil, false, r, err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	defer compute(o.beside)()
	cmd := exec.CommandContext(ctx, program, "-child", "-program="+o.program.name, "-ways="+w.name,
		fmt.Sprintf("-n=%d", o.goroutines), fmt.Sprintf("-seconds=%v", o.seconds), fmt.Sprintf("-warm=%v", o.warm), fmt.Sprintf("-factor=%v", o.factor))
	cmd.Env = w.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	g.enter(cmd)
	if err := cmd.Start(); err != nil {
		return nil, false, r, err
	}
	begin, ended := time.Now(), make(chan error)
	go func() { ended <- cmd.Wait() }()
	most := int64(0)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		used := g.used()
		most = max(most, used)
		points = append(points, chart.Point{At: time.Since(begin), Bytes: used})
		select {
		case <-tick.C:
			continue
		case err = <-ended:
		}
		tick.Stop()
		break
	}
	fmt.Fprintf(stdout, "%-8s %10d %4d  %-8s %8d  ", o.program.name, o.goroutines, o.limit, w.name, most/mib)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && ctx.Err() == nil {
		fmt.Fprintf(stdout, "    killed after %.2f s\n", time.Since(begin).Seconds())
		return points, true, r, nil
	}
	if err != nil {
		fmt.Fprintln(stdout)
		return nil, false, r, fmt.Errorf("%s: %w: %s", w.name, err, bytes.TrimSpace(errs.Bytes()))
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return nil, false, r, err
	}
	fmt.Fprintf(stdout, "%10.0f  %8.2f  %8.2f  %6d  %7d  %5d  %11d  %5d\n",
		float64(r.Requests)/(o.seconds-o.warm), r.P50.Seconds()*1000, r.P99.Seconds()*1000, r.CPU.Microseconds(), r.Refused, r.Waits, r.Collections, r.Trims)
	return points, false, r, nil
}

// compute has goroutines compute until the function that it returns is called.
func compute(n int) (stop func()) {
	var over atomic.Bool
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + n) // each has a thread of its own, as other processes have
	for range n {
		go func() {
			for x := uint64(1); !over.Load(); x = x*6364136223846793005 + 1442695040888963407 {
			}
		}()
	}
	return func() {
		over.Store(true)
		runtime.GOMAXPROCS(before)
	}
}
