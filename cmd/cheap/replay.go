package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/figure"
	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
	"github.com/cheapgo/cheap/cmd/cheap/internal/recorded"
	"github.com/cheapgo/cheap/cmd/cheap/internal/replay"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// replaySettings is what the arguments of `cheap replay` ask for.
type replaySettings struct {
	allocators []peers.Info
	runs       int
	out        output
	verify     bool
	rss        bool
	sources    []source
}

const replayUsage = `Replay performs the allocations of a real program, as a trace has recorded them,
on one allocator after the other. It reports the time of an operation, and how
much memory was resident.

Usage:

	cheap replay [flags] [trace ...]

A trace is a file, or the name of a trace that is part of the command: %s.
Without arguments, the command replays those.

Flags:

%s
Allocators:

%s`

// parseReplay reads the arguments. It returns flag.ErrHelp where they ask for
// help, and a usageError where they are wrong.
func parseReplay(args []string) (*replaySettings, *flag.FlagSet, error) {
	s := new(replaySettings)
	var available []string
	for _, info := range peers.Available() {
		available = append(available, info.Name)
	}

	flags := flag.NewFlagSet("cheap replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	allocators := flags.String("allocator", strings.Join(available, ","), "replay on these `allocators`, with commas between them")
	flags.IntVar(&s.runs, "runs", 5, "time this `number` of rounds; in a round, every allocator replays the trace once")
	flags.StringVar(&s.out.format, "format", "text", "report in this `format`: text, json, or bench (for benchstat)")
	flags.BoolVar(&s.verify, "verify", false, "before the timing, replay once with every block filled and its contents verified")
	flags.BoolVar(&s.rss, "rss", true, "measure resident memory, in a separate process for each trace and allocator")

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
		return nil, flags, usagef("-runs: %d is too few; the least is 1", s.runs)
	}
	if !slices.Contains(replayFormats, s.out.format) {
		return nil, flags, usagef("-format: unknown format %q; the formats are text, json and bench", s.out.format)
	}
	names := flags.Args()
	if len(names) == 0 {
		names = recorded.Names
	}
	for _, arg := range names {
		if strings.HasPrefix(arg, "-") {
			return nil, flags, usagef("the flag %s follows a trace; put the flags before the first trace", arg)
		}
		if err := s.addSource(newSource(arg)); err != nil {
			return nil, flags, err
		}
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

// addSource adds a source. If another one has its name, it goes by its argument.
func (s *replaySettings) addSource(src source) error {
	isNamed := func(other source) bool { return other.name == src.name }
	if slices.ContainsFunc(s.sources, isNamed) {
		src.name = src.arg
	}
	if slices.ContainsFunc(s.sources, isNamed) {
		return usagef("the trace %s is named twice; name each once", src.arg)
	}
	s.sources = append(s.sources, src)
	return nil
}

// replayCommand is `cheap replay`.
func replayCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, flags, err := parseReplay(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err := io.WriteString(stdout, replayHelp(flags))
		return err
	}
	if err != nil {
		return err
	}
	report, failed := s.replay(ctx, stderr)
	if len(report.Rows) == 0 {
		return failed
	}
	return errors.Join(s.out.write(report, nil, stdout, stderr), failed)
}

// replay replays the traces. With an error it returns a report of those that it
// has replayed until then.
func (s *replaySettings) replay(ctx context.Context, stderr io.Writer) (*result.Report, error) {
	progress := newProgress(stderr, "cheap replay")
	defer progress.clear()
	report := &result.Report{Replay: true, Machine: thisMachine("off")} // no round is interrupted by a collection
	for _, src := range s.sources {
		if err := s.replaySource(ctx, src, report, progress); err != nil {
			report.Partial = ctx.Err() != nil
			return report, err
		}
	}
	return report, nil
}

// replaySource replays one trace on every allocator and adds it to the report.
func (s *replaySettings) replaySource(ctx context.Context, src source, report *result.Report, progress *progress) error {
	progress.show("%s: reading", src.name)
	tr, err := src.read()
	if err != nil {
		return err
	}
	verified := ""
	if s.verify {
		verified = ", every block verified"
		for _, info := range s.allocators {
			progress.show("%s: verifying %s", src.name, info.Name)
			if err := replay.Verify(ctx, tr, info); err != nil {
				return fmt.Errorf("%s: %w", src.arg, err)
			}
		}
	}

	perOp, err := replay.Time(ctx, tr, s.allocators, s.runs, func(round int) {
		progress.show("%s: round %d of %d", src.name, round+1, s.runs)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", src.arg, err)
	}

	var rows []result.Row
	for i, info := range s.allocators {
		row := result.Row{Table: src.name, Row: info.Name, Procs: 1, Samples: perOp[i], Ops: len(tr.Ops)}
		row.NsPerOp, row.CI95Low, row.CI95High = result.Summarize(perOp[i])
		if s.rss {
			progress.show("%s: resident memory on %s", src.name, info.Name)
			row.Memory, err = measureMemory(ctx, info, src)
			if errors.Is(err, errors.ErrUnsupported) {
				note := fmt.Sprintf("resident memory is not measured: %v", err)
				progress.warn("%s", note)
				report.Notes = append(report.Notes, note)
				s.rss = false
			} else if err != nil {
				return fmt.Errorf("%s: %w", src.arg, err)
			}
		}
		rows = append(rows, row)
	}
	report.Tables = append(report.Tables, result.Table{
		Name:  src.name,
		Title: fmt.Sprintf("%s, timed %d×%s", figure.Plural(len(tr.Ops), "operation"), s.runs, verified),
	})
	report.Rows = append(report.Rows, rows...)
	return nil
}
