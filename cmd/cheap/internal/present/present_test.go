package present

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

func asText(r *result.Report, terminal Terminal) func(io.Writer) error {
	return func(w io.Writer) error { return Text(w, r, terminal) }
}

func asJSON(r *result.Report) func(io.Writer) error {
	return func(w io.Writer) error { return JSON(w, r) }
}

// Lines fit a terminal, from 80 columns on, with nothing behind their last letter.
func TestLinesAreNarrow(t *testing.T) {
	r := resulttest.Report()
	r.Machine.Malloc = "glibc 2.36 (libc.so.6), preloaded from a folder with a long name"
	r.Command, r.Version = "cheap bench"+strings.Repeat(" -cpu 1,2", 12), "v1.2.3"
	for asked, columns := range map[int]int{0: 100, 40: 80, 80: 80, 90: 90, 120: 120} {
		text := written(t, asText(r, Terminal{Columns: asked})) + written(t, asText(resulttest.Replay(), Terminal{Columns: asked}))
		widest := 0
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			n := length(line)
			if widest = max(widest, n); n > columns || strings.TrimRight(line, " ") != line {
				t.Errorf("a line of %d columns, in %d: %q", n, columns, line)
			}
		}
		if widest != columns {
			t.Errorf("the widest line has %d columns of %d", widest, columns)
		}
	}
}

// Colors change nothing but colors, and writing changes no report.
func TestColor(t *testing.T) {
	r := resulttest.Report()
	plain, before := written(t, asText(r, Terminal{})), written(t, asJSON(r))
	colored := written(t, asText(r, Terminal{Color: true}))
	bare := colored
	for _, s := range []style{"0", bold, dim, red, green, yellow, cyan} {
		bare = strings.ReplaceAll(bare, "\x1b["+string(s)+"m", "")
	}
	if bare != plain || !strings.Contains(colored, "\x1b[36m") {
		t.Error("text with color is not the text without it, colored")
	}
	if written(t, asJSON(r)) != before {
		t.Error("a report is another one after it was written")
	}
}

// benchstat reads with benchfmt: each line is a result, and the rounds are all there.
func TestBenchIsRead(t *testing.T) {
	r := resulttest.Report()
	reader := benchfmt.NewReader(strings.NewReader(written(t, func(w io.Writer) error { return Bench(w, r) })), "report.bench")
	rounds := 0
	for reader.Scan() {
		res, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("%v", reader.Result())
		}
		if base, parts := res.Name.Parts(); string(base) != "Cheap" || len(parts) != 3 || res.GetConfig("cpu") != r.Machine.CPU {
			t.Fatalf("the name %s has the parts %q; cpu is %q", res.Name, parts, res.GetConfig("cpu"))
		}
		if _, ok := res.Value("sec/op"); ok {
			rounds++
		}
	}
	want := 0
	for _, row := range r.Rows {
		want += len(row.Samples)
	}
	if rounds != want || reader.Err() != nil {
		t.Errorf("%d rounds, want %d, %v", rounds, want, reader.Err())
	}
	// A row without rounds has a line all the same, and names stay one word.
	odd := written(t, func(w io.Writer) error { return Bench(w, report(result.Table{}, timed("my trace/x", 71_234_567.89))) })
	if !strings.Contains(odd, "\nBenchmarkCheap/table=t/row=my_trace_x-1 1 7.123457e+07 ns/op\n") {
		t.Error(odd)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	want := resulttest.Report()
	got, err := ReadJSON(strings.NewReader(written(t, asJSON(want))))
	if err != nil || len(got.Rows) != len(want.Rows) || got.Machine != want.Machine {
		t.Fatalf("%v: %+v", err, got)
	}
	for i, row := range got.Rows {
		w := want.Rows[i]
		w.Machine = &want.Machine
		if w.Published == nil {
			w.Published = []result.Published{}
		}
		if !reflect.DeepEqual(row, w) {
			t.Errorf("row %d is %+v, want %+v", i, row, w)
		}
	}
	// Lists are never null.
	little := written(t, asJSON(report(result.Table{}, timed("a", 1))))
	if !strings.Contains(little, `"published":[]`) || !strings.Contains(little, `"samples_ns":[]`) || strings.Contains(little, "null") {
		t.Error(little)
	}
	if empty := written(t, asJSON(&result.Report{})); !json.Valid([]byte(empty)) {
		t.Errorf("an empty report is %q", empty)
	}
	if err := JSON(io.Discard, report(result.Table{}, timed("a", math.NaN()))); err == nil || !strings.Contains(err.Error(), "row a of table t") {
		t.Errorf("a time that is no number gets %v", err)
	}
}

func TestReadJSONRefuses(t *testing.T) {
	const row = `{"table":"t","row":"a","procs":1,"ns_per_op":1,"samples_ns":[1],"published":[],"machine":{},"later":1}`
	if _, err := ReadJSON(strings.NewReader("[" + row + "]")); err != nil {
		t.Error(err)
	}
	for _, file := range []string{
		"", "What C memory costs", "{}", "17", "[]", "[1]", "[null]", "[" + row, "[" + row + "][]",
		`[{"trace":"gcc","allocator":"heap","ops":1,"ns_per_op":1,"ns_per_op_median":1}]`,
		"[" + strings.Replace(row, `,"machine":{}`, "", 1) + "]", "[" + strings.Replace(row, `"ns_per_op":1`, `"ns_per_op":"1"`, 1) + "]",
	} {
		if _, err := ReadJSON(strings.NewReader(file)); !errors.Is(err, errForeign) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrors(t *testing.T) {
	r := resulttest.Report()
	for name, write := range map[string]func(io.Writer) error{
		"Text": asText(r, Terminal{}), "JSON": asJSON(r), "Bench": func(w io.Writer) error { return Bench(w, r) },
	} {
		if err := write(brokenWriter{}); !errors.Is(err, errBroken) {
			t.Errorf("%s returns %v where the writer fails", name, err)
		}
	}
}
