// Lab measures what C memory costs in Go: with package cheap, and with what programs use today.
//
//	go run ./lab [flags]
//
// measures calls, owners, allocators, strings and collections, and sets the figures that others
// have published beside its own.
//
//	go run ./lab replay [flags] [trace ...]
//
// replays the allocations of real programs on one allocator after the other.
//
// The flag -h describes the flags of either. docs/tools.md describes the reports.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // a trace cannot be read, or an allocator or a row fails
	exitUsage       = 2   // the arguments are wrong
	exitInterrupted = 130 // a shell reports the same for a program that SIGINT ended
)

// The main goroutine stays on the main thread: glibc gives that thread the
// arena that a program without threads allocates from, and each other thread
// one that works differently.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program: results go to stdout, progress and errors to stderr. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == rowCommandName {
		signal.Ignore(os.Interrupt) // its parent ends it, by closing its stdin
		return fail(unbound(func() error { return rowCommand(ctx, args[1:], stdin, stdout) }), stderr)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	replay := len(args) > 0 && args[0] == "replay"
	if replay {
		args = args[1:]
	}
	return fail(unbound(func() error { return command(ctx, args, replay, stdout, stderr) }), stderr)
}

// fail says what went wrong, if anything did, and returns the exit code.
func fail(err error, stderr io.Writer) int {
	var mistake usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "lab: interrupted\n")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "lab: %v\n", err)
	if errors.As(err, &mistake) {
		return exitUsage
	}
	return exitFailed
}

// A usageError is a mistake in the arguments. Its text says what is right.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// A progress shows on a terminal what the program does, on one line that is overwritten. Elsewhere it
// shows nothing.
type progress struct {
	out io.Writer
	tty bool
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	if ok {
		info, err := file.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return &progress{out, ok}
}

// show replaces the line.
func (p *progress) show(format string, args ...any) {
	if p.tty {
		fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
	}
}

// warn writes a line that stays. It does so without a terminal as well.
func (p *progress) warn(format string, args ...any) {
	p.show("")
	fmt.Fprintf(p.out, "lab: "+format+"\n", args...)
}
