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
	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// pageName is the file of the page, unless -o names another.
const pageName = "cheap-report.html"

// An output says where a report goes, and in which format. If file is "", the
// report goes to stdout; if page is "", no page is written.
type output struct {
	format string
	file   string // of the report in that format
	page   string // of the page beside a text
	asked  bool   // -o named the files
}

var (
	benchFormats  = []string{"text", "json", "bench", "html"}
	replayFormats = []string{"text", "json", "bench"}
)

// parse understands -format and -o.
func (o *output) parse(format, file string, compares bool) error {
	if !slices.Contains(benchFormats, format) {
		return usagef("-format: unknown format %q; the formats are text, json, bench and html", format)
	}
	o.format, o.file, o.asked = format, file, file != ""
	switch ending := filepath.Ext(file); {
	case format == "html" && file == "":
		o.file = pageName
	case format != "text":
	case file == "":
		o.page = pageName
	case strings.EqualFold(ending, ".html") || strings.EqualFold(ending, ".htm"):
		o.file, o.page = "", file
	default:
		o.page = strings.TrimSuffix(file, ending) + ".html"
	}
	if compares && o.file == "" && format != "text" {
		return usagef("-compare: the comparison goes to stdout; name a file for the %s with -o", format)
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

// readOld reads the report to compare with.
func (s *benchSettings) readOld(file string, given bool) error {
	if !given {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return usagef("-compare: %v; name a file that cheap bench -format json has written", err)
	}
	defer f.Close()
	if s.old, err = present.ReadJSON(f); err != nil {
		return usagef("-compare: %s: %v; name a file that cheap bench -format json has written", file, oneLine(err))
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// write writes the report, and beside a text the page.
func (o *output) write(report, old *result.Report, stdout, stderr io.Writer) error {
	err := o.writeTo(o.file, stdout, func(w io.Writer, color bool) error { return o.report(w, report, color) })
	if err == nil && old != nil {
		err = o.writeTo("", stdout, func(w io.Writer, color bool) error { return present.Compare(w, old, report, color) })
	}
	if err != nil || o.page == "" || len(report.Rows) == 0 {
		return err
	}
	err = o.writeTo(o.page, nil, func(w io.Writer, _ bool) error { return page.Write(w, report) })
	if err == nil {
		fmt.Fprintf(stderr, "cheap bench: the charts are in %s\n", o.page)
	} else if !o.asked { // the report is written, and the page was not asked for
		fmt.Fprintf(stderr, "cheap bench: no page was written: %v\n", err)
		return nil
	}
	return err
}

// report writes the report in the format.
func (o *output) report(w io.Writer, r *result.Report, color bool) error {
	switch o.format {
	case "json":
		return present.JSON(w, r)
	case "bench":
		return present.Bench(w, r)
	case "html":
		return page.Write(w, r)
	}
	return present.Text(w, r, color)
}

// writeTo writes to a file, or to stdout if its name is "".
func (o *output) writeTo(file string, stdout io.Writer, write func(w io.Writer, color bool) error) error {
	var buf bytes.Buffer
	if err := write(&buf, file == "" && colors(stdout)); err != nil {
		return err
	}
	if file == "" {
		_, err := stdout.Write(buf.Bytes())
		return err
	}
	return os.WriteFile(file, buf.Bytes(), 0o666)
}

// colors reports whether a text may have colors: on a terminal that has colors,
// unless NO_COLOR is set in the environment.
func colors(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
