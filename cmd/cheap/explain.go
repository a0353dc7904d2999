package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
	"github.com/cheapgo/cheap/cmd/cheap/internal/explain/calibrator"
)

const explainUsage = `Explain says which share of the processor a program spends on C, on calls of C, on
strings for C, and on cleanups and finalizers, and what would change that.

Usage:

	cheap explain [flags] file             a CPU profile
	cheap explain [flags] URL              a program that serves net/http/pprof
	cheap explain [flags] package args...  a program, which is built and run

A package is a folder, a path that begins with ./ or ../, or files of Go. The program is
profiled until it ends; -for, a minute by default, or an interrupt ends it before. What it prints goes to stderr.

Examples:

	cheap explain cpu.pprof
	cheap explain -html report.html cpu.pprof
	cheap explain -http localhost:6061 cpu.pprof
	cheap explain -seconds 10 http://localhost:6060/debug/pprof/profile
	cheap explain ./cmd/prog -workers 4
	cheap explain prog.go
	cheap explain -for 30s ./cmd/server

Flags:

%s
docs/tools.md describes the report.
`

// explainSettings is what the arguments of `cheap explain` ask for.
type explainSettings struct {
	json    bool
	html    string
	http    string // an address
	seconds int
	length  time.Duration
	figures explain.Figures
	bench   bool // measure them
	source  string
	program []string // the folder, or the files of Go, if the source is a program
	args    []string // of the program
}

const explainFlags = "the flags are -bench, -figures, -for, -html, -http, -json and -seconds"

// parseExplain reads the arguments. It returns flag.ErrHelp where they ask for help, and a usageError where they are wrong.
func parseExplain(args []string) (*explainSettings, *flag.FlagSet, error) {
	s := &explainSettings{figures: explain.Stored}
	flags := flag.NewFlagSet("cheap explain", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	figures := flags.String("figures", "", "take the figures of the advice from this `file`, which go run ./lab -format json has written on this machine")
	flags.BoolVar(&s.bench, "bench", false, "measure the figures of the advice on this machine, in about ten seconds")
	flags.DurationVar(&s.length, "for", time.Minute, "end the program after this `time`; 0 is never")
	flags.StringVar(&s.html, "html", "", "write a page with a flame graph to this `file` as well")
	flags.StringVar(&s.http, "http", "", "serve that page at this `address` as well, until an interrupt")
	flags.BoolVar(&s.json, "json", false, "report in JSON")
	flags.IntVar(&s.seconds, "seconds", 30, "profile the program of a URL for this `number` of seconds")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, flags, err
	case err != nil:
		return nil, flags, usagef("%v; %s", err, explainFlags)
	case s.length < 0:
		return nil, flags, usagef("-for: %v is negative", s.length)
	case s.seconds < 1:
		return nil, flags, usagef("-seconds: %d is too few; the least is 1", s.seconds)
	case flags.NArg() == 0:
		return nil, flags, usagef("nothing to explain is given; give a CPU profile, a URL or a package")
	}
	s.source, s.args = flags.Arg(0), flags.Args()[1:]
	if n := explain.Source(flags.Args()); n > 0 {
		s.program, s.args = flags.Args()[:n], flags.Args()[n:]
	} else if len(s.args) > 0 {
		if strings.HasPrefix(s.args[0], "-") {
			return nil, flags, usagef("the flag %s follows %s; put the flags before it", s.args[0], s.source)
		}
		return nil, flags, usagef("unexpected argument %q; only a package has arguments", s.args[0])
	}
	if *figures != "" {
		if s.bench {
			return nil, flags, usagef("-bench measures figures, and -figures has some; give one of them")
		}
		if s.figures, err = readFigures(*figures); err != nil {
			return nil, flags, err
		}
	}
	return s, flags, nil
}

// explainCommand is `cheap explain`.
func explainCommand(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	s, flags, err := parseExplain(args)
	if errors.Is(err, flag.ErrHelp) {
		return help(stdout, explainUsage, flags)
	}
	if err != nil {
		return err
	}
	if s.html != "" {
		if err := writable("-html", s.html); err != nil {
			return err
		}
	}
	var listener net.Listener
	if s.http != "" {
		if listener, err = listen(s.http); err != nil {
			return err
		}
		defer listener.Close()
	}
	progress := newProgress(stderr)
	defer progress.clear()
	var r *explain.Report
	if len(s.program) > 0 {
		r, err = s.explainProgram(ctx, stdin, stderr, progress)
	} else {
		r, err = s.explainProfile(ctx, progress)
	}
	if err != nil {
		return err
	}
	progress.clear()
	var written error // the report is printed in any case
	if s.html != "" {
		written = writeExplainPage(s.html, r)
	}
	if s.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "\t")
		err = e.Encode(r)
	} else {
		err = r.Text(stdout)
	}
	if err = errors.Join(err, written); err != nil || listener == nil {
		return err
	}
	return serveReport(ctx, listener, r, stderr)
}

func writeExplainPage(name string, r *explain.Report) error {
	return writeFile(name, func(w io.Writer) error { return r.Page(w, version()) })
}

// explainProfile explains a file or what a URL answers.
func (s *explainSettings) explainProfile(ctx context.Context, progress *progress) (*explain.Report, error) {
	data, err := s.read(ctx, progress)
	if err != nil {
		return nil, err
	}
	p, err := explain.Read(data)
	var other *explain.NotCPUError
	if errors.As(err, &other) {
		return nil, usagef("%s: %v", s.source, err)
	} else if err != nil {
		return nil, usagef("%s: %v", s.source, err)
	}
	cal := explain.StoredCalibration("")
	var notes []string
	if explain.CallsC(p) {
		cal, notes = calibrateFor(ctx, explain.VersionsOf(p), progress)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	more, err := s.measure(ctx, progress)
	if err != nil {
		return nil, err
	}
	notes = append(notes, more...)
	r := explain.New(p, s.source, cal, s.figures, false, 0)
	r.Notes = append(r.Notes, notes...)
	return r, nil
}

// calibrateFor calibrates for a profile of one of some versions of Go.
func calibrateFor(ctx context.Context, versions string, progress *progress) (explain.Calibration, []string) {
	here := strings.TrimPrefix(runtime.Version(), "go")
	if !explain.HasVersion(versions, here) {
		cal := explain.StoredCalibration(versions)
		return cal, []string{fmt.Sprintf("the profile is of Go %s, and this command was built with %s: calls of C are not calibrated on this machine", versions, runtime.Version())}
	}
	progress.show("calibrating calls of C, for %v", explain.CalibrationTime)
	self, err := os.Executable()
	if err == nil {
		var cal explain.Calibration
		if cal, err = explain.Calibrate(ctx, self, calibrateCommandName); err == nil {
			return cal, nil
		}
	}
	return explain.StoredCalibration(here), []string{fmt.Sprintf("calls of C are not calibrated on this machine: %v", oneLine(err))}
}

// calibrateCommandName is a process of `cheap explain`.
const calibrateCommandName = "explain-calibrate"

func calibrateCommand(stdout io.Writer) error {
	return calibrator.Main(stdout, explain.ProcessTime)
}

// read reads the file or the answer of the URL.
func (s *explainSettings) read(ctx context.Context, progress *progress) ([]byte, error) {
	if !strings.Contains(s.source, "://") {
		info, err := os.Stat(s.source)
		if err != nil {
			return nil, usagef("%v; give a CPU profile, a URL or a package", err)
		}
		if !info.Mode().IsRegular() {
			return nil, usagef("%s is no file", s.source)
		}
		return os.ReadFile(s.source)
	}
	address, length, err := s.address()
	if err != nil {
		return nil, err
	}
	progress.show("%s: profiling for %v", address, length)
	return get(ctx, address, length+30*time.Second, "does the program import net/http/pprof, and is no other profile taken?")
}

// address returns the URL with what it leaves out, and for how long it profiles.
func (s *explainSettings) address() (string, time.Duration, error) {
	u, err := url.Parse(s.source)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", 0, usagef("%q is no address of a profile; it is like http://localhost:6060/debug/pprof/profile", s.source)
	}
	if u.Path == "" || u.Path == "/" || strings.TrimSuffix(u.Path, "/") == "/debug/pprof" {
		u.Path = "/debug/pprof/profile"
	}
	query := u.Query()
	seconds := s.seconds
	if given := query.Get("seconds"); given != "" {
		if seconds, err = strconv.Atoi(given); err != nil || seconds < 1 {
			return "", 0, usagef("%q is no number of seconds", given)
		}
	} else if strings.HasSuffix(u.Path, "/profile") {
		query.Set("seconds", strconv.Itoa(seconds))
		u.RawQuery = query.Encode()
	}
	return u.String(), time.Duration(seconds) * time.Second, nil
}

// explainProgram builds a program, runs it, and explains its profile.
func (s *explainSettings) explainProgram(ctx context.Context, stdin io.Reader, stderr io.Writer, progress *progress) (*explain.Report, error) {
	out, err := os.MkdirTemp("", "cheap-explain-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	progress.show("building %s", strings.Join(s.program, " "))
	program, err := explain.Build(ctx, s.program, out)
	if errors.Is(err, explain.ErrNoProgram) {
		return nil, usagef("%v", err)
	} else if err != nil {
		return nil, err
	}
	var cal explain.Calibration
	var notes []string
	if program.CallsC {
		progress.show("calibrating calls of C, for %v", explain.CalibrationTime)
		cal, err = s.calibrateBuilt(ctx, out)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			notes = append(notes, fmt.Sprintf("calls of C are not calibrated on this machine: %v", oneLine(err)))
		}
	}
	progress.clear()
	run, err := program.Run(ctx, s.args, out, s.length, stdin, stderr)
	if err != nil {
		return nil, err
	}
	p, err := explain.Read(run.Profile)
	if err != nil {
		return nil, err
	}
	explain.Symbolize(p)
	if cal.From == "" {
		cal = explain.StoredCalibration(run.Go)
	}
	more, err := s.measure(ctx, progress)
	if err != nil {
		return nil, err
	}
	notes = append(notes, more...)
	r := explain.New(p, strings.Join(slices.Concat(s.program, s.args), " "), cal, s.figures, program.Exact, run.Calls)
	r.Go = run.Go
	if run.Over {
		notes = append(notes, fmt.Sprintf("the program did not end by itself within %v, the time of -for", s.length))
	}
	if run.Ended != "" {
		notes = append(notes, "the program has ended with "+run.Ended)
	}
	r.Notes = append(r.Notes, notes...)
	return r, nil
}

// calibrateBuilt calibrates with the version of Go that builds the package.
func (s *explainSettings) calibrateBuilt(ctx context.Context, out string) (explain.Calibration, error) {
	dir := s.source
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return explain.Calibration{}, err
	}
	program, err := explain.BuildCalibrator(ctx, dir, out)
	if err != nil {
		return explain.Calibration{}, err
	}
	return explain.Calibrate(ctx, program)
}
