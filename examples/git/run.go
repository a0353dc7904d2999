//go:build cgo && libgit2

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/cheapgo/cheap/examples/git/internal/churn"
	"github.com/cheapgo/cheap/examples/git/internal/cleanup"
	"github.com/cheapgo/cheap/examples/git/internal/git"
	"github.com/cheapgo/cheap/examples/git/internal/manual"
	"github.com/cheapgo/cheap/examples/git/internal/owned"
	"github.com/cheapgo/cheap/examples/git/internal/raw"
	"github.com/cheapgo/cheap/own"
)

// A variant is a binding and a way to use it.
type variant struct {
	name   string
	open   git.Open
	forget bool // call no Close
}

var variants = []variant{
	{"own", owned.Open, true},
	{"own-close", owned.Open, false},
	{"cleanup", cleanup.Open, true},
	{"manual", manual.Open, false},
}

// names returns the names of the variants.
func names() string {
	var all []string
	for _, v := range variants {
		all = append(all, v.name)
	}
	return strings.Join(all, ", ")
}

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, o.usage)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "git:", err)
		return 2
	}
	start, releasing := time.Now(), raw.Released()
	report, err := o.variant.count(ctx, o.dir)
	if err != nil {
		fmt.Fprintln(stderr, "git:", err)
		return 1
	}
	w := bufio.NewWriter(stdout)
	fmt.Fprintln(w, "changes   lines  file")
	for _, f := range report.Files[:min(o.top, len(report.Files))] {
		fmt.Fprintf(w, "%7d %7d  %s\n", f.Changes, f.Lines, f.Path)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(stderr, "git:", err)
		return 1
	}
	if !o.stats {
		return 0
	}
	forgotten := live()
	if err := settle(ctx); err != nil {
		fmt.Fprintln(stderr, "git:", err)
		return 1
	}
	fmt.Fprintf(stderr, "%s: %d commits in %v; %d objects were live at the end, freed since; freeing took %v in all\n",
		o.variant.name, report.Commits, time.Since(start).Round(time.Millisecond),
		forgotten, (raw.Released() - releasing).Round(time.Microsecond))
	return 0
}

type options struct {
	variant variant
	top     int
	stats   bool
	dir     string
	usage   string
}

// parse parses arguments. An error is one line.
func parse(args []string) (options, error) {
	var o options
	var help strings.Builder
	flags := flag.NewFlagSet("git", flag.ContinueOnError)
	flags.SetOutput(&help)
	flags.Usage = func() {
		fmt.Fprintln(&help, "usage: git [flags] [repository]")
		flags.PrintDefaults()
	}
	flags.IntVar(&o.top, "n", 10, "print so many `files`")
	name := flags.String("binding", variants[0].name, "free C memory as this `binding` does: "+names())
	flags.BoolVar(&o.stats, "stats", false, "say how long it took, and free what was forgotten")
	err := flags.Parse(args)
	o.usage = help.String()
	if err != nil {
		return o, err
	}
	switch {
	case o.top < 0:
		return o, fmt.Errorf("-n %d: a number of files is not negative", o.top)
	case flags.NArg() > 1:
		return o, fmt.Errorf("%d repositories are given, and one can be read", flags.NArg())
	}
	o.dir = "."
	if flags.NArg() == 1 {
		o.dir = flags.Arg(0)
	}
	for _, v := range variants {
		if v.name == *name {
			o.variant = v
			return o, nil
		}
	}
	return o, fmt.Errorf("-binding %s: there are %s", *name, names())
}

// count counts the changes of a repository. When it returns, no Go value refers to an
// object of libgit2. Forgotten objects are not freed yet.
func (v variant) count(ctx context.Context, dir string) (churn.Report, error) {
	repo, err := v.open(dir)
	if err != nil {
		return churn.Report{}, err
	}
	if !v.forget {
		defer repo.Close()
	}
	return churn.Count(ctx, repo, v.forget)
}

// live returns the number of live objects of libgit2.
func live() int {
	n := 0
	for k := range raw.Kinds {
		n += raw.Live(k)
	}
	return n
}

// settle waits until all forgotten objects are freed. A program needs that only to
// show that it does not leak.
func settle(ctx context.Context) error {
	for live() > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d objects are still live: %w", live(), err)
		}
		runtime.GC()
		if err := own.Flush(ctx); err != nil {
			return err
		}
		// The cleanups of the other binding run after the collection. The runtime
		// does not say when the last one has run.
		for before := -1; live() != before; time.Sleep(20 * time.Microsecond) {
			before = live()
		}
	}
	return nil
}
