package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/cheapgo/cheap/cmd/cheap/internal/page"
	"github.com/cheapgo/cheap/cmd/cheap/internal/present"
	"github.com/cheapgo/cheap/internal/result"
)

// pageNames are the files of the page, unless -o names another. A page of a few rows
// does not replace that of a whole run.
var pageNames = map[page.Kind]string{
	page.Whole: "cheap-report.html",
	page.Quick: "cheap-report-quick.html",
	page.Part:  "cheap-report-part.html",
}

// An output says where a report goes, and in which format. If file is "", the
// report goes to stdout; if page is "", no page is written.
type output struct {
	format string
	file   string // of the report in that format
	page   string // of the page beside a text
	asked  bool   // -o named the files
	kind   page.Kind
}

var (
	benchFormats  = []string{"text", "json", "bench", "html"}
	replayFormats = []string{"text", "json", "bench"}
)

// parse understands -format and -o.
func (o *output) parse(format, file string) error {
	if !slices.Contains(benchFormats, format) {
		return usagef("-format: unknown format %q; the formats are text, json, bench and html", format)
	}
	o.format, o.file, o.asked = format, file, file != ""
	switch ending := filepath.Ext(file); {
	case format == "html" && file == "":
		o.file = pageNames[o.kind]
	case format != "text":
	case file == "":
		o.page = pageNames[o.kind]
	case strings.EqualFold(ending, ".html") || strings.EqualFold(ending, ".htm"):
		o.file, o.page = "", file
	default:
		o.page = strings.TrimSuffix(file, ending) + ".html"
	}
	return nil
}

// check returns an error if a file that was asked for cannot be written.
func (o *output) check() error {
	for _, file := range []string{o.file, o.page} {
		if file != "" && (o.asked || file == o.file) {
			if err := writable("-o", file); err != nil {
				return err
			}
		}
	}
	return nil
}

// writable returns an error if a file cannot be written. It does not change the
// file.
func writable(name, file string) error {
	_, before := os.Lstat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return usagef("%s: %v; name a file that can be written", name, err)
	}
	f.Close()
	if errors.Is(before, fs.ErrNotExist) {
		os.Remove(file)
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// write writes the report, and beside a text the page.
func (o *output) write(report *result.Report, stdout, stderr io.Writer) error {
	if report.Partial {
		o.becomePart()
	}
	if err := o.replaceable(); err != nil {
		if o.format == "html" {
			return err
		}
		fmt.Fprintf(stderr, "cheap bench: no page was written: %v\n", err)
		o.page = ""
	}
	err := o.writeTo(o.file, stdout, func(w io.Writer, terminal present.Terminal) error { return o.report(w, report, terminal) })
	if err != nil || o.page == "" || len(report.Rows) == 0 {
		return err
	}
	err = o.writeTo(o.page, nil, func(w io.Writer, _ present.Terminal) error { return page.Write(w, report, o.kind) })
	if err == nil {
		fmt.Fprintf(stderr, "cheap bench: the charts are in %s\n", o.page)
	} else if !o.asked { // the report is written, and the page was not asked for
		fmt.Fprintf(stderr, "cheap bench: no page was written: %v\n", err)
		return nil
	}
	return err
}

// becomePart gives the page of a run that was interrupted the name of its kind, unless
// -o has named it.
func (o *output) becomePart() {
	o.kind = page.Part
	if o.asked {
		return
	}
	if o.format == "html" {
		o.file = pageNames[o.kind]
	} else if o.page != "" {
		o.page = pageNames[o.kind]
	}
}

// replaceable returns an error if a page that -o has not named would replace a file that
// is not of its kind.
func (o *output) replaceable() error {
	name := o.page
	if o.format == "html" {
		name = o.file
	}
	if o.asked || name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil // it is new, or writing it says what is wrong
	}
	defer f.Close()
	head := make([]byte, 1024)
	n, _ := io.ReadFull(f, head)
	if kind := page.KindOf(head[:n]); n > 0 && kind != o.kind {
		return fmt.Errorf("%s is something else than such a page; remove it, or name another file with -o", name)
	}
	return nil
}

// report writes the report in the format.
func (o *output) report(w io.Writer, r *result.Report, terminal present.Terminal) error {
	switch o.format {
	case "json":
		return present.JSON(w, r)
	case "bench":
		return present.Bench(w, r)
	case "html":
		return page.Write(w, r, o.kind)
	}
	return present.Text(w, r, terminal)
}

// writeTo writes to a file, or to stdout if its name is "".
func (o *output) writeTo(file string, stdout io.Writer, write func(w io.Writer, terminal present.Terminal) error) error {
	var buf bytes.Buffer
	var terminal present.Terminal
	if file == "" {
		terminal = terminalOf(stdout)
	}
	if err := write(&buf, terminal); err != nil {
		return err
	}
	if file == "" {
		_, err := stdout.Write(buf.Bytes())
		return err
	}
	return os.WriteFile(file, buf.Bytes(), 0o666)
}

// mostColumns is how wide a text is on a wide terminal: longer lines are hard to read.
const mostColumns = 120

// terminalOf returns what a text on stdout is written for. On a terminal it is as wide as that.
func terminalOf(w io.Writer) present.Terminal {
	terminal := present.Terminal{Color: colors(w)}
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			terminal.Columns = min(width, mostColumns)
		}
	}
	return terminal
}

// colors reports whether a text may have colors: on a terminal that has colors,
// unless NO_COLOR is set in the environment.
func colors(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
