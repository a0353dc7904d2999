package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// The exit codes of the command.
const (
	exitOK          = 0
	exitFailed      = 1   // a page does not answer, or a report cannot be made or written
	exitUsage       = 2   // the arguments are wrong: a file that they name cannot be read, or a program cannot be run
	exitInterrupted = 130 // a shell reports the same for a program that SIGINT ended
)

const usage = `Cheap shows which C memory a Go program holds, and what C costs it.

Usage:

  cheap record [flags] program ...  run a program, and show its C heap
  cheap top [flags] URL             show the memory of a program that runs
  cheap explain [flags] profile     say where the time of a program with C goes
  cheap postmortem [flags] FILE     say what held the memory of a killed program
  cheap version                     print the version

"cheap record -h" describes the flags of a command, and so do the others.
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

	name, err := command(ctx, args, stdin, stdout, stderr)
	if err == nil {
		return exitOK
	}
	return fail(name, err, stderr)
}

// hidden are commands that only this program calls: processes of other commands.
var hidden = map[string]func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error{
	calibrateCommandName: func(_ context.Context, _ []string, _ io.Reader, stdout io.Writer) error {
		return unbound(func() error { return calibrateCommand(stdout) })
	},
	waysCommandName: func(ctx context.Context, _ []string, _ io.Reader, stdout io.Writer) error {
		return unbound(func() error { return waysCommand(ctx, stdout) })
	},
}

// command runs a command but for record. It returns its name, as messages have it.
func command(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (name string, err error) {
	if len(args) == 0 {
		_, err := io.WriteString(stderr, usage)
		return "cheap", errors.Join(errUsageShown, err)
	}
	name = "cheap " + args[0]
	switch rest := args[1:]; args[0] {
	case "top":
		return name, topCommand(ctx, rest, stdin, stdout)
	case "explain":
		return name, explainCommand(ctx, rest, stdin, stdout, stderr)
	case "postmortem":
		return name, postmortemCommand(rest, stdout, stderr)
	case "version", "-version", "--version":
		if len(rest) > 0 {
			return "cheap", usagef("unexpected argument %q; cheap version takes none", rest[0])
		}
		return "cheap", versionCommand(stdout)
	case "help", "-h", "-help", "--help":
		_, err := io.WriteString(stdout, usage)
		return "cheap", err
	default:
		if f := hidden[args[0]]; f != nil {
			return name, f(ctx, rest, stdin, stdout)
		}
	}
	return "cheap", usagef("unknown command %q; the commands are explain, postmortem, record, top and version", args[0])
}

// help writes the usage of a command, in which its flags have their place.
func help(out io.Writer, usage string, flags *flag.FlagSet) error {
	var options strings.Builder
	flags.SetOutput(&options)
	flags.PrintDefaults()
	_, err := fmt.Fprintf(out, usage, options.String())
	return err
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
