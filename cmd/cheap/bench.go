package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/cmd/cheap/internal/page"
	"github.com/cheapgo/cheap/internal/result"
)

// benchSettings is what the arguments of `cheap bench` ask for.
type benchSettings struct {
	lab     []string // flags for the laboratory
	list    bool
	out     output
	command string // with its flags
}

const benchUsage = `Bench measures what C memory costs in Go on this machine: calls, owners,
allocators, strings and collections. It sets the figures that others have
published beside its own.

Usage:

	cheap bench [flags]

The command prints a report, and writes a page with charts: to cheap-report.html, with
-quick to cheap-report-quick.html, and to cheap-report-part.html if only some rows are
measured, or with other settings.

What measures is the module lab. The command builds it with go, from the checkout that
the command is in or of its own version.

Flags:

%s`

const benchFlags = "-benchtime, -count, -cpu, -cpuprofile, -format, -limits, -list, -o, -quick and -run"

// measuring are the flags that the laboratory reads.
var measuring = map[string]bool{
	"run": true, "count": true, "benchtime": true, "cpu": true, "quick": true, "cpuprofile": true, "list": true, "limits": true,
}

// parseBench reads the arguments. It returns flag.ErrHelp where they ask for
// help, and a usageError where they are wrong.
func parseBench(args []string) (*benchSettings, *flag.FlagSet, error) {
	s := new(benchSettings)
	flags := flag.NewFlagSet("cheap bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.String("run", "", "measure only the rows that match this `pattern`: a regular expression for the table,\nand behind a slash one for the row, as in go test")
	flags.BoolVar(&s.list, "list", false, "list the tables and rows, and measure nothing")
	flags.String("count", "", "measure this `number` of rounds (default: as many as fit in the time, 3 to 12)")
	flags.String("benchtime", "", "let a round of a row take this `time`, such as 10ms, or have this number of operations,\nsuch as 1000x; a row with a fixed number of operations keeps it")
	flags.String("cpu", "", "measure with each GOMAXPROCS of this `list`, such as 1,2,4, instead of those of the rows")
	flags.Bool("quick", false, "take about 15 seconds instead of 65, with fewer and shorter rounds")
	flags.Bool("limits", false, "compare with what is promised, and fail if a figure is above its regression limit; without\n-run, all rows about which there is a promise")
	format := flags.String("format", "text", "report in this `format`: text, json, html, or bench (for benchstat)")
	out := flags.String("o", "", "write the report to this `file`, not to stdout (with -format html: a page);\nwith -format text, a name that ends in .html is for the page, and any other name is\nfor the text, with the page beside it")
	profile := flags.String("cpuprofile", "", "run each row of the table release, and of no other, for another second under the CPU\nprofiler, and write the profile to this `file`; its tags name the rows")

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, flags, err
	}
	if err != nil {
		return nil, flags, usagef("%v; the flags are %s", err, benchFlags)
	}
	if flags.NArg() > 0 {
		return nil, flags, usagef("unexpected argument %q; cheap bench takes flags only", flags.Arg(0))
	}
	s.lab = []string{"-first", strings.Join(headline.Rows(), ",")}
	flags.Visit(func(f *flag.Flag) {
		if measuring[f.Name] {
			s.lab = append(s.lab, "-"+f.Name+"="+f.Value.String())
		}
	})
	s.out.kind = kindOf(flags)
	s.command = strings.Join(append([]string{"cheap bench"}, args...), " ")
	if err := s.out.parse(*format, *out); err != nil {
		return nil, flags, err
	}
	if err := s.out.check(); err != nil {
		return nil, flags, err
	}
	if *profile != "" {
		if err := writable("-cpuprofile", *profile); err != nil {
			return nil, flags, err
		}
	}
	return s, flags, nil
}

// kindOf returns what kind of page the flags ask for.
func kindOf(flags *flag.FlagSet) page.Kind {
	kind := page.Whole
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "o", "format", "cpuprofile": // the rows are the same
		case "quick":
			if kind == page.Whole && f.Value.String() == "true" {
				kind = page.Quick
			}
		default:
			kind = page.Part
		}
	})
	return kind
}

// benchCommand is `cheap bench`.
func benchCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, flags, err := parseBench(args)
	if errors.Is(err, flag.ErrHelp) {
		return help(stdout, benchUsage, flags)
	}
	if err != nil {
		return err
	}
	report, failed := s.measure(ctx, stdout, stderr)
	if report == nil {
		return failed
	}
	report.Command, report.Version = s.command, version()
	if err := s.out.write(report, stdout, stderr); err != nil {
		return errors.Join(err, failed)
	}
	return failed
}

// measure has the laboratory measure, and returns its report. With an error there may be one as
// well.
func (s *benchSettings) measure(ctx context.Context, stdout, stderr io.Writer) (report *result.Report, err error) {
	progress := newProgress(stderr, "cheap bench")
	defer progress.clear()
	progress.show("building the module lab")
	lab, err := buildLab(ctx)
	if err != nil {
		return nil, err
	}
	defer lab.remove()
	command := lab.command(s.lab...)
	messages, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// The laboratory ends when its stdin is closed. It sends a report of what it has measured
	// until then.
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { stdin.Close() })()
	defer func() {
		stdin.Close()
		messages.Close() // what it still writes, nobody reads
		if ended := command.Wait(); ended != nil {
			err = errors.Join(err, fmt.Errorf("the module lab: %w: %s", ended, bytes.TrimSpace(said.Bytes())))
		}
	}()
	for from := json.NewDecoder(messages); ; {
		var m result.Message
		if err := from.Decode(&m); errors.Is(err, io.EOF) {
			return report, nil
		} else if err != nil {
			return report, fmt.Errorf("a message of the module lab: %w", err)
		}
		switch {
		case m.Report != nil:
			report = m.Report
		case m.Progress != "":
			progress.show("%s", m.Progress)
		case m.Warning != "":
			progress.warn("%s", m.Warning)
		case m.List != nil:
			_, err = io.WriteString(stdout, strings.Join(m.List, "\n")+"\n")
		case m.Interrupted:
			err = context.Canceled
		case m.Usage:
			err = usagef("%s", m.Error)
		case m.Error != "":
			err = errors.New(m.Error)
		}
		if err != nil {
			return report, err
		}
	}
}
