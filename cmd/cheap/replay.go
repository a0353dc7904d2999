package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
	"github.com/cheapgo/cheap/cmd/cheap/internal/recorded"
	"github.com/cheapgo/cheap/cmd/cheap/internal/replay"
)

// settings is what the arguments of `cheap replay` ask for.
type settings struct {
	allocators []peers.Info
	runs       int
	format     string
	verify     bool
	rss        bool
	sources    []source
}

const replayUsage = `Replay performs every allocation that a program made, as it was recorded in a
trace, on one allocator after the other. It reports the nanoseconds per
operation, and how much memory stayed resident.

Usage:

	cheap replay [flags] [trace ...]

A trace is a file, or the name of one that the command has with it: %s.
Without any, it replays those.

Flags:

%s
Allocators:

%s`

// parseSettings reads the arguments. It returns flag.ErrHelp where they ask for
// help, a usageError where they are not understood.
func parseSettings(args []string) (*settings, *flag.FlagSet, error) {
	s := new(settings)
	var available []string
	for _, info := range peers.Available() {
		available = append(available, info.Name)
	}

	flags := flag.NewFlagSet("cheap replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	allocators := flags.String("allocator", strings.Join(available, ","), "replay on these `allocators`, separated by commas")
	flags.IntVar(&s.runs, "runs", 5, "time this `number` of rounds, each of which replays on every allocator once")
	flags.StringVar(&s.format, "format", "text", "report in this `format`: text, json, or bench, which benchstat reads")
	flags.BoolVar(&s.verify, "verify", false, "before timing, replay once with every block filled and its contents verified")
	flags.BoolVar(&s.rss, "rss", true, "measure resident memory, in a process of its own for each trace and allocator")

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, flags, err
	}
	if err != nil {
		return nil, flags, usagef("%v; the flags are -allocator, -format, -rss, -runs and -verify", err)
	}
	for _, name := range strings.Split(*allocators, ",") {
		info, err := peers.Lookup(name)
		if err != nil {
			return nil, flags, usagef("-allocator: %v", err)
		}
		for _, other := range s.allocators {
			if other.Name == name {
				return nil, flags, usagef("-allocator: %s is named twice; name each once", name)
			}
		}
		s.allocators = append(s.allocators, info)
	}
	if s.runs < 1 {
		return nil, flags, usagef("-runs: %d is too few; 1 or more are accepted", s.runs)
	}
	if _, ok := reporters[s.format]; !ok {
		return nil, flags, usagef("-format: unknown format %q; there are text, json and bench", s.format)
	}
	names := flags.Args()
	if len(names) == 0 {
		names = recorded.Names
	}
	for _, arg := range names {
		if strings.HasPrefix(arg, "-") {
			return nil, flags, usagef("the flag %s follows a trace; flags are accepted before the first trace", arg)
		}
		s.sources = append(s.sources, newSource(arg))
	}
	return s, flags, nil
}

// replayHelp describes the command.
func replayHelp(flags *flag.FlagSet) string {
	var options, allocators strings.Builder
	flags.SetOutput(&options)
	flags.PrintDefaults()
	for _, info := range peers.All() {
		fmt.Fprintf(&allocators, "  %-10s%s\n", info.Name, info.About)
		if info.Miss != "" {
			fmt.Fprintf(&allocators, "  %-10snot in this build: %s\n", "", info.Miss)
		}
	}
	return fmt.Sprintf(replayUsage, strings.Join(recorded.Names, ", "), options.String(), allocators.String())
}

// A replayed is what one trace did on one allocator.
type replayed struct {
	trace     string
	allocator string
	timing    replay.Timing
	memory    *replay.Memory // nil when it was not measured
}

// replayCommand is `cheap replay`.
func replayCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, flags, err := parseSettings(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err := io.WriteString(stdout, replayHelp(flags))
		return err
	}
	if err != nil {
		return err
	}

	progress := newProgress(stderr, "cheap replay")
	defer progress.clear()
	report := reporters[s.format](stdout)
	if err := report.begin(); err != nil {
		return err
	}
	for _, src := range s.sources {
		if err := replaySource(ctx, s, src, report, progress); err != nil {
			progress.clear()
			return err
		}
	}
	return report.end()
}

// replaySource replays one trace on every allocator and reports it.
func replaySource(ctx context.Context, s *settings, src source, report reporter, progress *progress) error {
	progress.show("%s: reading", src.name)
	tr, err := src.read()
	if err != nil {
		return err
	}
	if s.verify {
		for _, info := range s.allocators {
			progress.show("%s: verifying %s", src.name, info.Name)
			if err := replay.Verify(ctx, tr, info); err != nil {
				return fmt.Errorf("%s: %w", src.arg, err)
			}
		}
	}

	times, err := replay.Time(ctx, tr, s.allocators, s.runs, func(round int) {
		progress.show("%s: round %d of %d", src.name, round+1, s.runs)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", src.arg, err)
	}

	results := make([]replayed, len(s.allocators))
	for i, info := range s.allocators {
		results[i] = replayed{trace: src.name, allocator: info.Name, timing: times[i]}
		if !s.rss {
			continue
		}
		progress.show("%s: resident memory on %s", src.name, info.Name)
		memory, err := measureMemory(ctx, info, src)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			progress.warn("resident memory is not measured: %v", err)
			s.rss = false
		case err != nil:
			return fmt.Errorf("%s: %w", src.arg, err)
		default:
			results[i].memory = &memory
		}
	}
	progress.clear()
	return report.trace(tr, s, results)
}
