package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// textReport is for people: a table for each trace.
type textReport struct {
	w io.Writer
}

func (r *textReport) begin() error {
	m := thisMachine()
	line := fmt.Sprintf("%s %s/%s, %d CPUs, malloc: %s", m.goVersion, m.goos, m.goarch, m.cpus, m.malloc)
	if m.hugePages != "" {
		line += ", transparent huge pages: " + m.hugePages
	}
	_, err := fmt.Fprintln(r.w, line)
	return err
}

func (r *textReport) trace(tr *trace.Trace, s *settings, results []replayed) error {
	best := make(map[string]float64)
	for _, res := range results {
		best[res.allocator] = res.timing.Best()
	}
	versus := func(ns float64, name string) string {
		if best[name] == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f×", ns/best[name])
	}
	rows := [][]string{{"allocator", "best ns/op", "median ns/op", "of native", "of libc", "peak resident", "final resident"}}
	for _, res := range results {
		ns := res.timing.Best()
		row := []string{
			res.allocator,
			fmt.Sprintf("%.1f", ns),
			fmt.Sprintf("%.1f", res.timing.Median()),
			versus(ns, "native"),
			versus(ns, "libc"),
			"-", "-",
		}
		if res.memory != nil {
			row[5], row[6] = mebibytes(res.memory.Peak), mebibytes(res.memory.Final)
		}
		rows = append(rows, row)
	}

	verified := ""
	if s.verify {
		verified = ", every block verified"
	}
	_, err := fmt.Fprintf(r.w, "\n%s: %s operations, timed %d×%s\n%s",
		results[0].trace, thousands(len(tr.Ops)), s.runs, verified, table(rows))
	return err
}

func (r *textReport) end() error {
	_, err := io.WriteString(r.w, `
native calls malloc from a loop in C, libc calls the same malloc from Go through
cgo; "of native" and "of libc" compare best with best. Resident is what a process
of its own holds more than before the first operation: at its peak, and after
everything is freed and the allocator trimmed.
`)
	return err
}

// table aligns rows: the first column to the left, the others to the right.
func table(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&out, "%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(&out, "  %*s", widths[i+1], cell)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// mebibytes writes a number of bytes in MiB.
func mebibytes(n int64) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }

// thousands writes a number that is not negative in groups of three digits.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
