package present

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// golden compares what was written with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d:\n got %s\nwant %s\n(go test ./internal/present -update writes the file anew)", path, i+1, gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%s: %d lines, want %d", path, len(gotLines), len(wantLines))
	}
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
