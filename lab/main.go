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
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/tables"
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

// children are commands that only this program calls: a process of a row, or of a trace on an
// allocator. Its parent ends it, by closing its stdin.
var children = map[string]func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error{
	rowCommandName: func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
		return unbound(func() error { return measure.Child(ctx, tables.All(), args, stdin, stdout) })
	},
	replayCommandName: replayChildCommand,
}

// run is the program: results go to stdout, progress and errors to stderr. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && children[args[0]] != nil {
		signal.Ignore(os.Interrupt)
		return fail("lab "+args[0], children[args[0]](ctx, args[1:], stdin, stdout), stderr)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if len(args) > 0 && args[0] == "replay" {
		return fail("lab replay", replayCommand(ctx, args[1:], stdout, stderr), stderr)
	}
	return fail("lab", unbound(func() error { return benchCommand(ctx, args, stdout, stderr) }), stderr)
}

// fail says what went wrong, if anything did, and returns the exit code.
func fail(name string, err error, stderr io.Writer) int {
	var mistake usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "%s: interrupted\n", name)
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
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
	name string // of the command
	out  io.Writer
	tty  bool
}

func newProgress(out io.Writer, name string) *progress {
	file, ok := out.(*os.File)
	if ok {
		info, err := file.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return &progress{name: name, out: out, tty: ok}
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
	fmt.Fprintf(p.out, p.name+": "+format+"\n", args...)
}

// flagDefaults describes flags.
func flagDefaults(flags *flag.FlagSet) string {
	var text strings.Builder
	flags.SetOutput(&text)
	flags.PrintDefaults()
	return text.String()
}
