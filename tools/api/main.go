// Api lists the exported API of the packages that programs may import, and compares it with the list
// that is stored in api.txt:
//
//	cd tools && GOWORK=off go run ./api           compares
//	cd tools && GOWORK=off go run ./api -update   writes the list anew
//
// A line that is gone breaks programs, and one that is new is a promise: either is an error, until
// the list is written anew. A line is a package and a declaration in the form of Go's own files in
// api. The list is that of Linux on amd64 with cgo.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "api: %v\n", err)
		os.Exit(1)
	}
}

// modules are the folders of the modules that have packages to import, from this one.
var modules = []string{
	"..", "../cmem", "../inspect", "../vet", "../x/arrow", "../x/cgoalloc",
	"../x/otel", "../x/prometheus", "../x/statsviz",
}

// stored is the file that has the list.
const stored = "api/api.txt"

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("api", flag.ContinueOnError)
	update := flags.Bool("update", false, "write "+stored+" anew")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var now []string
	for _, dir := range modules {
		lines, err := list(dir, "./...")
		if err != nil {
			return err
		}
		now = append(now, lines...)
	}
	slices.Sort(now)
	if *update {
		return os.WriteFile(stored, []byte(strings.Join(now, "\n")+"\n"), 0o666)
	}
	text, err := os.ReadFile(stored)
	if err != nil {
		return err
	}
	return compare(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), now, stdout)
}

// compare prints the lines that are in one list only, and returns an error if there are any.
func compare(before, now []string, stdout io.Writer) error {
	gone, added := without(before, now), without(now, before)
	for _, line := range gone {
		fmt.Fprintf(stdout, "gone, which breaks programs: %s\n", line)
	}
	for _, line := range added {
		fmt.Fprintf(stdout, "new: %s\n", line)
	}
	if len(gone)+len(added) > 0 {
		return errors.New("the exported API is not that of " + stored + "; if it is meant to be, run in the folder tools: GOWORK=off go run ./api -update")
	}
	return nil
}

// without returns the lines of a that are not in b.
func without(a, b []string) []string {
	in := map[string]bool{}
	for _, line := range b {
		in[line] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return in[line] })
}
