package present

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// Bench writes a report in Go's benchmark format, for benchstat: a line for each
// round of a row, and one for what is known of all its rounds together. Figures
// of others are not in it, nor is the date: benchstat sets only those results
// side by side whose configuration is the same.
func Bench(w io.Writer, r *result.Report) error {
	out := bufio.NewWriter(w)
	m := &r.Machine
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: github.com/cheapgo/cheap/cmd/cheap\n", m.OS, m.Arch)
	for _, c := range []struct{ key, value string }{
		{"cpu", m.CPU}, {"go", m.Go}, {"gogc", m.GOGC}, {"malloc", m.Malloc},
	} {
		if c.value != "" {
			fmt.Fprintf(out, "%s: %s\n", c.key, oneLine(c.value))
		}
	}
	out.WriteByte('\n')
	for i := range r.Rows {
		benchRow(out, &r.Rows[i])
	}
	return out.Flush() // which has the error of the writes before it
}

// benchRow writes the lines of a row. The processors are always behind the
// name: without them, benchstat would take a size at the end of a name for them.
func benchRow(out *bufio.Writer, row *result.Row) {
	name := fmt.Sprintf("BenchmarkCheap/table=%s/row=%s-%d", oneWord(row.Table), oneWord(row.Row), row.Procs)
	for _, ns := range row.Samples {
		fmt.Fprintf(out, "%s\t1\t%s ns/op\n", name, sevenDigits(ns))
	}
	if len(row.Samples) == 0 {
		fmt.Fprintf(out, "%s\t1\t%s ns/op\n", name, sevenDigits(row.NsPerOp))
	}
	fmt.Fprintf(out, "%s\t1", name)
	if row.CPUNsPerOp > 0 {
		fmt.Fprintf(out, "\t%s cpu-ns/op", sevenDigits(row.CPUNsPerOp))
	}
	fmt.Fprintf(out, "\t%s B/op\t%s allocs/op\n", sevenDigits(row.GoBytesPerOp), sevenDigits(row.AllocsPerOp))
}

// sevenDigits writes a number without an exponent, and no more of it than a clock
// can tell.
func sevenDigits(x float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 6, 64), 64)
	if err != nil {
		rounded = x
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// oneWord makes a name fit between the slashes of a benchmark's.
func oneWord(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '/' {
			return '_'
		}
		return c
	}, name)
}

// oneLine makes a value fit behind its key.
func oneLine(value string) string { return strings.Join(strings.Fields(value), " ") }
