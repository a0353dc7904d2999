package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// replaySettings is what the arguments of `lab replay` ask for.
type replaySettings struct {
	allocators []peers.Info
	natives    []preload.Library
	missing    []error // libraries that are not here
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

	lab replay [flags] [trace ...]

A trace is a file, or the name of a trace that is part of this program: %s.
Without arguments, it replays those.

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

	flags := flag.NewFlagSet("lab replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	allocators := flags.String("allocator", strings.Join(available, ","), "replay on these `allocators`, with commas between them")
	flags.IntVar(&s.runs, "runs", 5, "time this `number` of rounds, in which every allocator replays the trace once")
	s.out.flags(flags, "text, json")
	flags.BoolVar(&s.verify, "verify", false, "before the timing, replay once with every block filled and its contents verified")
	natives := flags.String("native", "", "replay on these `libraries` as well, each the malloc of a process of its own (LD_PRELOAD,\non Linux), with commas between them:\n"+
		strings.Join(preload.Names(), ", ")+", or the path of another")
	flags.BoolVar(&s.rss, "rss", true, "measure resident memory, in a process for each trace and allocator")

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, flags, err
	}
	if err != nil {
		return nil, flags, usagef("%v; -h lists the flags", err)
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
	if *natives != "" {
		if err := s.addNatives(strings.Split(*natives, ",")); err != nil {
			return nil, flags, err
		}
	}
	if s.runs < 1 {
		return nil, flags, usagef("-runs: %d is too few; the least is 1", s.runs)
	}
	if err := s.out.check(); err != nil {
		return nil, flags, err
	}
	if s.out.format == "html" {
		return nil, flags, usagef("-format: there is no page of a replay; the formats are text, json and bench")
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

// addNatives finds the libraries. One that is not here is left out, and named.
func (s *replaySettings) addNatives(names []string) error {
	var found []string // the names of the rows
	for _, name := range names {
		l, err := preload.Find(name)
		var missing *preload.MissingError
		if err != nil && !errors.As(err, &missing) {
			return usagef("-native: %v", err)
		}
		if slices.Contains(found, l.Name) || slices.ContainsFunc(peers.All(), func(i peers.Info) bool { return i.Name == l.Name }) {
			return usagef("-native: %s would be the second row with the name %s", name, l.Name)
		}
		found = append(found, l.Name)
		if missing != nil {
			s.missing = append(s.missing, missing)
		} else {
			s.natives = append(s.natives, l)
		}
	}
	return nil
}

// replayHelp describes the command.
func replayHelp(flags *flag.FlagSet) string {
	var allocators strings.Builder
	for _, info := range peers.All() {
		fmt.Fprintf(&allocators, "  %-10s%s\n", info.Name, info.About)
		if info.Miss != "" {
			fmt.Fprintf(&allocators, "  %-10snot in this build: %s\n", "", info.Miss)
		}
	}
	return fmt.Sprintf(replayUsage, strings.Join(recorded.Names, ", "), flagDefaults(flags), allocators.String())
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

// replayCommand is `lab replay`.
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
	return errors.Join(s.out.write(report, stdout, stderr), failed)
}

// replay replays the traces. With an error it returns a report of those that it
// has replayed until then.
func (s *replaySettings) replay(ctx context.Context, stderr io.Writer) (*result.Report, error) {
	progress := newProgress(stderr, "lab replay")
	defer progress.show("")
	report := &result.Report{Replay: true, Machine: result.ThisMachine("off", peers.CMalloc())} // no round is interrupted by a collection
	for _, missing := range s.missing {
		note(report, progress, missing)
	}
	for _, src := range s.sources {
		if err := s.replaySource(ctx, src, report, progress); err != nil {
			report.Partial = ctx.Err() != nil
			return report, err
		}
	}
	return report, nil
}

// note says on stderr and in the report what is not measured, and why.
func note(report *result.Report, progress *progress, why error) {
	progress.warn("%v", why)
	report.Notes = append(report.Notes, why.Error())
}

// startNatives starts a process for each library. A library that the process does not
// have as its malloc is left out from here on.
func (s *replaySettings) startNatives(ctx context.Context, src source, report *result.Report, progress *progress) (children []*replayChild, err error) {
	var here []preload.Library
	for _, l := range s.natives {
		progress.show("%s: starting a process with %s", src.name, l.Name)
		child, err := startReplay(ctx, "native", l, src)
		var missing *preload.MissingError
		switch {
		case errors.As(err, &missing):
			note(report, progress, missing)
		case err != nil:
			closeAll(children)
			return nil, err
		default:
			here, children = append(here, l), append(children, child)
		}
	}
	s.natives = here
	return children, nil
}

func closeAll(children []*replayChild) {
	for _, child := range children {
		child.close()
	}
}

// replaySource replays one trace on every allocator and adds it to the report. An error names the
// trace.
func (s *replaySettings) replaySource(ctx context.Context, src source, report *result.Report, progress *progress) error {
	progress.show("%s: reading", src.name)
	tr, err := src.read()
	if err != nil {
		return err
	}
	rows, err := s.replayTrace(ctx, tr, src, report, progress)
	if ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return fmt.Errorf("%s: %w", src.arg, err)
	}
	verified := ""
	if s.verify {
		verified = ", every block verified"
	}
	report.Tables = append(report.Tables, result.Table{
		Name:  src.name,
		Title: fmt.Sprintf("%s, timed %d×%s", figure.Plural(len(tr.Ops), "operation"), s.runs, verified),
	})
	report.Rows = append(report.Rows, rows...)
	return nil
}

// replayTrace returns a row for each allocator.
func (s *replaySettings) replayTrace(ctx context.Context, tr *trace.Trace, src source, report *result.Report, progress *progress) ([]result.Row, error) {
	children, err := s.startNatives(ctx, src, report, progress)
	if err != nil {
		return nil, err
	}
	defer closeAll(children)
	if s.verify {
		if err := s.verifyAll(ctx, tr, src, children, progress); err != nil {
			return nil, err
		}
	}
	turners := make([]replay.Turner, len(children))
	for i, child := range children {
		turners[i] = child
	}
	perOp, err := replay.Time(ctx, tr, s.allocators, s.runs, func(round int) {
		progress.show("%s: round %d of %d", src.name, round+1, s.runs)
	}, turners...)
	if err != nil {
		return nil, err
	}
	var rows []result.Row
	for i := range perOp {
		row := result.Row{Table: src.name, Procs: 1, Samples: perOp[i], Ops: len(tr.Ops)}
		name, library := "native", preload.Library{}
		if i < len(s.allocators) {
			name = s.allocators[i].Name
			row.Row = name
		} else {
			library = s.natives[i-len(s.allocators)]
			row.Row, row.Preloaded = library.Name, true
		}
		row.NsPerOp, row.CI95Low, row.CI95High = measure.Summarize(perOp[i])
		if s.rss {
			progress.show("%s: resident memory on %s", src.name, row.Row)
			row.Memory, err = measureMemory(ctx, name, library, src)
			if errors.Is(err, errors.ErrUnsupported) {
				note(report, progress, fmt.Errorf("resident memory is not measured: %w", err))
				row.Memory, s.rss = nil, false
			} else if err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// verifyAll replays the trace once with every block filled and its contents verified.
func (s *replaySettings) verifyAll(ctx context.Context, tr *trace.Trace, src source, children []*replayChild, progress *progress) error {
	for _, info := range s.allocators {
		progress.show("%s: verifying %s", src.name, info.Name)
		if err := replay.Verify(ctx, tr, info); err != nil {
			return err
		}
	}
	for _, child := range children {
		progress.show("%s: verifying %s", src.name, child.name)
		if _, err := child.ask(verify); err != nil {
			return err
		}
	}
	return nil
}
