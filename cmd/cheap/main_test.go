package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cheap": main})
}

// TestScripts runs the command lines in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// Built with -race, a program would sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "libc" {
				return false, errors.New("unknown condition " + cond)
			}
			_, err := peers.Lookup("libc")
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":  cmdCode,
			"fht":   cmdFHT,
			"rows":  cmdRows,
			"bench": cmdBench,
			"lines": cmdLines,
		},
	})
}

// cmdCode is "code N cheap args...": the command exits with N, and says so in
// one line on stderr unless N is 0.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [args...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code is %d, want %s", code, want)
	}
	if lines := strings.Count(ts.ReadFile("stderr"), "\n"); code != 0 && lines != 1 {
		ts.Fatalf("stderr has %d lines, want 1", lines)
	}
}

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

// cmdLines is "lines n prefix": so many lines of stdout begin with prefix.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines n prefix")
	}
	n := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if strings.HasPrefix(line, args[1]) {
			n++
		}
	}
	if strconv.Itoa(n) != args[0] {
		ts.Fatalf("%d lines begin with %q, want %s", n, args[1], args[0])
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"replay", "-rss=false", "-format=json", "gcc"}, nil, &stdout, &stderr)
	if code != exitInterrupted || stderr.String() != "cheap replay: interrupted\n" || stdout.Len() != 0 {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, &stderr, &stdout)
	}
}

// TestClosedOutput sees that a result which cannot be written is an error.
func TestClosedOutput(t *testing.T) {
	for _, format := range []string{"text", "json", "bench"} {
		var stderr bytes.Buffer
		args := []string{"replay", "-rss=false", "-runs=1", "-allocator=modernc", "-format=" + format, "gcc"}
		if code := run(t.Context(), args, nil, closedWriter{}, &stderr); code != exitFailed {
			t.Errorf("%s: exit code %d, want %d; stderr %q", format, code, exitFailed, &stderr)
		}
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestTable(t *testing.T) {
	got := table([][]string{{"allocator", "of native"}, {"heap", "0.95×"}})
	want := "allocator  of native\n" +
		"heap           0.95×\n"
	if got != want {
		t.Errorf("table is\n%swant\n%s", got, want)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1808514: "1,808,514"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) is %s, want %s", n, got, want)
		}
	}
}

func TestOneWord(t *testing.T) {
	if got, want := oneWord("a b/c\td"), "a_b_c_d"; got != want {
		t.Errorf("oneWord is %s, want %s", got, want)
	}
}

func TestHugePages(t *testing.T) {
	file := t.TempDir() + "/enabled"
	if err := os.WriteFile(file, []byte("always [madvise] never\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := hugePages(file); got != "madvise" {
		t.Errorf("mode is %q, want madvise", got)
	}
	if got := hugePages(file + ".missing"); got != "" {
		t.Errorf("mode without a file is %q", got)
	}
}
