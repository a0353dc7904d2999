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
	"time"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
)

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(stderr)
	goroutines := flags.Int("n", 64, "serve in so many `goroutines`")
	seconds := flags.Float64("seconds", 5, "for so many `seconds`, each way")
	name := flags.String("variant", "", "measure one `variant`, in this process, and print what was found as JSON")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *goroutines < 1 || *seconds <= 0 || flags.NArg() > 1:
		fmt.Fprintln(stderr, "server: -n and -seconds are more than 0, and one chart can be written")
		return 2
	}
	if *name != "" {
		err = runOne(*name, *goroutines, time.Duration(*seconds*float64(time.Second)), stdout)
	} else {
		err = runAll(ctx, *goroutines, *seconds, flags.Arg(0), stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "server:", err)
		return 1
	}
	return 0
}

// runOne measures one variant.
func runOne(name string, goroutines int, d time.Duration, stdout io.Writer) error {
	for _, v := range variants {
		if v.name == name {
			m, err := v.measure(goroutines, d)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(m)
		}
	}
	return fmt.Errorf("-variant %s: there is no such variant", name)
}

// runAll measures each variant in a process of its own, prints the results, and draws
// the chart if a file is named.
func runAll(ctx context.Context, goroutines int, seconds float64, file string, stdout io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var curves []chart.Curve
	fmt.Fprintln(stdout, "variant   requests/s  collections  waits/request  most resident")
	for _, v := range variants {
		cmd := exec.CommandContext(ctx, program, "-variant="+v.name, fmt.Sprintf("-n=%d", goroutines), fmt.Sprintf("-seconds=%v", seconds))
		var out, errors bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errors
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", v.name, err, bytes.TrimSpace(errors.Bytes()))
		}
		var m measurement
		if err := json.Unmarshal(out.Bytes(), &m); err != nil {
			return err
		}
		curves = append(curves, chart.Curve{Name: v.title, Points: m.Points})
		fmt.Fprintf(stdout, "%-9s %10.0f %12d %14.2f %10.0f MiB\n",
			v.name, float64(m.Requests)/seconds, m.Cycles, float64(m.Waits)/float64(max(m.Requests, 1)), float64(m.peak())/(1<<20))
	}
	if file == "" {
		return nil
	}
	var svg bytes.Buffer
	title := fmt.Sprintf("a server in %d goroutines, images of 64 KiB to 4 MiB in C", goroutines)
	if err := chart.Draw(&svg, title, curves); err != nil {
		return err
	}
	return os.WriteFile(file, svg.Bytes(), 0o666)
}
