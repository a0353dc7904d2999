package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/test/testcall"
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
	testcall.Must(t, os.WriteFile(file, buf.Bytes(), 0o666))
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
		if code, stdout, stderr := lab(t, t.Context(), "replay gcc bad.fht.gz"); code != exitFailed || stderr != "lab: "+want+"\n" || stdout != "" {
			t.Errorf("%q: exit code %d, %s%s", stream, code, stdout, stderr)
		}
	}
	for line, want := range map[string]string{
		"nofile":      "open nofile: no such file or directory; the traces of this program are sqlite and gcc",
		"gcc gcc gcc": "the trace gcc is named twice; name each once",
	} {
		if code, stdout, stderr := lab(t, t.Context(), "replay "+line); code != exitFailed || stdout != "" || runtime.GOOS != "windows" && stderr != "lab: "+want+"\n" {
			t.Errorf("%s: exit code %d, %s%s", line, code, stdout, stderr)
		}
	}
}

// TestReplay replays a small trace on all that is there, two files of one name, and a trace of the program.
func TestReplay(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTrace(t, "small.fht.gz", small)
	testcall.Must(t, os.Mkdir("other", 0o777))
	writeTrace(t, "other/small.fht.gz", small)
	code, stdout, stderr := lab(t, t.Context(), "replay -count=2 -format=json small.fht.gz other/small.fht.gz gcc")
	var rows []result.Row
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || code != exitOK || tables.HasC && stderr != "" {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	found := map[string]bool{}
	for _, r := range rows {
		found[r.Table+" "+r.Row] = true
		if r.NsPerOp <= 0 || len(r.Samples) != 2 || (r.Versus == nil) != (!tables.HasC || r.Row == "native") || r.Table == "gcc" && r.Resident > 0 != (runtime.GOOS == "linux") {
			t.Errorf("%+v", r)
		}
	}
	want := []string{"small heap", "other/small.fht.gz local", "gcc modernc"}
	if _, err := preload.Find("jemalloc"); err == nil {
		want = append(want, "small libc", "gcc native", "gcc jemalloc")
	}
	for _, name := range want {
		if !found[name] {
			t.Errorf("no row %s", name)
		}
	}
}

// TestReplayNative has a library that is not the malloc of the process after all, which a note names: the
// dynamic linker ignores a file that it cannot load, and the C library's malloc would be measured in its
// place. A library that is not here is an error.
func TestReplayNative(t *testing.T) {
	if runtime.GOOS != "linux" || !tables.HasC {
		return // nothing is preloaded
	}
	t.Chdir(t.TempDir())
	writeTrace(t, "small.fht.gz", small)
	testcall.Must(t, os.WriteFile("libnot.so", []byte("no library"), 0o666))
	code, stdout, stderr := lab(t, t.Context(), "replay -count=1 -run=small/(local|not) -native=./libnot.so small.fht.gz")
	for _, want := range []string{
		`(?m)^ .* local$`, `(?s)\n- small/not is missing: not is not measured: malloc is\s+in .*, and not\s+in\s.*libnot\.so`,
	} {
		if code != exitOK || !strings.HasPrefix(stderr, "lab: the charts are in ") || !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %s: exit code %d, %s%s", want, code, stdout, stderr)
		}
	}
	testcall.Must(t, os.Rename("libnot.so", "libheap.so"))
	for library, want := range map[string]string{
		"./none.so":    `^lab: -native: none is not measured: .*\n$`,
		"none.so":      `^lab: -native: unknown library "none\.so"; .*\n$`,
		"./libheap.so": `/libheap\.so would be the second row with the name heap\n$`,
	} {
		if code, _, stderr := lab(t, t.Context(), "replay -native="+library+" small.fht.gz"); code != exitFailed || !regexp.MustCompile(want).MatchString(stderr) {
			t.Errorf("%s: exit code %d, %s", library, code, stderr)
		}
	}
}
