package present

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

// benchstat reads with benchfmt: every line is a result or configuration, names
// come apart into table, row and processors, and the rounds are all there.
func TestBenchIsRead(t *testing.T) {
	r := resulttest.Report()
	out := written(t, func(w io.Writer) error { return Bench(w, r) })
	rounds := make(map[rowKey][]float64)
	once := make(map[rowKey]map[string]float64)
	reader := benchfmt.NewReader(bytes.NewReader(out), "report.bench")
	for reader.Scan() {
		res, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("%v", reader.Result())
		}
		if cpu := res.GetConfig("cpu"); cpu != r.Machine.CPU {
			t.Fatalf("cpu is %q, want %q", cpu, r.Machine.CPU)
		}
		if res.GetConfig("date") != "" {
			t.Fatal("the date is configuration: benchstat would not compare reports of two days")
		}
		key := benchKey(t, res.Name)
		for _, v := range res.Values {
			if v.OrigUnit == "ns/op" {
				rounds[key] = append(rounds[key], v.OrigValue)
				continue
			}
			if once[key] == nil {
				once[key] = make(map[string]float64)
			}
			if _, twice := once[key][v.Unit]; twice {
				t.Errorf("%v has %s twice", key, v.Unit)
			}
			once[key][v.Unit] = v.Value
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	if len(rounds) != len(r.Rows) {
		t.Errorf("%d rows, want %d", len(rounds), len(r.Rows))
	}
	for _, row := range r.Rows {
		got := rounds[keyOf(&row)]
		if len(got) != len(row.Samples) {
			t.Fatalf("%v has %d rounds, want %d", keyOf(&row), len(got), len(row.Samples))
		}
		for i, ns := range got {
			if diff := ns/row.Samples[i] - 1; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("%v, round %d: %v ns, want %v", keyOf(&row), i, ns, row.Samples[i])
			}
		}
		if got := once[keyOf(&row)]["allocs/op"]; got != row.AllocsPerOp {
			t.Errorf("%v: %v allocs/op, want %v", keyOf(&row), got, row.AllocsPerOp)
		}
		if got := once[keyOf(&row)]["B/op"]; got != row.GoBytesPerOp {
			t.Errorf("%v: %v B/op, want %v", keyOf(&row), got, row.GoBytesPerOp)
		}
	}
}

// Resident memory is in the lines of the rows that have it, and in no others.
func TestBenchResident(t *testing.T) {
	r := report(result.Table{Name: "t"}, result.Row{Row: "has", NsPerOp: 1, Resident: 26_214_400}, result.Row{Row: "has-not", NsPerOp: 1})
	out := string(written(t, func(w io.Writer) error { return Bench(w, r) }))
	if !strings.Contains(out, "row=has-1 1 0 B/op 0 allocs/op 2.62144e+07 peak-RSS-bytes\n") || strings.Count(out, "peak-RSS-bytes") != 1 {
		t.Errorf("the only row with resident memory is has, with 26,214,400 bytes:\n%s", out)
	}
}

// So are what live objects hold, and the longest operations.
func TestBenchHeld(t *testing.T) {
	r := report(result.Table{Name: "t"}, result.Row{Row: "has", NsPerOp: 1, Held: 3.5, P99: 8_100_000}, result.Row{Row: "has-not", NsPerOp: 1})
	out := string(written(t, func(w io.Writer) error { return Bench(w, r) }))
	if !strings.Contains(out, "row=has-1 1 0 B/op 0 allocs/op 3.5 held 8.1e+06 p99-ns\n") || strings.Count(out, "held") != 1 || strings.Count(out, "p99") != 1 {
		t.Errorf("the only row with these figures is has:\n%s", out)
	}
}

// benchKey takes a benchmark's name apart as benchstat does.
func benchKey(t *testing.T, name benchfmt.Name) rowKey {
	t.Helper()
	var key rowKey
	base, parts := name.Parts()
	if string(base) != "Cheap" || len(parts) != 3 {
		t.Fatalf("the name %s has the parts %q", name, parts)
	}
	key.table = string(bytes.TrimPrefix(parts[0], []byte("/table=")))
	key.row = string(bytes.TrimPrefix(parts[1], []byte("/row=")))
	if _, err := fmt.Sscanf(string(parts[2]), "-%d", &key.procs); err != nil {
		t.Fatalf("the name %s has no processors: %v", name, err)
	}
	return key
}

// A row without rounds has a line all the same, and names stay one word.
func TestBenchOfLittle(t *testing.T) {
	out := written(t, func(w io.Writer) error {
		return Bench(w, report(result.Table{Name: "t"}, result.Row{Row: "my trace/x", NsPerOp: 71_234_567.89}))
	})
	if !bytes.Contains(out, []byte("\nBenchmarkCheap/table=t/row=my_trace_x-1 1 7.123457e+07 ns/op\n")) {
		t.Errorf("%s", out)
	}
}
