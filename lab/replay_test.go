package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

// small is a trace with each operation: malloc, calloc, realloc, aligned_alloc and free. Two blocks
// stay live.
const small = "FHT1\x03\x07\x01\x01\x00\x10\x03\x01\x80\x40\x04\x00\xff\x7f\x05\x02\x21\x80\x02\x02\x01\x01\x01\x00\x02\x00"

// writeTrace writes a stream as the file of a trace.
func writeTrace(t *testing.T, file, stream string) {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	zip.Write([]byte(stream))
	zip.Close()
	if err := os.WriteFile(file, buf.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestReplayBadTrace has files that are no traces: the error names the file, and the offset in what it
// has uncompressed.
func TestReplayBadTrace(t *testing.T) {
	t.Chdir(t.TempDir())
	for stream, want := range map[string]string{
		"FHT2\x02\x02\x01":                         `bad.fht.gz: offset 0: the magic is "FHT2", not "FHT1"`,
		"FHT1\x02\x02\x01\x01\x00\x10":             "bad.fht.gz: offset 10: the trace is cut short",
		"FHT1\x00\x00\x01":                         "bad.fht.gz: the trace has no operations",
		"FHT1\x02\x02\x01\x01\x00\x10\x01\x02\x10": "bad.fht.gz: offset 11: malloc of slot 2, which is out of range: the trace has 2 slots",
	} {
		writeTrace(t, "bad.fht.gz", stream)
		// The traces before it are reported.
		code, stdout, stderr := lab(t, t.Context(), "replay -runs=1 -rss=false -allocator=local -format=json gcc bad.fht.gz")
		if code != exitFailed || stderr != "lab replay: "+want+"\n" || !strings.Contains(stdout, `"trace":"gcc"`) {
			t.Errorf("%q: exit code %d, %s%s", stream, code, stdout, stderr)
		}
	}
	const want = "lab replay: open nofile: no such file or directory; the traces of this program are sqlite and gcc\n"
	if code, stdout, stderr := lab(t, t.Context(), "replay nofile"); code != exitFailed || stdout != "" || runtime.GOOS != "windows" && stderr != want {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// replayed returns the rows of a report in JSON, each with the keys that are documented and figures
// that can be.
func replayed(t *testing.T, text string, measured bool) (names []string) {
	t.Helper()
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, row := range rows {
		names = append(names, row["trace"].(string)+"/"+row["allocator"].(string))
		best, median := row["ns_per_op"].(float64), row["ns_per_op_median"].(float64)
		peak, isMeasured := row["peak_rss_bytes"].(float64)
		final, _ := row["final_rss_bytes"].(float64)
		if len(row) != 7 || best <= 0 || best > median || row["ops"].(float64) < 1 || isMeasured != measured || peak < final {
			t.Errorf("%v", row)
		}
	}
	return names
}

// TestReplayFormats replays a small trace on what is there, in each format.
func TestReplayFormats(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTrace(t, "small.fht.gz", small)
	if err := os.Mkdir("other", 0o777); err != nil {
		t.Fatal(err)
	}
	writeTrace(t, "other/small.fht.gz", small)
	line, linux := "replay -runs=2 -verify -allocator=local ", runtime.GOOS == "linux"
	if tables.HasC {
		line = "replay -runs=2 -verify -allocator=local,libc,native "
	}
	code, text, stderr := lab(t, t.Context(), line+"small.fht.gz gcc")
	for _, want := range []string{
		`^What real programs allocated`, `(?m)^go.*, GOGC=off, `, `(?m)^## small: 7 operations, timed 2×, every block verified$`,
		`(?m)^ +best +median.* allocator$`, `(?m)^ +[\d.]+ (ns|µs|ms) +[\d.]+ (ns|µs|ms) .* local$`, `(?m)^## all 2 traces$`,
	} {
		if code != exitOK || linux && stderr != "" || !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s: exit code %d, %s\n%s", want, code, stderr, text)
		}
	}
	if tables.HasC && !regexp.MustCompile(`(?m) of libc +of native .* allocator$(.|\n)* 1\.00× .* native$`).MatchString(text) {
		t.Error(text)
	}
	_, text, _ = lab(t, t.Context(), "replay -runs=1 -format=json -allocator=local small.fht.gz other/small.fht.gz gcc")
	if got := replayed(t, text, linux); !slices.Equal(got, []string{"small/local", "other/small.fht.gz/local", "gcc/local"}) {
		t.Errorf("%q", got)
	}
	_, text, _ = lab(t, t.Context(), "replay -runs=3 -format=bench -allocator=local small.fht.gz")
	rounds := regexp.MustCompile(`(?m)^BenchmarkReplay/trace=small/allocator=local 7 [\d.]+ ns/op$`).FindAllString(text, -1)
	if len(rounds) != 3 || strings.Contains(text, "final-RSS-bytes") != linux {
		t.Error(text)
	}
	if code, _, stderr := lab(t, t.Context(), "replay -allocator=native -runs=1 -rss=false"); !tables.HasC && (code != exitUsage || !strings.Contains(stderr, `allocator "native" is not in this build: it needs cgo`)) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestReplayNative has libraries that are not here, or that are not the malloc of the process after
// all: a line names each, and it has no row. The dynamic linker ignores a file that it cannot load,
// and the C library's malloc would be measured in its place.
func TestReplayNative(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTrace(t, "small.fht.gz", small)
	if err := os.WriteFile("libnot.so", []byte("no library"), 0o666); err != nil {
		t.Fatal(err)
	}
	natives := map[string]string{"./none.so": `^lab replay: none is not measured: .*\n$`}
	if runtime.GOOS == "linux" && tables.HasC {
		natives["./libnot.so"] = `^lab replay: not is not measured: malloc is in .*, and not in .*libnot\.so\n$`
		if _, err := preload.Find("jemalloc"); err == nil {
			natives["jemalloc"] = `^$`
		}
	}
	for native, want := range natives {
		code, stdout, stderr := lab(t, t.Context(), "replay -runs=1 -rss=false -format=json -allocator=local -native="+native+" small.fht.gz")
		rows := []string{"small/local"}
		if native == "jemalloc" {
			rows = append(rows, "small/jemalloc")
		}
		if got := replayed(t, stdout, false); code != exitOK || !regexp.MustCompile(want).MatchString(stderr) || !slices.Equal(got, rows) {
			t.Errorf("%s: exit code %d, %q, %s", native, code, got, stderr)
		}
	}
}
