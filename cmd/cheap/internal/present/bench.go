package present

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
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
		for _, res := range benchResults(r, &r.Rows[i]) {
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
		{"goos", m.OS}, {"goarch", m.Arch}, {"pkg", "github.com/cheapgo/cheap/cmd/cheap"},
		{"cpu", m.CPU}, {"go", m.Go}, {"gogc", m.GOGC}, {"malloc", m.Malloc},
		{"transparent-huge-pages", m.HugePages},
	} {
		if value := strings.Join(strings.Fields(c[1]), " "); value != "" { // on one line
			config = append(config, benchfmt.Config{Key: c[0], Value: []byte(value), File: true})
		}
	}
	return config
}

// benchResults returns the lines of a row. A name of `cheap bench` always ends in
// the number of processors: without it, benchstat would take a size at the end of
// the name for the number of processors.
func benchResults(r *result.Report, row *result.Row) []*benchfmt.Result {
	name, ops := fmt.Sprintf("Cheap/table=%s/row=%s-%d", oneWord(row.Table), oneWord(row.Row), row.Procs), 1
	if r.Replay {
		name, ops = fmt.Sprintf("Replay/trace=%s/allocator=%s", oneWord(row.Table), oneWord(row.Row)), row.Ops
	}
	var lines []*benchfmt.Result
	for _, ns := range rounds(row) {
		lines = append(lines, &benchfmt.Result{Name: benchfmt.Name(name), Iters: ops, Values: []benchfmt.Value{value(ns, "ns/op")}})
	}
	if values := knownOnce(r, row); len(values) > 0 {
		lines = append(lines, &benchfmt.Result{Name: benchfmt.Name(name), Iters: 1, Values: values})
	}
	return lines
}

// knownOnce returns the figures that a row has once for all rounds.
func knownOnce(r *result.Report, row *result.Row) (values []benchfmt.Value) {
	switch {
	case !r.Replay:
		if row.CPUNsPerOp > 0 {
			values = append(values, value(row.CPUNsPerOp, "cpu-ns/op"))
		}
		values = append(values, value(row.GoBytesPerOp, "B/op"), value(row.AllocsPerOp, "allocs/op"))
		if row.Resident > 0 {
			values = append(values, benchfmt.Value{Value: row.Resident, Unit: "peak-RSS-bytes"})
		}
		if row.Held > 0 {
			values = append(values, value(row.Held, "held"))
		}
		if row.P99 > 0 {
			values = append(values, value(row.P99, "p99-ns"))
		}
		for _, v := range []benchfmt.Value{value(row.P999, "p99.9-ns"), value(row.Peak, "peak-bytes-in-C"), value(row.HeapBytes, "heap-bytes")} {
			if v.Value > 0 {
				values = append(values, v)
			}
		}
	case row.Memory != nil:
		values = append(values, benchfmt.Value{Value: float64(row.Memory.Peak), Unit: "peak-RSS-bytes"},
			benchfmt.Value{Value: float64(row.Memory.Final), Unit: "final-RSS-bytes"})
	}
	return values
}

// value makes a value with no more digits than a clock has.
func value(x float64, unit string) benchfmt.Value {
	return benchfmt.Value{Value: figure.Round(x, 7), Unit: unit}
}

// rounds returns the times of a row's rounds, or its only time.
func rounds(row *result.Row) []float64 {
	if len(row.Samples) == 0 {
		return []float64{row.NsPerOp}
	}
	return row.Samples
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
