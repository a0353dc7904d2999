package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdFHT is "fht file stream": it writes a stream, with the escapes of a Go
// string, as a trace file.
func cmdFHT(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fht file stream")
	}
	stream, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	_, err = zip.Write([]byte(stream))
	ts.Check(err)
	ts.Check(zip.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), buf.Bytes(), 0o666))
}

// cmdRows is "rows measured|unmeasured trace/allocator...": stdout is the JSON
// of these rows, in this order, each with the keys that are documented and
// figures that can be.
func cmdRows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: rows measured|unmeasured trace/allocator...")
	}
	var rows []map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &rows))
	want := []string{"allocator", "final_rss_bytes", "ns_per_op", "ns_per_op_median", "ops", "peak_rss_bytes", "trace"}
	var names []string
	for _, row := range rows {
		var keys []string
		for key := range row {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			ts.Fatalf("keys are %q, want %q", keys, want)
		}
		names = append(names, row["trace"].(string)+"/"+row["allocator"].(string))
		if ops := row["ops"].(float64); ops < 1 {
			ts.Fatalf("%v operations", ops)
		}
		if best, median := row["ns_per_op"].(float64), row["ns_per_op_median"].(float64); best <= 0 || best > median {
			ts.Fatalf("best is %v and median %v", best, median)
		}
		peak, isMeasured := row["peak_rss_bytes"].(float64)
		final, _ := row["final_rss_bytes"].(float64)
		if isMeasured != (args[0] == "measured") || peak < final {
			ts.Fatalf("peak is %v and final %v, want them %s", row["peak_rss_bytes"], row["final_rss_bytes"], args[0])
		}
	}
	if !reflect.DeepEqual(names, args[1:]) {
		ts.Fatalf("rows are %q, want %q", names, args[1:])
	}
}

func TestReplayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"replay", "-rss=false", "-format=json", "gcc"}, nil, &stdout, &stderr)
	if code != exitInterrupted || stderr.String() != "cheap replay: interrupted\n" || stdout.Len() != 0 {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, &stderr, &stdout)
	}
}

// TestReplayClosedOutput checks that a result which cannot be written is an error.
func TestReplayClosedOutput(t *testing.T) {
	for _, format := range []string{"text", "json", "bench"} {
		var stderr bytes.Buffer
		args := []string{"replay", "-rss=false", "-runs=1", "-allocator=local", "-format=" + format, "gcc"}
		if code := run(t.Context(), args, nil, closedWriter{}, &stderr); code != exitFailed {
			t.Errorf("%s: exit code %d, want %d; stderr %q", format, code, exitFailed, &stderr)
		}
	}
}
