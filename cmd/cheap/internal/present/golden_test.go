package present

import (
	"bytes"
	"flag"
	"io"
	"path/filepath"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// golden compares what was written with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	resulttest.Golden(t, path, got, *update)
}

// written returns what a format writes.
func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGolden(t *testing.T) {
	r, replay := resulttest.Report(), resulttest.Replay()
	for name, write := range map[string]func(io.Writer) error{
		"report.txt":    func(w io.Writer) error { return Text(w, r, Terminal{Color: false}) },
		"release.json":  func(w io.Writer) error { return JSON(w, only(r, "release")) },
		"release.bench": func(w io.Writer) error { return Bench(w, only(r, "release")) },
		"replay.txt":    func(w io.Writer) error { return Text(w, replay, Terminal{Color: false}) },
		"replay.json":   func(w io.Writer) error { return JSON(w, replay) },
		"replay.bench":  func(w io.Writer) error { return Bench(w, replay) },
		"cases.txt":     writeCases,
	} {
		t.Run(name, func(t *testing.T) { golden(t, filepath.Join("testdata", name), written(t, write)) })
	}
}

// only returns a report of one table.
func only(r *result.Report, table string) *result.Report {
	part := *r
	part.Rows = r.RowsOf(table)
	return &part
}
