package splice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"

	"github.com/cheapgo/cheap/cmd/cheap/internal/measure"
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
	"github.com/cheapgo/cheap/cmd/cheap/internal/splice/built"
)

// Suffix ends the names of rows in the changed runtime. What is before it names
// the row that such a one is compared with.
const Suffix = "-spliced"

// objects is how many a round forgets. Both runtimes have the same work to do: a
// round ends with collections, of which each object bears its part.
const objects = 100_000

// The rows of the release table that are measured in both runtimes.
var released = []string{"addcleanup", "finalizer"}

// rows returns what is measured in both runtimes: rows of the release table, and
// those of this package.
func rows(release []measure.Row) []measure.Row {
	var both []measure.Row
	for _, row := range release {
		if slices.Contains(released, row.Name) {
			both = append(both, row)
		}
	}
	return append(both, smallRows()...)
}

// Table returns a table of rows in pairs, in the plain and in the changed
// runtime. The programs measure them, and have to be there when a row is opened:
// they are called with the arguments that child makes of those for [Serve].
func Table(release []measure.Row, programs *Programs, child func(args ...string) []string) measure.Table {
	table := measure.Table{Table: result.Table{
		Name:  "splice",
		Title: "Releases in a runtime that remembers where it spliced",
		About: "The runtime keeps what it knows of a span's objects, finalizers and cleanups among it, in a sorted list, " +
			"and walks it from its head to register another. Rows that end in " + Suffix[1:] + " run in a copy of it that begins where the last walk ended. " +
			"Objects of 8 bytes have 1,024 to a span.",
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

// weight gives rows the time for enough rounds: these are long.
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

// published returns what the prototype took.
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
var ErrArgs = errors.New("it takes a row and a number of processors; cheap bench -splice calls it")

// Serve measures a row that another process asks for. It fails in a runtime that
// is not the one that the row is to be measured in.
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
			return fmt.Errorf("the runtime of this program is changed: %t, but it is to be: %t", built.Changed(), wanted)
		}
		return measure.Serve(ctx, row, procs, in, out)
	}
	return fmt.Errorf("no row %s", args[0])
}
