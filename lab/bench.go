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

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/report"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

const usage = `Lab measures what C memory costs in Go on this machine: calls, owners,
allocators, strings and collections. It sets the figures that others have
published beside its own.

	lab [flags]

Lab replay performs the allocations of real programs, as traces have recorded
them, on one allocator after the other, each in a process of its own. A trace is
a file, or one of these, which are part of this program: %s.

	lab replay [flags] [trace ...]

It prints a report, and writes a page with charts: to cheap-report.html, or to
cheap-report-part.html if only some rows are measured, or with other settings.

Flags:

%s`

// replayRounds is how many rounds a replay has, unless flags say otherwise.
const replayRounds = 9

// rowCommandName is a command that only this program calls: the child process of
// a row that leaks, or that needs the Go heap for itself.
const rowCommandName = "bench-row"

// How long a run takes, unless -count or -benchtime is given.
const (
	benchBudget = 64 * time.Second

	// For each table with rows that are measured only where -run names it: dozens of rows with
	// rounds of a tenth of a second.
	namedBudget      = 50 * time.Second
	quickNamedBudget = 25 * time.Second
)

// quickBudget is that of -quick. It is a variable for tests.
var quickBudget = 15 * time.Second

// settings is what the arguments ask for.
type settings struct {
	run     pattern
	count   int
	each    measure.Length
	procs   []int
	list    bool
	quick   bool
	limits  bool
	traces  []string // of lab replay
	natives []string // paths of libraries
	out     output
	command string // with its flags

	tables []measure.Table
}

// parse reads the arguments. It returns flag.ErrHelp where they ask for help, and a usageError where they
// are wrong. With replay they name traces.
func parse(args []string, replay bool) (*settings, *flag.FlagSet, error) {
	s := new(settings)
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := flags.String("run", "", "measure only the rows that match this `pattern`: a regular expression for the table,\nand behind a slash one for the row, as in go test")
	flags.BoolVar(&s.list, "list", false, "list the tables and rows, and measure nothing")
	flags.Func("count", "measure this `number` of rounds (default: as many as fit in the time, 3 to 12)", s.parseCount)
	flags.Func("benchtime", "let a round of a row take this `time`, such as 10ms, or have this number of operations,\nsuch as 1000x; a row with a fixed number of operations keeps it", s.parseEach)
	flags.Func("cpu", "measure with each GOMAXPROCS of this `list`, such as 1,2,4, instead of those of the rows", s.parseProcs)
	flags.BoolVar(&s.quick, "quick", false, "take about 15 seconds instead of 65, with fewer and shorter rounds")
	flags.BoolVar(&s.limits, "limits", false, "compare with what is promised, and fail if a figure is above its regression limit;\nwithout -run, all rows about which there is a promise")
	flags.StringVar(&s.out.format, "format", "", "report in this `format`: text, json, html, or bench for benchstat (default: by the\nname of the file of -o, or text)")
	flags.StringVar(&s.out.file, "o", "", "write the report to this `file`, not to stdout")
	if replay {
		flags.Func("native", "replay on the library at this `path` as well, as C's malloc (LD_PRELOAD, on Linux),\nbesides those of these that are found: "+strings.Join(preload.Names(), ", "),
			func(path string) error { s.natives = append(s.natives, path); return nil })
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, flags, err
	} else if err != nil {
		return nil, flags, usagef("%v; -h lists the flags", err)
	}
	s.out.part = replay
	flags.Visit(func(f *flag.Flag) { s.out.part = s.out.part || f.Name != "o" && f.Name != "format" })
	command := "lab "
	choose := func() error { return s.chooseTables(flags.Args(), *run) }
	if replay {
		command += "replay "
		choose = func() error { return s.chooseTraces(flags.Args()) }
	}
	s.command = strings.TrimSpace(command + strings.Join(args, " "))
	for _, read := range []func() error{choose, func() error { return s.parseRun(*run) }, s.checkLimits, s.out.check} {
		if err := read(); err != nil {
			return nil, flags, err
		}
	}
	return s, flags, nil
}

// chooseTables has all tables, or those with promises.
func (s *settings) chooseTables(args []string, run string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q; lab takes flags, and the command replay", args[0])
	}
	s.tables = tables.All()
	if s.limits && run == "" {
		s.tables = tables.Promised()
	}
	return nil
}

// chooseTraces has a table for each trace.
func (s *settings) chooseTraces(names []string) (err error) {
	if s.traces = names; len(names) == 0 {
		s.traces = recorded.Names
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "-") }); i >= 0 {
		return usagef("the flag %s follows a trace; put the flags before the first trace", names[i])
	}
	if s.count == 0 && !s.quick && s.each == (measure.Length{}) {
		s.count = replayRounds
	}
	s.tables, err = tables.Replays(s.traces, s.natives)
	return err
}

func (s *settings) parseRun(text string) (err error) {
	if s.run, err = parsePattern(text); err != nil {
		return err
	}
	if err = s.run.check(s.tables); err != nil {
		return err
	}
	if s.limits && text == "" {
		return nil // the tables have no other rows than those that are asked for
	}
	s.tables = slices.DeleteFunc(s.tables, func(t measure.Table) bool { return t.Named && !s.run.names(t.Name) })
	for i := range s.tables {
		if t := &s.tables[i]; !s.run.names(t.Name) {
			t.Rows = slices.DeleteFunc(t.Rows, func(r measure.Row) bool { return r.Named })
		}
	}
	return nil
}

func (s *settings) parseCount(text string) (err error) {
	if s.count, err = strconv.Atoi(text); err != nil || s.count < 1 {
		return errors.New("use a number of rounds; the least is 1")
	}
	return nil
}

// limitRounds is how many rounds -limits has, unless -count says otherwise.
const limitRounds = 9

func (s *settings) checkLimits() error {
	if !s.limits {
		return nil
	}
	if s.count == 0 {
		s.count = limitRounds
	}
	for _, t := range s.tables {
		if slices.ContainsFunc(t.Rows, func(r measure.Row) bool { return len(r.Bars) > 0 && s.run.keeps(t.Name, r.Name) }) {
			return nil
		}
	}
	return usagef("-limits: nothing is promised of the rows that are measured")
}

// regressed returns an error that names the figures above their regression limits.
func regressed(report *result.Report) error {
	var above []string
	for _, row := range report.Rows {
		for _, b := range row.Bars {
			if b.Regressed() {
				above = append(above, fmt.Sprintf("%s/%s on %d: %s %.3g, limit %.3g", row.Table, row.Row, row.Procs, b.Figure, b.Value, b.Limit))
			}
		}
	}
	if above == nil {
		return nil
	}
	return fmt.Errorf("above the regression limit: %s", strings.Join(above, "; "))
}

func (s *settings) parseEach(text string) (err error) {
	if n, ok := strings.CutSuffix(text, "x"); ok {
		s.each.N, err = strconv.Atoi(n)
	} else {
		s.each.Time, err = time.ParseDuration(text)
	}
	if err != nil || s.each.N <= 0 && s.each.Time <= 0 {
		return errors.New("use a time or a number of operations above 0, such as 10ms or 1000x")
	}
	return nil
}

// mostProcs bounds -cpu: goroutines and Ps are made for each.
const mostProcs = 1024

func (s *settings) parseProcs(text string) error {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > mostProcs {
			return fmt.Errorf("use numbers of processors from 1 to %d, with commas between them", mostProcs)
		}
		if !slices.Contains(s.procs, n) {
			s.procs = append(s.procs, n)
		}
	}
	return nil
}

// command measures, and writes the report. With an error it may write one as well: of the rows that
// were measured until then, or of those that did not fail.
func command(ctx context.Context, args []string, replay bool, stdout, stderr io.Writer) error {
	s, flags, err := parse(args, replay)
	switch {
	case errors.Is(err, flag.ErrHelp):
		var options strings.Builder
		flags.SetOutput(&options)
		flags.PrintDefaults()
		_, err = fmt.Fprintf(stdout, usage, strings.Join(recorded.Names, ", "), options.String())
		return err
	case err != nil:
		return err
	case s.list:
		_, err = io.WriteString(stdout, strings.Join(s.allRows(), "\n")+"\n")
		return err
	}
	progress := newProgress(stderr)
	missing := missing()
	if missing != "" {
		progress.warn("%s", missing)
	}
	report, failed := s.measure(ctx, progress)
	progress.show("")
	if errors.Is(failed, measure.ErrNothing) {
		return usagef("%s; the machine may be busy; with -count a run takes as long as it takes", strings.Join(strings.Fields(failed.Error()), " "))
	}
	if report == nil {
		return failed
	}
	if missing != "" {
		report.Warnings = append(report.Warnings, missing)
	}
	report.Command = s.command
	return errors.Join(s.out.write(report, stdout, stderr), failed, regressed(report))
}

// allRows returns all tables, and below each the rows that the pattern keeps.
func (s *settings) allRows() []string {
	var all []string
	of := s.tables
	if s.traces == nil {
		of = tables.All()
	}
	for _, t := range of {
		only := ""
		if t.Named {
			only = ", with -run " + t.Name + " only"
		}
		all = append(all, fmt.Sprintf("%-12s%s%s", t.Name, t.Title, only))
		for _, r := range t.Rows {
			if s.run.keeps(t.Name, r.Name) {
				all = append(all, "  "+t.Name+"/"+r.Name)
			}
		}
	}
	return all
}

// missing says what this build does not measure, "" if it measures everything.
func missing() string {
	if tables.HasC {
		return ""
	}
	return "Most rows are missing, those that call C. They need a C compiler, such as gcc or clang, and cgo (CGO_ENABLED=1), on Unix."
}

// measure runs the tables.
func (s *settings) measure(ctx context.Context, progress *progress) (*result.Report, error) {
	o := measure.Options{
		Keep:    s.run.keeps,
		First:   func(table, row string) bool { return slices.Contains(report.HeadlineRows(), table+"/"+row) },
		Procs:   s.procs,
		Budget:  s.budget(),
		Count:   s.count,
		Each:    s.each,
		Bars:    s.limits,
		Machine: result.ThisMachine("100", peers.CMalloc()), // but for rows that say that the collector is off
		Notes:   environmentNotes(),
		Child:   s.rowChild,
		Progress: func(p measure.Progress) {
			progress.show("%s", describeProgress(p))
		},
	}
	return measure.Run(ctx, s.tables, o)
}

// budget returns how long the run may take.
func (s *settings) budget() time.Duration {
	usual, named := benchBudget, namedBudget
	if s.quick {
		usual, named = quickBudget, quickNamedBudget
	}
	total := time.Duration(0)
	if slices.ContainsFunc(s.tables, func(t measure.Table) bool { return !t.Named && s.keepsRows(&t) }) {
		total = usual
	}
	for _, t := range s.tables {
		if t.Named || slices.ContainsFunc(t.Rows, func(r measure.Row) bool { return r.Named && s.run.keeps(t.Name, r.Name) }) {
			total += named
		}
	}
	return total
}

// keepsRows reports whether rows of a table are measured.
func (s *settings) keepsRows(t *measure.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r measure.Row) bool { return s.run.keeps(t.Name, r.Name) })
}

// environmentNotes names the settings of the environment that rows ignore.
func environmentNotes() (notes []string) {
	for name, usual := range map[string]string{"GOGC": "100", "GOMEMLIMIT": "off"} {
		if value := os.Getenv(name); value != "" && value != usual {
			notes = append(notes, fmt.Sprintf("%s=%s in the environment has no effect: rows run with %s=%s", name, value, name, usual))
		}
	}
	slices.Sort(notes)
	return notes
}

// describeProgress describes a progress in one line.
func describeProgress(p measure.Progress) string {
	procs := ""
	if p.Procs != 1 {
		procs = fmt.Sprintf(" on %d processors", p.Procs)
	}
	return fmt.Sprintf("%s/%s%s: %s, %v left", p.Table, p.Row, procs, p.Step, p.Left.Round(time.Second))
}

// rowChild makes the child process of a row: see measure.Child. Behind its arguments are those of
// tables.Replays, if there are any.
func (s *settings) rowChild(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	args = slices.Concat([]string{rowCommandName}, args, s.traces)
	for _, path := range s.natives {
		args = append(args, nativeFlag+path)
	}
	child := exec.CommandContext(ctx, self, args...)
	if err != nil {
		child.Err = err
	}
	return child
}

// nativeFlag is before the path of a library.
const nativeFlag = "-native="

// rowCommand is that process.
func rowCommand(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	all := tables.All()
	if len(args) > 3 {
		var traces, natives []string
		for _, arg := range args[3:] {
			if path, ok := strings.CutPrefix(arg, nativeFlag); ok {
				natives = append(natives, path)
			} else {
				traces = append(traces, arg)
			}
		}
		var err error
		if all, err = tables.Replays(traces, natives); err != nil {
			return err
		}
		args = args[:3]
	}
	return measure.Child(ctx, all, args, stdin, stdout)
}
