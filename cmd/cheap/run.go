package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// The exit codes of the command.
const (
	exitOK          = 0
	exitFailed      = 1   // a trace cannot be read, or an allocator or a row fails
	exitUsage       = 2   // the arguments are wrong
	exitInterrupted = 130 // a shell reports the same for a program that SIGINT ended
)

const usage = `Cheap measures what C memory costs in Go, compares allocators, and shows the
memory of a program that runs.

Usage:

  cheap bench [flags]               measure calls, owners, allocators, strings
  cheap replay [flags] [trace ...]  replay what real programs allocated
  cheap record [flags] program ...  run a program, and show its C heap
  cheap top [flags] URL             show the memory of a program that runs
  cheap explain [flags] profile     say where the time of a program with C goes
  cheap version                     print the version

"cheap bench -h" describes the flags of a command, and so do the others.
docs/tools.md describes the reports.
`

// A usageError is a mistake in the arguments. Its text says what is right.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errUsageShown says that no command was given, and that the usage is on stderr.
var errUsageShown = errors.New("no command is given")

// run is the command: results go to stdout, progress and errors to stderr. It
// returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == "help" {
		args = []string{args[1], "-h"}
	}
	if len(args) > 0 && args[0] == "record" { // its signals are those of the program that it runs
		code, err := recordCommand(args[1:], stdin, stdout, stderr)
		if err != nil {
			return fail("cheap record", err, stderr)
		}
		return code
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once

	name := "cheap"
	err := func() error {
		if len(args) == 0 {
			_, err := io.WriteString(stderr, usage)
			return errors.Join(errUsageShown, err)
		}
		switch args[0] {
		case "bench":
			name = "cheap bench"
			return benchCommand(ctx, args[1:], stdout, stderr)
		case "replay":
			name = "cheap replay"
			return replayCommand(ctx, args[1:], stdout, stderr)
		case nativeCommandName:
			signal.Ignore(os.Interrupt)
			name = "cheap " + nativeCommandName
			return nativeCommand(ctx, args[1:], stdin, stdout)
		case memoryCommandName:
			name = "cheap " + memoryCommandName
			return memoryCommand(args[1:], stdout)
		case "top":
			name = "cheap top"
			return topCommand(ctx, args[1:], stdout)
		case "explain":
			name = "cheap explain"
			return explainCommand(ctx, args[1:], stdin, stdout, stderr)
		case calibrateCommandName:
			name = "cheap " + calibrateCommandName
			return unbound(func() error { return calibrateCommand(stdout) })
		case waysCommandName:
			name = "cheap " + waysCommandName
			return unbound(func() error { return waysCommand(ctx, stdout) })
		case "version", "-version", "--version":
			if len(args) > 1 {
				return usagef("unexpected argument %q; cheap version takes none", args[1])
			}
			return versionCommand(stdout)
		case "help", "-h", "-help", "--help":
			_, err := io.WriteString(stdout, usage)
			return err
		}
		return usagef("unknown command %q; the commands are bench, explain, record, replay, top and version", args[0])
	}()

	if err == nil {
		return exitOK
	}
	return fail(name, err, stderr)
}

// fail says what went wrong, and returns the exit code.
func fail(name string, err error, stderr io.Writer) int {
	var mistake *usageError
	switch {
	case errors.Is(err, errUsageShown):
		return exitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "%s: interrupted\n", name)
		return exitInterrupted
	case errors.As(err, &mistake):
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return exitFailed
}
