//go:build amd64 || arm64

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/cmd/cheap/internal/attach"
	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// watchPid records a process that runs while show does, to which it gives a context that ends when the recording does, and a
// function that writes the report of now. The report of the end goes to w.
func watchPid(ctx context.Context, pid int, w io.Writer, show func(ctx context.Context, report func(io.Writer) error) error) error {
	signals := takeSignals()
	defer signals.stop()
	folder, err := shared.MakeFolder(func(path string) { writeLeft(path, io.Discard) })
	if err != nil {
		return err
	}
	s := &recordSettings{pid: pid, rate: sample.DefaultRate}
	return errors.Join(s.recordPid(folder, signals, nil, w, func(r *recording, process int) error {
		ctx, end := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { err := r.await(ctx, process); end(); ended <- err }()
		err := show(ctx, func(w io.Writer) error {
			now := &recording{recordSettings: s, file: r.file, parts: r.parts, since: r.since, took: time.Since(r.since)}
			return now.write(w)
		})
		end()
		return errors.Join(err, <-ended)
	}), folder.Remove())
}

// recordPid records a process that runs, until a function returns that says meanwhile that this process lives.
func (s *recordSettings) recordPid(folder *shared.Folder, signals *signals, listener net.Listener, stderr io.Writer, until func(r *recording, process int) error) (err error) {
	process, err := unix.PidfdOpen(s.pid, 0) // first: the number may be given to another process later
	if err != nil {
		return usagef("there is no process %d", s.pid)
	}
	defer unix.Close(process)
	target, err := attach.Open(s.pid)
	if err != nil {
		return usagef("%v", err)
	}
	defer target.Close()
	s.program, s.path = target.Program, target.Program.Path
	library, err := s.preloaded(folder)
	if err != nil {
		return orUsage(err)
	}
	r := &recording{recordSettings: s, signals: signals, stderr: stderr}
	if r.file, err = target.Load(library, s.rate); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	r.since = time.Now()
	length := "until SIGINT"
	if s.length > 0 {
		length = "for " + s.length.String()
	}
	fmt.Fprintf(stderr, "cheap record: counts what process %d, %s, allocates from now on, %s\n", s.pid, figure.Printable(filepath.Base(s.path)), length)
	r.file.Beat()
	look, stop := r.watchParts(s.pid)
	if listener != nil {
		server := r.serve(listener)
		defer server.Close()
	}
	cut := until(r, process)
	r.took = time.Since(r.since)
	if r.file.Gone() {
		look() // to name the next program
	} else if left, wrong := r.file.Detach(detachPatience); left > 0 {
		err = fmt.Errorf("%s could not be changed back: the pages are not writable any more; what the library does there is harmless", figure.Plural(int(left), "slot"))
	} else {
		err = wrong
	}
	stop()
	return errors.Join(cut, err, r.write(stderr))
}

const (
	// beats is how often this process says that it lives; the library waits for four seconds.
	beats = 250 * time.Millisecond

	detachPatience = 30 * time.Second
)

// await returns when the process ends or becomes another program, or the context, a signal or the time ends the recording.
func (r *recording) await(ctx context.Context, process int) error {
	for ctx.Err() == nil {
		r.file.Beat()
		sleep := beats
		if r.length > 0 {
			sleep = min(sleep, time.Until(r.since.Add(r.length)))
			if sleep <= 0 {
				return nil
			}
		}
		ended := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		if n, _ := unix.Poll(ended, int(sleep.Milliseconds())+1); n > 0 || r.file.Gone() {
			return nil
		}
		if r.file.Ended() {
			return errors.New("this command did not run for some seconds, and the library took it for dead; what came then is not counted")
		}
		select {
		case s := <-r.signals.c:
			switch s {
			case os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
				return nil
			}
		default:
		}
	}
	return nil
}

// counted says since when calls are counted, and what is not.
func (r *recording) counted() string {
	text := fmt.Sprintf("since %s, for %v", r.since.Format(time.TimeOnly), r.took.Round(100*time.Millisecond))
	if before := r.file.Before(); before > 0 {
		return text + fmt.Sprintf("; the %s that C had in use before have no maker, and calls of free for them count", byteCount(before))
	}
	return text + "; what C had in use before has no maker, and calls of free for it count"
}
