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
	exitFailed      = 1   // a trace that cannot be read, an allocator or a row that fails
	exitUsage       = 2   // arguments that are not understood
	exitInterrupted = 130 // as a shell reports a program that SIGINT ended
)

const usage = `Cheap measures what C memory costs in Go, and what allocators cost.

Usage:

	cheap bench [flags]                what calls, owners and allocators cost here
	cheap replay [flags] [trace ...]   what real programs allocated, on each allocator

"cheap bench -h" and "cheap replay -h" describe the flags.
`

// A usageError is a mistake in the arguments. Its text says what is accepted.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// run is the command: results go to stdout, progress and errors to stderr. It
// returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once

	name := "cheap"
	err := func() error {
		if len(args) == 0 {
			return usagef("no command; there are bench and replay")
		}
		switch args[0] {
		case "bench":
			name = "cheap bench"
			return unbound(func() error { return benchCommand(ctx, args[1:], stdout, stderr) })
		case rowCommandName:
			signal.Ignore(os.Interrupt) // the process that started this one ends it
			name = "cheap " + rowCommandName
			return unbound(func() error { return rowCommand(ctx, args[1:], stdin, stdout) })
		case spliceCommandName:
			signal.Ignore(os.Interrupt)
			name = "cheap " + spliceCommandName
			return unbound(func() error { return spliceCommand(ctx, args[1:], stdin, stdout) })
		case "replay":
			name = "cheap replay"
			return replayCommand(ctx, args[1:], stdout, stderr)
		case memoryCommandName:
			name = "cheap " + memoryCommandName
			return memoryCommand(args[1:], stdout)
		case "help", "-h", "-help", "--help":
			_, err := io.WriteString(stdout, usage)
			return err
		}
		return usagef("unknown command %q; there are bench and replay", args[0])
	}()

	var mistake *usageError
	switch {
	case err == nil:
		return exitOK
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
