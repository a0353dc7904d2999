package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/cmd/cheap/internal/page"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/result"
)

// cmdBench is "bench n table/row/procs...": stdout is the JSON of these rows, in
// this order, of n rounds each.
func cmdBench(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bench n table/row/procs...")
	}
	var rows []result.Row
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &rows))
	var names []string
	for _, r := range rows {
		names = append(names, fmt.Sprintf("%s/%s/%d", r.Table, r.Row, r.Procs))
		if strconv.Itoa(len(r.Samples)) != args[0] || r.NsPerOp <= 0 || r.Machine == nil || r.Machine.CPU == "" || r.Machine.GOGC != "100" {
			ts.Fatalf("%+v", r)
		}
		if r.CI95Low > r.NsPerOp || r.CI95High < r.NsPerOp && r.CI95High != 0 {
			ts.Fatalf("%v is not between %v and %v", r.NsPerOp, r.CI95Low, r.CI95High)
		}
		if _, err := time.Parse(time.RFC3339, r.Machine.Date); err != nil {
			ts.Fatalf("%v", err)
		}
	}
	if !reflect.DeepEqual(names, args[1:]) {
		ts.Fatalf("rows are %q, want %q", names, args[1:])
	}
}

// TestBenchInterrupted checks that an interrupted run prints what it has measured,
// here nothing.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	useTestLab(t)
	t.Chdir(t.TempDir())
	code := run(ctx, []string{"bench", "-format=json"}, nil, &stdout, &stderr)
	if code != exitInterrupted || !strings.HasSuffix("\n"+stderr.String(), "\ncheap bench: interrupted\n") || strings.Join(strings.Fields(stdout.String()), "") != "[]" {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, &stderr, &stdout)
	}
	stdout.Reset()
	stderr.Reset()
	code = run(ctx, []string{"bench"}, nil, &stdout, &stderr)
	if code != exitInterrupted || !strings.HasSuffix("\n"+stderr.String(), "\ncheap bench: interrupted\n") || !strings.Contains(stdout.String(), "nothing was measured") {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, &stderr, &stdout)
	}
	if files, _ := os.ReadDir("."); len(files) != 0 {
		t.Errorf("it wrote %v", files)
	}
}

// TestBenchClosedOutput checks that a report which cannot be written is an error.
func TestBenchClosedOutput(t *testing.T) {
	useTestLab(t)
	t.Chdir(t.TempDir())
	for _, format := range []string{"text", "json", "bench"} {
		var stderr bytes.Buffer
		args := []string{"bench", "-run=calls/inlined", "-count=1", "-benchtime=10x", "-format=" + format}
		if code := run(t.Context(), args, nil, closedWriter{}, &stderr); code != exitFailed {
			t.Errorf("%s: exit code %d, want %d; stderr %q", format, code, exitFailed, &stderr)
		}
	}
}

// TestWritable checks that writable does not change a file.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	there, missing := filepath.Join(dir, "there"), filepath.Join(dir, "missing")
	if err := os.WriteFile(there, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := writable("-o", there); err != nil {
		t.Error(err)
	}
	if err := writable("-o", missing); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(there); string(text) != "text" {
		t.Errorf("the file has %q", text)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("there is a file now")
	}
	if err := writable("-o", dir); err == nil {
		t.Error("a folder can be written")
	}
}

// useTestLab has the command in this process use the laboratory of the tests.
func useTestLab(t *testing.T) {
	builtLab = testLab()
	t.Cleanup(func() { builtLab = "" })
}

// TestRows reads the list of the laboratory: it has the rows of the headline, and the page has words
// for all.
func TestRows(t *testing.T) {
	if _, err := peers.Lookup("libc"); err != nil {
		return // most rows are about C
	}
	useTestLab(t)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"bench", "-list"}, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	list := strings.Fields(stdout.String())
	for _, row := range headline.Rows() {
		if !slices.Contains(list, row) {
			t.Errorf("there is no row %s", row)
		}
	}
	for _, name := range list {
		table, row, found := strings.Cut(name, "/")
		if _, unknown := page.Words(table, "", row); found && len(unknown) > 0 {
			t.Errorf("the page has no words for %q of %s", unknown, name)
		}
	}
}
