package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cheapgo/cheap/inspect/blackbox"
)

const postmortemUsage = `Postmortem prints what a program has written into its black box before it ended:
what its memory was for, what the container was charged, and a verdict.

Usage:

	cheap postmortem [flags] FILE

FILE is the path that the program has given to package inspect/blackbox. When the
program starts again, the box of a process that was killed is kept as
FILE.previous.

Flags:

%s`

// postmortemCommand is `cheap postmortem`. What concerns another file goes to stderr.
func postmortemCommand(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("cheap postmortem", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	asJSON := flags.Bool("json", false, "print JSON")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return help(stdout, postmortemUsage, flags)
	case err != nil:
		return usagef("%v; the flag is -json", err)
	case flags.NArg() == 0:
		return usagef("no file is given; give the path of a black box")
	case flags.NArg() > 1 && strings.HasPrefix(flags.Arg(1), "-"):
		return usagef("the flag %s follows the file; put the flags before it", flags.Arg(1))
	case flags.NArg() > 1:
		return usagef("unexpected argument %q; there is one file", flags.Arg(1))
	}
	name := flags.Arg(0)
	report, err := blackbox.ReadReport(name)
	if err != nil {
		return usagef("%s", strings.TrimPrefix(err.Error(), "cheap: "))
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "\t")
		err = e.Encode(report)
	} else {
		err = report.WriteText(stdout)
	}
	if err != nil {
		return err
	}
	const previous = ".previous"
	if report.State == blackbox.Ended || strings.HasSuffix(name, previous) {
		return nil
	}
	if _, err := os.Stat(name + previous); err != nil {
		return nil
	}
	_, err = fmt.Fprintf(stderr, "cheap postmortem: %s%s is the box of a process before that has ended without Stop\n", name, previous)
	return err
}
