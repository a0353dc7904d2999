//go:build cgo && re2

package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cheapgo/cheap/examples/re2/internal/re2"
)

// run is the command. It returns 0 if a line was printed, 1 if none was, and 2 after an
// error, as grep does.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, o.usage)
		return 0
	}
	w := bufio.NewWriter(stdout)
	found := 0
	if err == nil {
		found, err = search(o, stdin, w)
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		fmt.Fprintln(stderr, "re2:", err)
		return 2
	}
	if found == 0 {
		return 1
	}
	return 0
}

type options struct {
	expressions []string
	places      []string // files and folders; none for the standard input
	numbers     bool
	usage       string
}

// parse parses arguments. An error is one line.
func parse(args []string) (o options, err error) {
	var help bytes.Buffer
	flags := flag.NewFlagSet("re2", flag.ContinueOnError)
	flags.SetOutput(&help)
	flags.Usage = func() {
		fmt.Fprintln(&help, "usage: re2 [flags] expression [file or folder ...]")
		flags.PrintDefaults()
	}
	flags.Func("e", "look for this `expression` as well; may be given more than once", func(e string) error {
		o.expressions = append(o.expressions, e)
		return nil
	})
	flags.BoolVar(&o.numbers, "n", false, "print the number of each line")
	err = flags.Parse(args)
	o.usage = help.String()
	if err == nil && flags.NArg() == 0 {
		err = errors.New("no expression is given")
	}
	if err == nil {
		o.expressions = append(o.expressions, flags.Arg(0))
		o.places = flags.Args()[1:]
	}
	return o, err
}

// search prints the lines that match, and returns their number. It closes no Regexp and
// no Set: they are freed when the collector finds that they are forgotten.
func search(o options, stdin io.Reader, w *bufio.Writer) (found int, err error) {
	matches, err := matcher(o.expressions)
	if err != nil {
		return 0, err
	}
	grep := func(name string, text []byte) error {
		if bytes.IndexByte(text[:min(len(text), 1024)], 0) >= 0 {
			return nil // a binary file
		}
		number := 0
		for line := range bytes.Lines(text) {
			number++
			line = bytes.TrimSuffix(line, []byte("\n"))
			if ok, err := matches(line); err != nil {
				return err
			} else if !ok {
				continue
			}
			found++
			if name != "" {
				fmt.Fprintf(w, "%s:", name)
			}
			if o.numbers {
				fmt.Fprintf(w, "%d:", number)
			}
			fmt.Fprintf(w, "%s\n", line)
		}
		return nil
	}
	if len(o.places) == 0 {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return 0, err
		}
		return found, grep("", text)
	}
	for _, place := range o.places {
		err := filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			return grep(name, text)
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// matcher returns a function that reports whether one of the expressions is in a line.
func matcher(expressions []string) (func(line []byte) (bool, error), error) {
	if len(expressions) > 1 {
		set, err := re2.NewSet(expressions...)
		return func(line []byte) (bool, error) {
			matches, err := set.Match(line)
			return len(matches) > 0, err
		}, err
	}
	re, err := re2.Compile(expressions[0])
	return func(line []byte) (bool, error) {
		at, err := re.Find(line)
		return at != nil, err
	}, err
}
