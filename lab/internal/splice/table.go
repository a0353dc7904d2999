package splice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/splice/built"
)

// Suffix ends the names of rows in the changed runtime. The name without it is that
// of the row with which such a row is compared.
const Suffix = "-spliced"

// objects is how many objects a round forgets. It is fixed, so that both runtimes
// have the same work: a round ends with collections, whose time counts for the
// objects.
const objects = 100_000

// The rows of the release table that are measured in both runtimes.
var released = []string{"addcleanup", "finalizer"}

// rows returns the rows that are measured in both runtimes: some of the table
// release, and those of this package.
func rows(release []measure.Row) []measure.Row {
	var both []measure.Row
	for _, row := range release {
		if slices.Contains(released, row.Name) {
			both = append(both, row)
		}
	}
	return append(both, smallRows()...)
}

// Table returns a table of rows in pairs, in the installed and in the changed runtime.
// The programs measure the rows, and must exist when a row is opened. They are
// called with the arguments that child makes of those for [Serve].
func Table(release []measure.Row, programs *Programs, child func(args ...string) []string) measure.Table {
	table := measure.Table{Table: result.Table{
		Name:  "splice",
		Title: "Releases in a runtime with a faster search",
		About: "The runtime keeps the finalizers, cleanups and other records of a span's objects in a sorted list, " +
			"and walks the list from its head to add a record. Rows that end in " + Suffix[1:] + " run in a copy of the runtime that begins where the last walk ended. " +
			"A span has 1,024 objects of 8 bytes.",
		Unit:    "object",
		Chart:   result.Bars,
		Sources: []result.Source{prototype},
	}, Weight: weight}
	for _, row := range rows(release) {
		table.Rows = append(table.Rows,
			remote(row, row.Name, &programs.Plain, child),
			remote(row, row.Name+Suffix, &programs.Changed, child))
	}
	return table
}

// weight gives the rows time for enough rounds, because the rounds are long.
const weight = 4

// remote returns a row as a program measures it.
func remote(row measure.Row, name string, program *string, child func(args ...string) []string) measure.Row {
	r := measure.Row{
		Name:      name,
		Published: func(procs int) []result.Published { return published(name, procs) },
		Group:     row.Name,
		N:         objects,
		Note:      row.Note,
		Open: measure.Remote(func(procs int) *exec.Cmd {
			return exec.Command(*program, child(name, strconv.Itoa(procs))...)
		}),
	}
	if name != row.Name {
		r.Versus = row.Name
	}
	return r
}

var prototype = result.Source{
	Name:    "cheap 2026",
	Author:  "cheap",
	Title:   "Design: what was measured before the first line was written",
	Date:    "2026-11-20",
	Machine: "x86-64 virtual machine with 2 cores, Go 1.26.8; a prototype of the change",
	URL:     "https://github.com/cheapgo/cheap/blob/main/docs/architecture.md#measured",
}

// published returns the times of the prototype.
func published(name string, procs int) []result.Published {
	ns := map[string]float64{
		"addcleanup":                  870,
		"addcleanup" + Suffix:         497,
		"addcleanup-8-bytes":          3111,
		"addcleanup-8-bytes" + Suffix: 625,
	}[name]
	if ns == 0 || procs != 1 {
		return nil
	}
	return []result.Published{{Ns: ns, Source: prototype.Name}}
}

// ErrArgs says what [Serve] is called with.
var ErrArgs = errors.New("the arguments are a row and a number of processors; only cheap bench -splice runs this command")

// Serve measures a row for another process. It returns an error if the program has
// not the runtime of the row.
func Serve(ctx context.Context, release []measure.Row, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return ErrArgs
	}
	procs, err := strconv.Atoi(args[1])
	if err != nil || procs < 1 {
		return ErrArgs
	}
	for _, row := range rows(release) {
		if args[0] != row.Name && args[0] != row.Name+Suffix {
			continue
		}
		if wanted := args[0] != row.Name; wanted != built.Changed() {
			return fmt.Errorf("the runtime of this program is changed: %t, the row needs: %t", built.Changed(), wanted)
		}
		return measure.Serve(ctx, row, procs, in, out)
	}
	return fmt.Errorf("no row %s", args[0])
}
