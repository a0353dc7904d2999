//go:build linux && cgo && libjpeg

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
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/chart"
	"github.com/cheapgo/cheap/examples/thumbnails/internal/testcard"
)

type options struct {
	work
	size    [2]int // of the images that are made
	every   time.Duration
	most    int64 // bytes of resident memory
	variant string
	chart   string
	usage   string
}

// cards is the number of input images. They are read again and again.
const cards = 8

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, o.usage)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "thumbnails:", err)
		return 2
	}
	if o.variant != "" {
		err = o.runOne(ctx, stdout)
	} else {
		err = o.runAll(ctx, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "thumbnails:", err)
		return 1
	}
	return 0
}

// parse parses arguments. An error is one line.
func parse(args []string) (options, error) {
	o := options{size: [2]int{1600, 1200}}
	var help strings.Builder
	flags := flag.NewFlagSet("thumbnails", flag.ContinueOnError)
	flags.SetOutput(&help)
	flags.Usage = func() {
		fmt.Fprintln(&help, "usage: thumbnails [flags] [chart.svg]")
		flags.PrintDefaults()
	}
	flags.IntVar(&o.images, "n", 400, "make so many `thumbnails`")
	flags.IntVar(&o.width, "width", 160, "of so many `pixels` in a row")
	flags.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "with so many `goroutines`")
	flags.Func("size", "of images of this size, `width`x`height` (default 1600x1200)", o.parseSize)
	flags.DurationVar(&o.every, "every", 10*time.Millisecond, "look at the memory after each `interval`")
	most := flags.Float64("most", 4, "stop at so many `GiB` of memory")
	flags.StringVar(&o.variant, "variant", "", "measure one `variant`, in this process, and print what was found as JSON: "+names())
	flags.StringVar(&o.dir, "dir", "", "make thumbnails of the *.jpg in this `directory`, in one below, rather than of images made up")
	err := flags.Parse(args)
	o.usage = help.String()
	o.most = int64(*most * (1 << 30))
	switch {
	case err != nil:
		return o, err
	case o.images < 1 || o.width < 1 || o.workers < 1:
		return o, fmt.Errorf("-n %d, -width %d, -workers %d: each is at least 1", o.images, o.width, o.workers)
	case o.every <= 0 || o.most <= 0:
		return o, fmt.Errorf("-every %v, -most %v: each is more than 0", o.every, *most)
	case flags.NArg() > 1:
		return o, fmt.Errorf("%d charts are given, and one can be written", flags.NArg())
	case o.variant != "" && o.dir == "":
		return o, errors.New("-variant needs -dir")
	}
	o.chart = flags.Arg(0)
	if _, ok := find(o.variant); !ok && o.variant != "" {
		return o, fmt.Errorf("-variant %s: there are %s", o.variant, names())
	}
	return o, nil
}

func (o *options) parseSize(s string) error {
	width, height, _ := strings.Cut(s, "x")
	for i, n := range []string{width, height} {
		pixels, err := strconv.Atoi(n)
		if err != nil || pixels < 1 || pixels > 1<<16-1 { // the limits of JPEG
			return errors.New("want two numbers of pixels, as in 1600x1200")
		}
		o.size[i] = pixels
	}
	return nil
}

func names() string {
	var all []string
	for _, v := range variants {
		all = append(all, v.name)
	}
	return strings.Join(all, ", ")
}

func find(name string) (variant, bool) {
	for _, v := range variants {
		if v.name == name {
			return v, true
		}
	}
	return variant{}, false
}

// runOne measures one variant.
func (o options) runOne(ctx context.Context, stdout io.Writer) error {
	v, _ := find(o.variant)
	if err := os.MkdirAll(filepath.Join(o.dir, thumbnails), 0o777); err != nil {
		return err
	}
	m, err := v.measure(ctx, o.work, o.every, o.most)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(m)
}

// runAll measures each variant in a process of its own, prints the results, and draws
// the chart if the arguments name a file for it.
func (o options) runAll(ctx context.Context, stdout io.Writer) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "thumbnails")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if _, err := testcard.Make(dir, cards, o.size[0], o.size[1]); err != nil {
			return err
		}
		o.dir = dir
	}
	var curves []chart.Curve
	fmt.Fprintln(stdout, "variant   thumbnails  seconds  collections  most resident  most in images")
	for _, v := range variants {
		m, err := o.child(ctx, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		name := v.title
		if m.Full {
			name += " (stopped)"
		}
		curves = append(curves, chart.Curve{Name: name, Points: m.Points})
		const mib = 1 << 20
		_, err = fmt.Fprintf(stdout, "%-9s %10d %8.2f %12d %10.0f MiB %10.0f MiB\n",
			v.name, m.Images, m.Took.Seconds(), m.Cycles, float64(m.peak())/mib, float64(m.Live)/mib)
		if err != nil {
			return err
		}
	}
	if o.chart == "" {
		return nil
	}
	var svg bytes.Buffer
	title := fmt.Sprintf("%d thumbnails through libjpeg-turbo, nothing closed", o.images)
	if err := chart.Draw(&svg, title, chart.Top, curves); err != nil {
		return err
	}
	return os.WriteFile(o.chart, svg.Bytes(), 0o666)
}

// child runs this program in a child process, which measures one variant.
func (o options) child(ctx context.Context, v variant) (m measurement, err error) {
	program, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, program,
		"-variant="+v.name,
		"-dir="+o.dir,
		fmt.Sprintf("-n=%d", o.images),
		fmt.Sprintf("-width=%d", o.width),
		fmt.Sprintf("-workers=%d", o.workers),
		fmt.Sprintf("-every=%v", o.every),
		fmt.Sprintf("-most=%v", float64(o.most)/(1<<30)))
	if !v.cmem {
		cmd.Env = append(os.Environ(), "CHEAP_CMEM=off") // for each variant has the same program
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return m, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return m, json.Unmarshal(stdout.Bytes(), &m)
}
