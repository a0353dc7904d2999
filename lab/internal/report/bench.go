package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
)

// Bench writes a report in Go's benchmark format, for benchstat: a line for each
// round of a row, and one for the figures that a row has once. Published figures
// are not in it. The date is not in it either, because benchstat compares only
// results with the same configuration.
func Bench(w io.Writer, r *result.Report) error {
	buf := bufio.NewWriter(w)
	out := benchfmt.NewWriter(buf)
	config := benchConfig(&r.Machine)
	for i := range r.Rows {
		for _, res := range benchResults(&r.Rows[i]) {
			res.Config = config
			if err := out.Write(res); err != nil {
				return err
			}
		}
	}
	return buf.Flush()
}

// benchConfig describes a machine.
func benchConfig(m *result.Machine) []benchfmt.Config {
	var config []benchfmt.Config
	for _, c := range [][2]string{
		{"goos", m.OS}, {"goarch", m.Arch}, {"pkg", "github.com/cheapgo/cheap/lab"},
		{"cpu", m.CPU}, {"go", m.Go}, {"gogc", m.GOGC}, {"malloc", m.Malloc},
		{"transparent-huge-pages", m.HugePages},
	} {
		if value := strings.Join(strings.Fields(c[1]), " "); value != "" { // on one line
			config = append(config, benchfmt.Config{Key: c[0], Value: []byte(value), File: true})
		}
	}
	return config
}

// benchResults returns the lines of a row. Its name always ends in the number of processors: without
// it, benchstat would take a size at the end of the name for that number.
func benchResults(row *result.Row) (lines []*benchfmt.Result) {
	name := benchfmt.Name(fmt.Sprintf("Cheap/table=%s/row=%s-%d", oneWord(row.Table), oneWord(row.Row), row.Procs))
	for _, ns := range row.Samples {
		lines = append(lines, &benchfmt.Result{Name: name, Iters: 1, Values: []benchfmt.Value{value(ns, "ns/op")}})
	}
	once := []benchfmt.Value{value(row.GoBytesPerOp, "B/op"), value(row.AllocsPerOp, "allocs/op")}
	for _, v := range []benchfmt.Value{
		value(row.CPUNsPerOp, "cpu-ns/op"), value(row.Resident, "peak-RSS-bytes"), value(row.Kept, "kept-RSS-bytes"), value(row.Held, "held"), value(row.P99, "p99-ns"),
		value(row.P999, "p99.9-ns"), value(row.Peak, "peak-bytes-in-C"), value(row.HeapBytes, "heap-bytes"),
	} {
		if v.Value > 0 {
			once = append(once, v)
		}
	}
	return append(lines, &benchfmt.Result{Name: name, Iters: 1, Values: once})
}

// value makes a value with no more digits than a clock has.
func value(x float64, unit string) benchfmt.Value {
	return benchfmt.Value{Value: figure.Round(x, 7), Unit: unit}
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
