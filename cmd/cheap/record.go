package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

const recordUsage = `Record runs a program, and shows the memory of its C heap: what C libraries
allocate by themselves, which Go's tools do not see. The program need not be
built for that.

Usage:

	cheap record [flags] [--] program [argument ...]

Examples:

	cheap record -pid 4711 -for 30s
	cheap record ./server -listen :8080
	go tool pprof ./server cheap-record.pb.gz

	cheap record -o report.html ./convert in.jpg out.jpg
	cheap record -rate 1 -o heap.pb.gz -- ./convert -quality 9 in.jpg out.jpg
	cheap record -http localhost:6061 ./server
	cheap record -trace server.fht.gz ./server && go run ./lab replay server.fht.gz
	cheap record -- go test ./...
	cheap record -children -o out/ sh start.sh

	cheap record -build libcheap.so
	cheap record -library libcheap.so -o /dev/shm/heap.pb.gz ./server

It needs Linux and a C compiler: it compiles a small library, and keeps it in the
folder cheap of the user's cache. The dynamic linker loads it into the program
before all others, and it counts the calls of malloc and its like. So a program
that is linked statically cannot be recorded, nor one that gets other rights when
it starts: setuid, setgid, or with file capabilities. Where there is no compiler,
-library takes a library that -build has made elsewhere, with a compiler for the C
library of the program: CC=musl-gcc makes one for musl. What a run that was killed
has left in /dev/shm and in the folder of temporary files, the next one removes,
and writes the profile to name-recovered.pb.gz, where -o was name.pb.gz.

The profile has the stacks that have allocated, first the functions of C and
then those of Go that have called them. Its sample types say what they have
allocated, what was in use at the end, and, as peak_space, what was in use when
the C heap held the most. The report at the end goes to stderr. A page,
-o report.html, shows the same over time, which places grew until the end and
since when, and flame graphs of the end, of the peak and of what grew between two
moments; it is one file, and asks for no other. A folder, -o name/, gets profile,
page and report; those of an earlier run stay. What is in use is an estimate:
without a sample of it, less than three times -rate was in use, with a certainty
of 95 %%.

The program has the input, the output, the arguments and the environment that it
would have without this command. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and
SIGUSR2 are passed on to it. The exit code is that of the program, or 128 and
the number of the signal that has ended it, as in a shell. If a file cannot be
written, it is 1 in place of 0. Programs that it starts are not recorded, nor what
it becomes by exec; the report names those that were seen. With -children they
are, a page for each that has allocated, also those that they start. They find the
library in their environment, where this command leaves it then, and need the
same C library as the program. What the child of a fork does before it calls exec
is not counted.

With -pid it records a Go program that runs, and was not started for that: what
it allocates from now on, until -for has passed, it ends, or SIGINT comes.
The program goes on as before. What was in use before has no maker, and is one
number. It needs amd64, glibc 2.31 or later, or musl, and the right to trace the process:
that of root, or of the same user where kernel.yama.ptrace_scope is 0.
docs/memory.md says what this does to the process.

With go test and go run each program is recorded that the go command builds and
starts. The profiles, pages and reports are in the folder that -o names, or else
in cheap-record, as the names of the programs say, and the reports are shown at
the end. A program that cannot be recorded, as it is linked statically, runs as
usual.

Flags:

%s`

// pageSuffix is that of pages.
const pageSuffix = ".html"

// recordSettings is what the arguments of `cheap record` ask for.
type recordSettings struct {
	out      string // the profile, or the page
	page     string // "" if there is none; out, if that is a page
	folder   string // for the profile, the page and the report, absolute; "" if out was named
	beside   string // what the folder had of earlier runs of the program, as the end of a sentence
	older    bool   // the file that -o names was there
	reports  string // a file for the names of reports, or ""; see reportsVariable
	trace    string
	address  string // of the page
	library  string // that is preloaded; "" if it is yet to be compiled
	build    string // compile the library to this file, and do nothing else
	rate     int
	children bool          // record what the program starts, too
	pid      int           // of a process that runs; 0: a program is started
	length   time.Duration // how long that is recorded; 0 is until it ends
	path     string        // of the program
	program  *executable.Program
	args     []string // of the program, the name first
	isGo     bool     // the program is go test or go run: those that it starts are recorded
}

// parseRecord reads the arguments. It returns flag.ErrHelp where they ask for help, and a usageError where they are wrong.
func parseRecord(args []string) (*recordSettings, *flag.FlagSet, error) {
	s := new(recordSettings)
	flags := flag.NewFlagSet("cheap record", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.out, "o", "cheap-record.pb.gz", "write the profile to this `file`; to x.html a page, to x/ all")
	flags.StringVar(&s.trace, "trace", "", "write all calls to this `file`, for lab replay")
	flags.StringVar(&s.address, "http", "", "show the figures at this `address` while the program runs")
	flags.StringVar(&s.build, "build", "", "compile the library to this `file`, and run nothing")
	flags.StringVar(&s.library, "library", "", "preload this `file`, which -build has made, and compile nothing")
	flags.IntVar(&s.rate, "rate", sample.DefaultRate, "sample one block in so many `bytes`, in the mean; 1 samples all blocks")
	flags.BoolVar(&s.children, "children", false, "record the programs that the program starts, too; -o names a folder")
	flags.IntVar(&s.pid, "pid", 0, "record the `process` with this number, which runs, and start nothing")
	flags.DurationVar(&s.length, "for", 0, "with -pid: end after this `time`")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, flags, err
	case err != nil:
		return nil, flags, usagef("%v; the flags are -build, -children, -for, -http, -library, -o, -pid, -rate and -trace", err)
	case s.build != "" && flags.NFlag() > 1:
		return nil, flags, usagef("-build compiles the library and runs nothing; leave the other flags out")
	case s.build != "" && flags.NArg() > 0:
		return nil, flags, usagef("-build compiles the library and runs nothing; leave %s out", flags.Arg(0))
	case s.build != "":
		return s, flags, nil
	case s.rate < 1:
		return nil, flags, usagef("-rate: %d is too little; the least is 1", s.rate)
	case s.out == "":
		return nil, flags, usagef("-o: name a file for the profile")
	case isSet(flags, "pid"):
		return s, flags, s.checkPid(flags)
	case s.length != 0:
		return nil, flags, usagef("-for is for a process that runs; name one with -pid")
	case flags.NArg() == 0:
		return nil, flags, usagef("no program is given; give one, such as cheap record -- ./program")
	}
	if strings.EqualFold(filepath.Ext(s.out), pageSuffix) {
		s.page = s.out
	}
	s.args = flags.Args()
	path, err := exec.LookPath(s.args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, flags, usagef("%v; give the path of a program", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, flags, err
	}
	s.isGo = isGo(s.args)
	if err := s.findFolder(flags); err != nil {
		return nil, flags, err
	}
	if s.folder != "" && s.library != "" { // a program that cannot be recorded runs as usual, but this is no reason
		if _, err := os.Stat(s.library); err != nil {
			return nil, flags, usagef("-library: %v", err)
		}
	}
	if s.path = path; s.isGo {
		return s, flags, nil // by that path: a link may lead to a program that looks at its name
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, flags, usagef("%v", err)
	}
	s.path = path
	if s.program, err = executable.Open(path); err != nil {
		return s, flags, usagef("%v", err)
	}
	if s.folder != "" {
		return s, flags, nil
	}
	for _, file := range []struct{ flag, name string }{{"-o", s.out}, {"-trace", s.trace}} {
		if file.name == "" {
			continue
		}
		if err := writable(file.flag, file.name); err != nil {
			return nil, flags, err
		}
		if sameFile(file.name, path) {
			return nil, flags, usagef("%s: %s is the program; name another file", file.flag, file.name)
		}
	}
	if info, err := os.Stat(s.out); err == nil {
		s.older = info.Mode().IsRegular()
	}
	if s.trace != "" && sameFile(s.out, s.trace) {
		return nil, flags, usagef("-o and -trace name the same file, %s; name two", s.out)
	}
	return s, flags, nil
}

// checkPid looks at the arguments of a recording of a process that runs.
func (s *recordSettings) checkPid(flags *flag.FlagSet) error {
	switch {
	case s.pid <= 0:
		return usagef("-pid: %d is no number of a process", s.pid)
	case flags.NArg() > 0:
		return usagef("-pid records a process that runs, and starts nothing; leave %s out", flags.Arg(0))
	case s.length < 0:
		return usagef("-for: %v is in the past", s.length)
	case s.trace != "" || s.children:
		return usagef("-trace and -children are for a program from its start; leave them or -pid out")
	case strings.HasSuffix(s.out, "/"):
		return usagef("-o: name a file, such as %s.html, for one process", strings.TrimRight(s.out, "/"))
	}
	if strings.EqualFold(filepath.Ext(s.out), pageSuffix) {
		s.page = s.out
	}
	return writable("-o", s.out)
}

// isGo reports whether a command is go test or go run, which start the programs that they build.
func isGo(args []string) bool {
	return filepath.Base(args[0]) == "go" && len(args) > 1 && (args[1] == "test" || args[1] == "run")
}

// isSet reports whether the command line has a flag.
func isSet(flags *flag.FlagSet, name string) (set bool) {
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// findFolder sets the folder, if -o names one.
func (s *recordSettings) findFolder(flags *flag.FlagSet) (err error) {
	if s.isGo && !isSet(flags, "o") {
		s.out = "cheap-record/"
	}
	switch isFolder := strings.HasSuffix(s.out, "/"); {
	case !isFolder && s.isGo:
		return usagef("-o: go %s may start several programs; name a folder, such as %s/", s.args[1], strings.TrimSuffix(s.out, ".pb.gz"))
	case !isFolder && s.children:
		return usagef("-children: -o has to name a folder, such as out/, for several programs")
	case !isFolder:
		return nil
	case s.trace != "" || s.address != "":
		return usagef("-trace and -http are for one program, whose profile is a file; leave them out")
	}
	for i, arg := range s.args[1:] {
		name, _, _ := strings.Cut(arg, "=")
		if s.isGo && (name == "-exec" || name == "--exec") {
			return usagef("-exec: this command gives go %s one; leave it out", s.args[1])
		}
		if name == "-args" || name == "--args" || s.args[1] == "run" && i > 0 && !strings.HasPrefix(name, "-") {
			break // what follows is the program's
		}
	}
	s.folder, err = filepath.Abs(s.out)
	return err
}

// sameFile reports whether two paths are those of one file, which perhaps does not exist yet.
// Devices, such as /dev/null, are none.
func sameFile(x, y string) bool {
	fx, errX := os.Stat(x)
	fy, errY := os.Stat(y)
	if errX == nil && errY == nil {
		return os.SameFile(fx, fy) && fx.Mode().IsRegular()
	}
	x, errX = filepath.Abs(x)
	y, errY = filepath.Abs(y)
	return errX == nil && errY == nil && x == y
}
