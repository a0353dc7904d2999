// Command callgen writes Go methods that record calls of C functions in a list of package
// calls, each with the C function that makes the call by its exact prototype.
//
//	//go:generate go run github.com/cheapgo/cheap/calls/callgen -from db.go -o lists.go sqlite3_step
//
// It reads the prototypes as cgo does: the C compiler compiles the preamble of a Go file
// (-from), or a header (-include), and callgen reads the types from the debugging information.
// The result is an ordinary Go file, to be committed.
//
// For a function like
//
//	int sqlite3_bind_int64(sqlite3_stmt *, int, sqlite3_int64);
//
// the methods are
//
//	func (c Calls) BindInt64(stmt *C.sqlite3_stmt, a1 int32, a2 int64) calls.Result
//	func (c Calls) BindInt64Args(stmt, a1, a2 calls.Arg) calls.Result
//
// where an argument of the second may be the result of an earlier call. Parameters have the
// names of the header, where it has some.
//
// A pointer to a structure is of cgo's type for it, and so is a typedef of such a pointer.
// All other pointers are unsafe.Pointer, integers and floats Go's types of the same size. An
// integer whose size is not the same on all systems, as long and size_t, has the one that it has
// where callgen runs: run it where it is the larger one, which is true of Linux and macOS with 64
// bits. A function without a result has a method without one.
//
// callgen refuses variadic functions, structures and unions that are passed by value, numbers
// of more than 64 bits, and functions with more than 32 parameters. A C function
// of a few lines in the preamble, static or not, can call such a function. The preamble of
// -from is copied, so a function that it defines must be static. A static variable of it is a
// second one in the copy.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/token"
	"io"
	"os"
	"strings"
)

// A job is what the arguments ask for.
type job struct {
	from    string // a Go file with a preamble
	include string // or a header
	cgo     lines  // lines behind #cgo, with include
	strip   string
	typ     string
	out     string
	pkg     string
	names   []string // of C functions
}

// lines is a flag that can be given several times.
type lines []string

func (l *lines) String() string     { return strings.Join(*l, "; ") }
func (l *lines) Set(s string) error { *l = append(*l, s); return nil }

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run is the command. It returns the exit status.
func run(args []string, stderr io.Writer) int {
	j := job{pkg: os.Getenv("GOPACKAGE")}
	flags := flag.NewFlagSet("callgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&j.from, "from", "", "read the preamble of import \"C\" in this Go `file`")
	flags.StringVar(&j.include, "include", "", "read this `header`, without -from")
	flags.Var(&j.cgo, "cgo", "with -include: a `line` for #cgo, such as 'pkg-config: sqlite3'; may be repeated")
	flags.StringVar(&j.strip, "strip", "", "take this `prefix` off the names of functions")
	flags.StringVar(&j.typ, "type", "Calls", "the `name` of the Go type that has the methods")
	flags.StringVar(&j.out, "o", "lists.go", "write this `file`")
	flags.StringVar(&j.pkg, "package", j.pkg, "the `name` of the package; that of -from, or of go generate, by default")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: callgen [flags] function...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	j.names = flags.Args()
	if (j.from == "") == (j.include == "") || len(j.names) == 0 {
		fmt.Fprintln(stderr, "callgen: give -from or -include, and the names of functions")
		return 2
	}
	if j.from != "" && len(j.cgo) > 0 {
		fmt.Fprintln(stderr, "callgen: -cgo is for -include; with -from the #cgo lines of the package are read")
		return 2
	}
	if !token.IsIdentifier(j.typ) || j.pkg != "" && !token.IsIdentifier(j.pkg) {
		fmt.Fprintf(stderr, "callgen: -type %q and -package %q must be names of Go\n", j.typ, j.pkg)
		return 2
	}
	text, err := j.generate()
	if err == nil {
		err = os.WriteFile(j.out, text, 0o666)
	}
	if err != nil {
		fmt.Fprintln(stderr, "callgen:", err)
		return 1
	}
	return 0
}

// generate returns the text of the file.
func (j *job) generate() ([]byte, error) {
	src, err := j.readSource()
	if err != nil {
		return nil, err
	}
	functions, err := src.prototypes(j.names)
	if err != nil {
		return nil, err
	}
	return j.write(src, functions)
}
