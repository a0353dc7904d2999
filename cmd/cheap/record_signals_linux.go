//go:build amd64 || arm64

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// passed are the signals that are passed on to a program that is recorded.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// A signals takes signals from when it is made, so that none ends this process before the program.
type signals struct {
	c    chan os.Signal
	done chan struct{} // nil until passTo is called
}

// takeSignals begins to take signals. One that this process ignores is ignored by the program, too.
// SIGPIPE is taken, but not passed on: whether anyone reads the report or not, the file that the
// program shares is removed at the end.
func takeSignals() *signals {
	s := &signals{c: make(chan os.Signal, 16)}
	for _, sig := range passed {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	signal.Notify(s.c, syscall.SIGPIPE)
	return s
}

// passTo passes signals on to a program. Those that a terminal sends reach the program by
// themselves. before is called before each that may end the program.
func (s *signals) passTo(to *os.Process, before func()) {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		for sig := range s.c {
			if sig != syscall.SIGPIPE && sig != syscall.SIGCONT && sig != syscall.SIGWINCH {
				before()
			}
			if sig != syscall.SIGPIPE && !fromTerminal(sig) {
				to.Signal(sig) // the program may have ended
			}
		}
	}()
}

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.c)
	if s.done != nil {
		<-s.done
	}
}

// fromTerminal reports whether the terminal has probably sent a signal, to all processes in its
// foreground, of which the program is one.
func fromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT && s != syscall.SIGWINCH {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is none
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
