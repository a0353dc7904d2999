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

// passSignals passes signals on to the program until stop is called. Those that a terminal sends
// reach the program by themselves. A signal that this process ignores is ignored by the program.
func passSignals(to *os.Process) (stop func()) {
	c := make(chan os.Signal, 16)
	for _, s := range passed {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range c {
			if fromTerminal(s) {
				continue
			}
			to.Signal(s) // the program may have ended
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
		<-done
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
