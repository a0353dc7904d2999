// Proof runs projects of others with and without cheap.
//
//	go run . [flags] NAME
//
// fetches a project at a fixed version by the module proxy into a temporary folder, puts the files of
// NAME/_tree in place of its own, runs its tests with and without them, runs a load, and prints what
// it has measured. It exits with 1 if a test fails only with our files, or if a bar is not met.
// NAME/README.md says what the files change. `go run . -h` describes the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command. It returns 0, 1 after an error, and 2 if the arguments are wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: go run . [flags] NAME\n\nNAME is one of %s.\n\n", strings.Join(names(), ", "))
		flags.PrintDefaults()
	}
	tests := flags.Bool("tests", true, "run the project's tests")
	load := flags.Bool("load", true, "run the load")
	rounds := flags.Int("rounds", 5, "how often the load is run in each `way`, in turn")
	store := flags.Bool("store", false, "write what was measured to NAME/figures.json, of which the tables of its page are made")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	p := find(flags.Arg(0))
	if p == nil || flags.NArg() != 1 || *rounds < 1 {
		flags.Usage()
		return 2
	}
	if err := prove(ctx, p, *tests, *load, *rounds, *store, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "proof: %v\n", err)
		return 1
	}
	return 0
}

// prove does what the flags ask for.
func prove(ctx context.Context, p *project, tests, load bool, rounds int, store bool, stdout, stderr io.Writer) error {
	c, err := fetch(ctx, p, stderr)
	if err != nil {
		return err
	}
	defer c.remove()
	f := newFigures(p)
	if tests {
		if err := c.test(ctx, f); err != nil {
			return err
		}
	}
	if load {
		if err := c.load(ctx, f, rounds); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(stdout, f.tables(p)); err != nil {
		return err
	}
	if err := f.verdict(p); err != nil {
		return err
	}
	if store {
		return f.store(p)
	}
	return nil
}
