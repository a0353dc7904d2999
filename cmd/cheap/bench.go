package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
	"github.com/cheapgo/cheap/cmd/cheap/internal/tables"
)

// rowCommandName is a command for this program alone: the child process that
// runs one round of a row that leaks.
const rowCommandName = "bench-row"

// What a run takes, where -count and -benchtime do not say otherwise.
const (
	benchBudget = 85 * time.Second
	quickBudget = 15 * time.Second

	spliceBudget = 30 * time.Second // more, for the table that -splice adds
)

// benchSettings is what the arguments of `cheap bench` ask for.
type benchSettings struct {
	run     pattern
	count   int
	each    measure.Length
	procs   []int
	quick   bool
	spliced *spliced // nil without -splice
	profile string
	out     output
	old     *result.Report // what is compared with, nil for nothing

	tables []measure.Table
	notes  []string // for the report
}

const benchUsage = `Bench measures what C memory costs in Go on this machine: calls, owners,
allocators, strings and live objects, each beside what others have published.

Usage:

	cheap bench [flags]

The text goes to stdout, and a page with charts into cheap-report.html.

Flags:

%s
Tables:

%s`

const benchFlags = "-benchtime, -compare, -count, -cpu, -cpuprofile, -format, -o, -quick, -run and -splice"

// parseBench reads the arguments. It returns flag.ErrHelp where they ask for
// help, a usageError where they are not understood.
func parseBench(args []string) (*benchSettings, *flag.FlagSet, error) {
	s := &benchSettings{tables: tables.All()}
	flags := flag.NewFlagSet("cheap bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := flags.String("run", "", "measure only the rows that match this `pattern`, table/row as in go test")
	count := flags.String("count", "", "measure this `number` of rounds; without it, as many as fit in the time, 3 to 12")
	each := flags.String("benchtime", "", "let a round of a row take this `time`, such as 10ms, or have so many operations, such as 1000x; rows with a number of their own keep it")
	cpu := flags.String("cpu", "", "measure with each GOMAXPROCS of this `list`, separated by commas, in place of the rows' own")
	flags.BoolVar(&s.quick, "quick", false, "take about 20 seconds and not 90: fewer and shorter rounds")
	format := flags.String("format", "text", "report in this `format`: text, json, html, or bench, which benchstat reads")
	out := flags.String("o", "", "write to this `file` what else goes to stdout, or into cheap-report.html: with -format text, a name in .html is the page's and any other the text's, with the page beside it")
	old := flags.String("compare", "", "set the report beside an older one, from this `file` of -format json")
	flags.StringVar(&s.profile, "cpuprofile", "", "run each row of the release table for another second under the profiler, write the profile to this `file`, and report where the rows spend their time")
	splice := flags.Bool("splice", false, "measure also by how much cleanups and finalizers improve with a faster search in the runtime")

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, flags, err
	}
	if err != nil {
		return nil, flags, usagef("%v; the flags are %s", err, benchFlags)
	}
	if flags.NArg() > 0 {
		return nil, flags, usagef("unexpected argument %q; flags are accepted and nothing else", flags.Arg(0))
	}
	if *splice {
		s.spliced = newSpliced()
		s.tables = s.spliced.addTo(s.tables)
	}
	given := func(name string) (found bool) {
		flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
		return found
	}
	for _, read := range []func() error{
		func() error { return s.parseRun(*run) },
		func() error { return s.parseCount(*count, given("count")) },
		func() error { return s.parseEach(*each, given("benchtime")) },
		func() error { return s.parseProcs(*cpu, given("cpu")) },
		func() error { return s.out.parse(*format, *out, *old != "") },
		func() error { return s.readOld(*old, given("compare")) },
		func() error { return s.checkProfile(given("cpuprofile")) },
		s.out.check,
	} {
		if err := read(); err != nil {
			return nil, flags, err
		}
	}
	return s, flags, nil
}

func (s *benchSettings) parseRun(text string) (err error) {
	if s.run, err = parsePattern(text); err != nil {
		return err
	}
	return s.run.check(s.tables)
}

func (s *benchSettings) parseCount(text string, given bool) (err error) {
	if !given {
		return nil
	}
	if s.count, err = strconv.Atoi(text); err != nil || s.count < 1 {
		return usagef("-count: %q is no number of rounds; 1 or more are accepted", text)
	}
	return nil
}

func (s *benchSettings) parseEach(text string, given bool) error {
	if !given {
		return nil
	}
	var err error
	if n, ok := strings.CutSuffix(text, "x"); ok {
		s.each.N, err = strconv.Atoi(n)
	} else {
		s.each.Time, err = time.ParseDuration(text)
	}
	if err != nil || s.each.N <= 0 && s.each.Time <= 0 {
		return usagef("-benchtime: %q is neither a time nor a number of operations; 10ms or 1000x are accepted, more than 0", text)
	}
	return nil
}

// mostProcs bounds -cpu: goroutines and Ps are made for each.
const mostProcs = 1024

func (s *benchSettings) parseProcs(text string, given bool) error {
	if !given {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > mostProcs {
			return usagef("-cpu: %q is no number of processors; 1 to %d are accepted, several with commas between them", word, mostProcs)
		}
		if !slices.Contains(s.procs, n) {
			s.procs = append(s.procs, n)
		}
	}
	return nil
}

func (s *benchSettings) checkProfile(given bool) error {
	if !given {
		return nil
	}
	for _, t := range s.tables {
		for _, r := range t.Rows {
			if t.Profiled && s.run.keeps(t.Name, r.Name) {
				return writable("-cpuprofile", s.profile)
			}
		}
	}
	return usagef("-cpuprofile: -run leaves no row of a table that is profiled; release is accepted")
}

// benchHelp describes the command.
func benchHelp(flags *flag.FlagSet) string {
	var options, list strings.Builder
	flags.SetOutput(&options)
	flags.PrintDefaults()
	for _, t := range tables.All() {
		fmt.Fprintf(&list, "  %-12s%s\n", t.Name, t.Title)
	}
	return fmt.Sprintf(benchUsage, options.String(), list.String())
}

// benchCommand is `cheap bench`.
func benchCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, flags, err := parseBench(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err := io.WriteString(stdout, benchHelp(flags))
		return err
	}
	if err != nil {
		return err
	}
	if s.spliced != nil {
		defer s.spliced.remove()
		if err := s.buildSpliced(ctx, stderr); err != nil {
			return err
		}
	}
	report, failed := s.measure(ctx, stderr)
	if report == nil {
		return failed
	}
	if err := s.out.write(report, s.old, stdout, stderr); err != nil {
		return errors.Join(err, failed)
	}
	return failed
}

// measure runs the tables. It may return a report with an error: of what was
// measured until then, or of the rows that did not fail.
func (s *benchSettings) measure(ctx context.Context, stderr io.Writer) (*result.Report, error) {
	progress := newProgress(stderr, "cheap bench")
	defer progress.clear()
	o := measure.Options{
		Keep:    s.run.keeps,
		Procs:   s.procs,
		Budget:  s.budget(),
		Count:   s.count,
		Each:    s.each,
		Machine: benchMachine(),
		Notes:   append(s.notes, environmentNotes()...),
		Child:   rowChild,
		Progress: func(p measure.Progress) {
			progress.show("%s", describeProgress(p))
		},
	}
	if s.profile == "" {
		return measure.Run(ctx, s.tables, o)
	}
	file, err := os.Create(s.profile)
	if err != nil {
		return nil, err
	}
	o.Profile = file
	report, err := measure.Run(ctx, s.tables, o)
	return report, errors.Join(err, file.Close())
}

// budget returns how long the run is to take.
func (s *benchSettings) budget() time.Duration {
	total, extra := benchBudget, spliceBudget
	if s.quick {
		total, extra = quickBudget, quickBudget
	}
	if s.spliced != nil {
		total += extra
	}
	return total
}

// environmentNotes names what the environment asks for and rows do not heed.
func environmentNotes() (notes []string) {
	for name, usual := range map[string]string{"GOGC": "100", "GOMEMLIMIT": "off"} {
		if value := os.Getenv(name); value != "" && value != usual {
			notes = append(notes, fmt.Sprintf("%s=%s in the environment was not used: rows run with %s=%s", name, value, name, usual))
		}
	}
	slices.Sort(notes)
	return notes
}

// describeProgress writes a progress in one line.
func describeProgress(p measure.Progress) string {
	procs := ""
	if p.Procs != 1 {
		procs = fmt.Sprintf(" on %d processors", p.Procs)
	}
	return fmt.Sprintf("%s/%s%s: %s, %v left", p.Table, p.Row, procs, p.Step, p.Left.Round(time.Second))
}

// rowChild makes the child process for one round of a row that leaks, or for a row
// that is to be apart.
func rowChild(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	child := exec.CommandContext(ctx, self, append([]string{rowCommandName}, args...)...)
	if err != nil {
		child.Err = err
	}
	return child
}

// rowCommand is that child.
func rowCommand(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	err := measure.Child(ctx, tables.All(), args, stdin, stdout)
	if errors.Is(err, measure.ErrArgs) {
		return usagef("%v", err)
	}
	return err
}
