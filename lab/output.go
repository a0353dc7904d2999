package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/report"
)

// The pages beside a text. One of a few rows does not replace that of a whole run.
const (
	pageName = "cheap-report.html"
	partName = "cheap-report-part.html"
)

// An output says where a report goes, and in which format.
type output struct {
	format string
	file   string // "" for stdout
	part   bool   // not all rows, or other settings
}

// formats are how a report is written.
var formats = map[string]func(io.Writer, *result.Report) error{
	"text":  report.Text,
	"json":  report.JSON,
	"bench": report.Bench,
	"html":  report.Page,
}

// check finds the format, and returns an error if it is unknown or if the file cannot be written.
func (o *output) check() error {
	if o.format == "" {
		o.format = strings.TrimPrefix(filepath.Ext(o.file), ".")
		if formats[o.format] == nil {
			o.format = "text"
		}
	}
	if formats[o.format] == nil {
		return usagef("-format: unknown format %q; the formats are text, json, bench and html", o.format)
	}
	if o.file == "" {
		return nil
	}
	return writable("-o", o.file)
}

// writable returns an error if a file cannot be written. It does not change the file.
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

// write writes the report, and beside a text on stdout the page, if there is one.
func (o *output) write(r *result.Report, stdout, stderr io.Writer) error {
	var text bytes.Buffer
	if err := formats[o.format](&text, r); err != nil {
		return err
	}
	if o.file != "" {
		return os.WriteFile(o.file, text.Bytes(), 0o666)
	}
	if _, err := text.WriteTo(stdout); err != nil || o.format != "text" || len(r.Rows) == 0 {
		return err
	}
	name := pageName
	if o.part || r.Partial {
		name = partName
	}
	if err := formats["html"](&text, r); err != nil {
		return err
	}
	if err := os.WriteFile(name, text.Bytes(), 0o666); err != nil {
		fmt.Fprintf(stderr, "lab: no page was written: %v\n", err)
	} else {
		fmt.Fprintf(stderr, "lab: the charts are in %s\n", name)
	}
	return nil
}
