// Lab measures what C memory costs in Go: with package cheap, and with what programs use
// today. `cheap bench` runs it and shows its report.
//
// Without such a parent it reads nothing from stdin until that is closed, and writes the
// messages of [result.Message] to stdout, one JSON object for each line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

// The main goroutine stays on the main thread: glibc gives that thread the
// arena that a program without threads allocates from, and each other thread
// one that works differently.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

// run is the command, or the child process of a row.
func run(args []string, stdin io.Reader, stdout io.Writer) error {
	// The parent of each of these processes ends it, by closing its stdin.
	signal.Ignore(os.Interrupt)
	ctx := context.Background()
	if len(args) > 0 && args[0] == rowCommandName {
		return unbound(func() error { return measure.Child(ctx, tables.All(), args[1:], stdin, stdout) })
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, stdin)
		cancel()
	}()
	out := messages{json.NewEncoder(stdout)}
	var mistake usageError
	err := unbound(func() error { return bench(ctx, args, out) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return out.send(result.Message{Interrupted: true})
	case errors.As(err, &mistake):
		return out.send(result.Message{Error: mistake.Error(), Usage: true})
	}
	return out.send(result.Message{Error: err.Error()})
}

// A usageError is a mistake in the arguments.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// messages go to the parent.
type messages struct{ to *json.Encoder }

func (m messages) send(one result.Message) error { return m.to.Encode(one) }

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

// profileTime is how long a row is profiled for -cpuprofile. It is a variable for tests.
var profileTime = time.Second

// settings is what the arguments ask for.
type settings struct {
	run     pattern
	count   int
	each    measure.Length
	procs   []int
	first   []string // as table/row
	quick   bool
	limits  bool
	profile string

	tables []measure.Table
	notes  []string // for the report
}

// parse reads the arguments, which are those of `cheap bench` that are about measuring. An
// error is a usageError where they are wrong.
func parse(args []string) (*settings, bool, error) {
	s := &settings{tables: tables.All()}
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := flags.String("run", "", "")
	count := flags.String("count", "", "")
	each := flags.String("benchtime", "", "")
	cpu := flags.String("cpu", "", "")
	list := flags.Bool("list", false, "")
	first := flags.String("first", "", "") // rows to measure before the others: table/row,...
	flags.BoolVar(&s.quick, "quick", false, "")
	flags.StringVar(&s.profile, "cpuprofile", "", "")
	flags.BoolVar(&s.limits, "limits", false, "")
	if err := flags.Parse(args); err != nil {
		return nil, false, usagef("%v", err)
	}
	s.first = strings.Split(*first, ",")
	if s.limits && *run == "" {
		s.tables = tables.Promised()
	}
	given := func(name string) (found bool) {
		flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
		return found
	}
	for _, read := range []func() error{
		func() error { return s.parseRun(*run) },
		func() error { return s.parseCount(*count, given("count")) },
		s.checkLimits,
		func() error { return s.parseEach(*each, given("benchtime")) },
		func() error { return s.parseProcs(*cpu, given("cpu")) },
		func() error { return s.checkProfile(given("cpuprofile")) },
	} {
		if err := read(); err != nil {
			return nil, false, err
		}
	}
	return s, *list, nil
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

func (s *settings) parseCount(text string, given bool) (err error) {
	if !given {
		return nil
	}
	if s.count, err = strconv.Atoi(text); err != nil || s.count < 1 {
		return usagef("-count: %q is not a number of rounds; the least is 1", text)
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

func (s *settings) parseEach(text string, given bool) error {
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
		return usagef("-benchtime: %q is neither a time nor a number of operations; use one above 0, such as 10ms or 1000x", text)
	}
	return nil
}

// mostProcs bounds -cpu: goroutines and Ps are made for each.
const mostProcs = 1024

func (s *settings) parseProcs(text string, given bool) error {
	if !given {
		return nil
	}
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > mostProcs {
			return usagef("-cpu: %q is not a number of processors; use numbers from 1 to %d, with commas between them", word, mostProcs)
		}
		if !slices.Contains(s.procs, n) {
			s.procs = append(s.procs, n)
		}
	}
	return nil
}

func (s *settings) checkProfile(given bool) error {
	if !given {
		return nil
	}
	profiled, others := false, false
	for _, t := range s.tables {
		kept := s.keepsRows(&t)
		profiled, others = profiled || kept && t.Profiled, others || kept && !t.Profiled
	}
	if others {
		s.notes = append(s.notes, "-cpuprofile: the profile has the rows of the table release, and of no other table")
	}
	if profiled {
		return nil
	}
	return usagef("-cpuprofile: only the table release is profiled, and none of its rows is measured")
}

// bench measures, and sends the report. With an error it may send one as well: of the rows that
// were measured until then, or of those that did not fail.
func bench(ctx context.Context, args []string, out messages) error {
	s, list, err := parse(args)
	if err != nil {
		return err
	}
	if list {
		return out.send(result.Message{List: s.list()})
	}
	if missing := missing(); missing != "" {
		out.send(result.Message{Warning: missing})
	}
	report, failed := s.measure(ctx, out)
	if errors.Is(failed, measure.ErrNothing) {
		return usagef("%s; the machine may be busy; with -count a run takes as long as it takes", oneLine(failed))
	}
	if report == nil {
		return failed
	}
	if missing := missing(); missing != "" {
		report.Warnings = append(report.Warnings, missing)
	}
	return errors.Join(failed, out.send(result.Message{Report: report}), regressed(report))
}

// list returns all tables, and below each the rows that the pattern keeps.
func (s *settings) list() []string {
	var all []string
	for _, t := range tables.All() {
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
func (s *settings) measure(ctx context.Context, out messages) (*result.Report, error) {
	o := measure.Options{
		Keep:    s.run.keeps,
		First:   func(table, row string) bool { return slices.Contains(s.first, table+"/"+row) },
		Procs:   s.procs,
		Budget:  s.budget(),
		Count:   s.count,
		Each:    s.each,
		Bars:    s.limits,
		Machine: result.ThisMachine("100", peers.CMalloc()), // but for rows that say that the collector is off
		Notes:   append(s.notes, environmentNotes()...),
		Child:   rowChild,
		Progress: func(p measure.Progress) {
			out.send(result.Message{Progress: describeProgress(p)})
		},
	}
	if s.profile == "" {
		return measure.Run(ctx, s.tables, o)
	}
	file, err := os.Create(s.profile)
	if err != nil {
		return nil, err
	}
	o.Profile, o.ProfileTime = file, profileTime
	report, err := measure.Run(ctx, s.tables, o)
	return report, errors.Join(err, file.Close())
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

// rowChild makes the child process of a row: see measure.Child.
func rowChild(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	child := exec.CommandContext(ctx, self, append([]string{rowCommandName}, args...)...)
	if err != nil {
		child.Err = err
	}
	return child
}
