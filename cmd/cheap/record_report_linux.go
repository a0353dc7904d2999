//go:build amd64 || arm64

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/figure"
)

// mostLibraries is how many libraries the report names.
const mostLibraries = 8

// writeReport writes the report at the end.
func (r *recording) writeReport(w io.Writer, c shared.Counts, libraries []heapprofile.Library, p *profile.Profile) {
	name := figure.Printable(filepath.Base(r.path))
	fmt.Fprintf(w, "cheap record: the C heap of %s\n", name)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-11s %s\n", label, fmt.Sprintf(format, args...))
	}
	if r.pid != 0 {
		line("counted", "%s", r.counted())
	}
	if r.verdict.Sentence != "" {
		profile := "the profile"
		if r.page != "" {
			profile = "the page"
		}
		reportVerdict(r.verdict, profile, line)
	}
	if r.parts != nil {
		for _, what := range r.parts.leavesOut() {
			if !strings.HasPrefix(r.verdict.Sentence, what) {
				line("not all", "%s", what)
			}
		}
	}
	line("calls", "%s of malloc and its like, for %s; %s of free", figure.Thousands(int(c.Mallocs)), byteCount(c.Bytes), figure.Thousands(int(c.Frees)))
	if c.Samples == 0 {
		line("samples", "none: the program has allocated little; sample more with -rate")
	} else {
		trace := ""
		if r.traced != nil && r.traced.peak > 0 {
			trace = fmt.Sprintf("; %s by the trace, which has all calls", byteCount(r.traced.peak))
		}
		line("at most", "%s in use, give or take %s: from %s, one in %s%s; by library:",
			byteCount(c.Peak), byteCount(c.PeakError), figure.Plural(int(c.Samples), "sample"), byteCount(r.rate), trace)
		slices.SortStableFunc(libraries, func(x, y heapprofile.Library) int { return cmp.Compare(y.Peak, x.Peak) })
		for i, l := range libraries {
			if i == mostLibraries || l.Peak == 0 {
				break
			}
			line("", "%10s  %s", byteCount(l.Peak), figure.Printable(l.Name))
		}
		line("at the end", "%s, by place:", inUse(c))
		r.reportPlaces(line)
	}
	if r.pid != 0 {
		line("not seen", "calls by an address of malloc that was copied before, of an allocator that is linked into a library, and for half a second those of libraries that are loaded now")
	}
	if c.Lost > 0 {
		line("lost", "%s, for which there was no room: the figures are too small", figure.Plural(int(c.Lost), "sample"))
	}
	if r.parts != nil {
		r.parts.report(line, r.mostResident, int64(c.Peak))
	}
	r.reportMapped(line)
	if r.out != "" { // else it is shown again and again, and this takes a while
		r.reportMovable(line, libraries, c)
	}
	if r.page != "" {
		line("page", "%s", quoted(r.page))
	}
	switch {
	case r.page == r.out:
	case r.folder != "" || r.pid != 0: // the go command removes what it has built; a container has files of its own
		line("profile", "go tool pprof %s", quoted(r.out))
	case strings.Contains(r.args[0], "/"):
		line("profile", "go tool pprof %s %s", quoted(r.args[0]), quoted(r.out))
	default: // go tool pprof does not look in PATH
		line("profile", "go tool pprof %s %s", quoted(r.program.Path), quoted(r.out))
	}
	if r.older {
		line("", "%s was there, and was replaced", quoted(r.out))
	}
	if r.traced != nil {
		line("trace", "go run ./lab replay %s: %s", quoted(r.trace), figure.Plural(int(r.traced.writer.Ops()), "call"))
	}
}

// reportMovable says what Go code has asked for by itself, and what that would cost on a Heap.
func (r *recording) reportMovable(line func(label, format string, args ...any), libraries []heapprofile.Library, c shared.Counts) {
	m := movableOf(libraries, r.traced)
	if m.calls == 0 {
		return
	}
	about := ""
	if m.ops == nil {
		about = "about "
	}
	line("Go itself", "asked for %s%s in %s%s, by %s", about, byteCount(m.bytes), about, figure.Plural(int(m.calls), "block"), heapprofile.AskedByGo)
	hint := "; with -trace by replaying the calls"
	if len(r.program.Mallocs) == 0 {
		hint = "; a trace does not have them apart, because the program has no symbols"
	}
	if price, err := m.price(context.Background(), hint); err == nil {
		line("", "%s", price)
	} else {
		line("", "what that would cost on a cheap.Heap was not measured: %v", err)
	}
}

// inUse says what is in use.
func inUse(c shared.Counts) string {
	if bound := c.LiveBound(); c.LiveSamples == 0 && bound > 0 {
		return fmt.Sprintf("less than %s in use, with a certainty of 95 %%: no sample is in use", byteCount(bound))
	}
	text := byteCount(c.Live) + " in use"
	if c.Held > c.Live+c.Live/4 && c.Held-c.Live >= leastMapped {
		text += fmt.Sprintf(", for which malloc has taken %s: the blocks are small", byteCount(c.Held))
	}
	return text
}

// byteCount writes a number of bytes.
func byteCount[T ~int | ~int64 | ~uint64](n T) string {
	if n < 1024 {
		return figure.Plural(int(n), "byte")
	}
	return figure.Bytes(float64(n))
}

// quoted writes an argument for a shell.
func quoted(arg string) string {
	if strings.ContainsAny(arg, " '\"\\$&;|<>()*?`\t\n") {
		return "'" + strings.ReplaceAll(figure.Printable(arg), "'", `'\''`) + "'"
	}
	return figure.Printable(arg)
}
