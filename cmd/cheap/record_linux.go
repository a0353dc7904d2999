//go:build amd64 || arm64

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/heappage"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// recordCommand is `cheap record`. It returns the exit code of the program.
func recordCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, err error) {
	reports := os.Getenv(reportsVariable)
	os.Unsetenv(reportsVariable)
	s, flags, err := parseRecord(args)
	if s != nil {
		s.reports = reports
	}
	if errors.Is(err, flag.ErrHelp) {
		return 0, help(stdout, recordUsage, flags)
	}
	if err != nil && s != nil && s.folder != "" && s.path != "" {
		return 0, s.unrecorded(err, nil)
	}
	if err != nil {
		return 0, err
	}
	signals := takeSignals() // from here on: what is made below is removed at the end
	defer signals.stop()
	folder, err := shared.MakeFolder(func(path string) { writeLeft(path, stderr) })
	if err == nil {
		defer func() { err = errors.Join(err, folder.Remove()) }()
	} else if s.library == "" {
		return 0, err
	}
	if s.build != "" {
		needs, err := shared.BuildFile(s.build, folder)
		if err != nil {
			return 0, orUsage(err)
		}
		_, err = fmt.Fprintf(stderr, "cheap record: %s is for programs with %s\n", s.build, needs)
		return 0, err
	}
	var listener net.Listener
	if s.address != "" {
		if listener, err = listen(s.address); err != nil {
			return 0, err
		}
		defer listener.Close()
	}
	if s.pid != 0 {
		return 0, s.recordPid(folder, signals, listener, stderr, func(r *recording, process int) error { return r.await(context.Background(), process) })
	}
	library, err := s.preloaded(folder)
	if err != nil && s.folder != "" && !s.isGo && errors.As(err, new(*shared.UsageError)) {
		return 0, s.unrecorded(err, folder)
	}
	if err != nil {
		return 0, orUsage(err)
	}
	if s.isGo {
		return s.recordGo(signals, library, stdin, stdout, stderr)
	}
	if s.folder != "" {
		if err := s.takeName(); err != nil {
			return 0, err
		}
	}
	file, err := shared.Create(folder)
	if err != nil {
		return 0, err
	}
	file.SetGo(s.program, 0)
	defer func() { err = errors.Join(err, file.Remove()) }()
	if err := s.note(file); err != nil {
		return 0, err
	}

	r := &recording{recordSettings: s, signals: signals, file: file, stderr: stderr}
	if s.children {
		if r.children, err = newChildren(s, filepath.Dir(file.Path)); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, r.children.folder.Remove()) }()
	}
	return r.run(library, listener, stdin, stdout)
}

// preloaded returns the path of the library, which it compiles into the folder if there is none.
func (s *recordSettings) preloaded(folder *shared.Folder) (library string, err error) {
	if s.library == "" {
		if err := shared.CheckPath(folder.Path); err != nil {
			return "", err
		}
		if library, err = shared.Build(folder.Path); err != nil {
			return "", err
		}
	} else if library, err = filepath.Abs(s.library); err != nil {
		return "", err
	} else if err := shared.CheckPath(library); err != nil {
		return "", err
	}
	if s.isGo { // the programs are yet to be built
		return library, nil
	}
	return library, shared.Check(library, s.program)
}

// orUsage returns an error that says so if there is nothing to compile with, or if it was named wrong.
func orUsage(err error) error {
	if errors.As(err, new(*shared.UsageError)) {
		return usagef("%v", err)
	}
	return err
}

// A recording is a program that runs, or has run.
type recording struct {
	*recordSettings
	signals    *signals
	file       *shared.File
	stderr     io.Writer
	traced     *traced   // nil without -trace
	children   *children // nil without -children
	parts      *parts
	places     []heappage.Place // those of the page
	mapped     []*mapped
	allocators []string         // see Process.Allocators
	verdict    resident.Verdict // no sentence if there is none

	since        time.Time // when a process that runs was attached to
	took         time.Duration
	mostResident int64 // bytes, as the kernel has counted them; 0 if it has not
}

// run runs the program, and writes what was asked for.
func (r *recording) run(library string, listener net.Listener, stdin io.Reader, stdout io.Writer) (int, error) {
	child := exec.Command(r.program.Path)
	child.Args = r.args
	child.Stdin, child.Stdout, child.Stderr = stdin, stdout, r.stderr
	child.Env = r.environment(library)
	if r.trace != "" {
		var err error
		if r.traced, err = startTrace(r.trace, r.file); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := child.Start()
	if err != nil {
		return 0, usagef("%v", err)
	}
	look, stop := r.watchParts(child.Process.Pid)
	childrenEnded := r.children.watch()
	r.signals.passTo(child.Process, look)
	if listener != nil {
		server := r.serve(listener)
		defer server.Close()
	}
	err = child.Wait()
	r.took = time.Since(began)
	childrenEnded()
	stop()
	if usage, ok := child.ProcessState.SysUsage().(*syscall.Rusage); ok && r.parts.next == "" {
		r.mostResident = mostResident(int64(usage.Maxrss) << 10)
	}
	code := exitCode(child.ProcessState)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if r.folder != "" {
		err = r.writeToFolder()
	} else {
		err = r.write(r.stderr)
	}
	if err = errors.Join(err, r.children.write(r.stderr)); err != nil {
		fmt.Fprintf(r.stderr, "cheap record: %v\n", err)
		if code == 0 {
			code = exitFailed
		}
	}
	return code, nil
}

// mostResident is what the kernel says that a child had resident at most, in bytes, or 0 if that may be what this process has:
// until exec a child runs in the memory of its parent, and that counts.
func mostResident(ofChild int64) int64 {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil || ofChild <= int64(self.Maxrss)<<10 {
		return 0
	}
	return ofChild
}

// writeToFolder writes the profile, the page and the report, which says why if there is no profile. That is no failure: the
// program ran as usual. A file that cannot be written is one. Without the go command, which shows the reports, the
// report is shown, and then what was written.
func (r *recording) writeToFolder() error {
	var text bytes.Buffer
	wrong := r.write(&text)
	if wrong != nil {
		fmt.Fprintf(&text, "cheap record: %s: %v\n", filepath.Base(r.path), wrong)
		os.Remove(r.out)
		os.Remove(r.page)
	}
	err := errors.Join(writeFile(r.report(), func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err }), r.addReport())
	names := fmt.Sprintf("%s, %s and %s", filepath.Base(r.out), filepath.Base(r.page), filepath.Base(r.report()))
	if errors.As(wrong, new(*unrecordedError)) {
		names, wrong = filepath.Base(r.report()), nil
	}
	err = errors.Join(wrong, err)
	if err == nil && r.reports == "" {
		r.stderr.Write(text.Bytes())
		fmt.Fprintf(r.stderr, "cheap record: wrote %s into %s%s\n", figure.Printable(names), quoted(r.folder), r.beside)
	}
	return err
}

// An unrecordedError says why a program that has run was not recorded.
type unrecordedError struct{ why string }

func (e *unrecordedError) Error() string { return "nothing was recorded: " + e.why }

// watchParts has the resident memory of the program watched until stop is called. look has it looked at immediately.
func (r *recording) watchParts(pid int) (look, stop func()) {
	r.parts = &parts{pid: pid, asked: make(chan chan struct{}), began: r.file.Started, library: filepath.Base(r.file.Path), moment: r.file.FindGo, program: r.path, isGo: r.program.IsGo, children: r.children, timeline: timeline{began: time.Now()}, inUse: func() []float64 { return r.inUse(r.file.InUse) }, mapped: func() []float64 { return r.inUse(r.file.Mapped) }, live: func() resident.C {
		if !r.file.Started() || r.file.Off() != "" || r.pid != 0 { // of what was in use before, nothing is known
			return resident.C{}
		}
		c, err := r.file.Counts()
		return resident.C{Known: err == nil, Live: c.Live, Held: c.Held, Error: c.LiveError}
	}}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); r.parts.watch(over) }()
	return func() { r.parts.lookNow(over) }, func() { close(over); <-ended }
}

// inUse returns what is read of each stack, or nothing before the library has begun.
func (r *recording) inUse(read func() ([]float64, error)) []float64 {
	if !r.file.Started() || r.file.Off() != "" {
		return nil
	}
	all, _ := read()
	return all
}

// environment returns that of the program. The library takes what is added here away again.
func (r *recording) environment(library string) []string {
	preload := library
	var env []string
	for _, v := range os.Environ() {
		if others, ok := strings.CutPrefix(v, "LD_PRELOAD="); ok {
			if others != "" {
				preload += ":" + others
			}
			continue
		}
		env = append(env, v)
	}
	env = append(env, "LD_PRELOAD="+preload, "CHEAP_CMEM_RECORD="+r.file.Path, fmt.Sprintf("CHEAP_CMEM_RECORD_RATE=%x", r.rate))
	if r.children != nil {
		env = append(env, "CHEAP_CMEM_RECORD_CHILDREN="+r.children.folder.Path)
	}
	if r.trace != "" {
		var ranges []string
		for _, m := range r.program.Mallocs {
			ranges = append(ranges, fmt.Sprintf("%x-%x", m.From, m.To))
		}
		env = append(env, "CHEAP_CMEM_RECORD_TRACE="+strings.Join(ranges, ","))
	}
	return env
}

// exitCode returns that of a program, as a shell reports it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// profileOf reads all that a profile has.
func profileOf(f *shared.File, program *executable.Program) (c shared.Counts, sites []heapprofile.Site, process *heapprofile.Process, p *profile.Profile, err error) {
	if c, err = f.Counts(); err != nil {
		return
	}
	if sites, err = f.Sites(); err != nil {
		return
	}
	if process, err = f.Process(program); err != nil {
		return
	}
	p, err = process.Profile(sites, int(c.Rate))
	return
}

// write writes the profile, and the report to w.
func (r *recording) write(w io.Writer) error {
	var cut error // the trace
	if r.traced != nil {
		cut = r.traced.stop()
	}
	if !r.file.Started() {
		return &unrecordedError{fmt.Sprintf("%s did not load the library, or the library could not map its file; the dynamic linker does not load it into a program that gets other rights when it starts (AT_SECURE)", r.program.Path)}
	}
	if off := r.file.Off(); off != "" {
		return &unrecordedError{off}
	}
	c, sites, process, profile, err := profileOf(r.file, r.program)
	if err != nil {
		return err
	}
	page := r.makePage(c, process, sites)
	if r.page != "" {
		if err := writeFile(r.page, page.Write); err != nil {
			return err
		}
	}
	if r.page != r.out {
		if err := writeFile(r.out, profile.Write); err != nil {
			return err
		}
	}
	r.writeReport(w, c, process.Libraries(sites), profile)
	return cut
}
