package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// A progress shows on a terminal what the command does, on one line that is
// overwritten. If the output is not a terminal, it shows nothing.
type progress struct {
	out   io.Writer
	shown bool
	tty   bool
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, tty: ok && term.IsTerminal(int(file.Fd()))}
}

// show replaces the line.
func (p *progress) show(format string, args ...any) {
	if p.tty {
		fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
		p.shown = true
	}
}

// clear removes the line, so that something else can be written.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
