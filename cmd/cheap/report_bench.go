package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// benchReport is for benchstat: Go's benchmark format, one line for each round
// and one for the memory, which is measured once.
type benchReport struct {
	w io.Writer
}

func (r *benchReport) begin() error {
	m := thisMachine()
	_, err := fmt.Fprintf(r.w, "goos: %s\ngoarch: %s\npkg: github.com/cheapgo/cheap/cmd/cheap\ngo: %s\nmalloc: %s\n",
		m.goos, m.goarch, m.goVersion, m.malloc)
	if err == nil && m.hugePages != "" {
		_, err = fmt.Fprintf(r.w, "transparent-huge-pages: %s\n", m.hugePages)
	}
	return err
}

func (r *benchReport) trace(tr *trace.Trace, _ *settings, results []replayed) error {
	for _, res := range results {
		name := fmt.Sprintf("BenchmarkReplay/trace=%s/allocator=%s", oneWord(res.trace), res.allocator)
		for _, ns := range res.timing.PerOp() {
			if _, err := fmt.Fprintf(r.w, "%s\t%d\t%.3f ns/op\n", name, len(tr.Ops), ns); err != nil {
				return err
			}
		}
		if m := res.memory; m != nil {
			if _, err := fmt.Fprintf(r.w, "%s\t1\t%d peak-RSS-bytes\t%d final-RSS-bytes\n", name, m.Peak, m.Final); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *benchReport) end() error { return nil }

// oneWord makes a file's name fit between the slashes of a benchmark's.
func oneWord(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '/' {
			return '_'
		}
		return c
	}, name)
}
