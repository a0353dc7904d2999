package present

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

func asJSON(t *testing.T, r *result.Report) []byte {
	t.Helper()
	return written(t, func(w io.Writer) error { return JSON(w, r) })
}

func TestJSONRoundTrip(t *testing.T) {
	want := resulttest.Report()
	got, err := ReadJSON(bytes.NewReader(asJSON(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != len(want.Rows) || got.Machine != want.Machine {
		t.Fatalf("%d rows of %+v, want %d of %+v", len(got.Rows), got.Machine, len(want.Rows), want.Machine)
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
	for i, table := range got.Tables {
		if table.Name != want.Tables[i].Name {
			t.Errorf("table %d is %s, want %s", i, table.Name, want.Tables[i].Name)
		}
	}
}

// The fields are stable. If one is missing here, it was removed or renamed,
// which breaks programs; a new one is added to docs/json.md and here.
func TestJSONFields(t *testing.T) {
	r := resulttest.Report()
	r.Rows = slices.DeleteFunc(r.Rows, func(row result.Row) bool { return row.Row != "addcleanup" })
	var rows []map[string]any
	if err := json.Unmarshal(asJSON(t, r), &rows); err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]struct {
		value any
		want  string
	}{
		"row": {rows[0], "allocs_per_op ci95_high ci95_low cpu_ns_per_op go_bytes_per_op machine note ns_per_op procs profile " +
			"published row samples_ns table versus"},
		"versus":    {rows[0]["versus"], "ci95_high ci95_low noisy ratio to"},
		"published": {rows[0]["published"].([]any)[0], "ns source"},
		"profile":   {rows[0]["profile"].([]any)[0], "function share"},
		"machine":   {rows[0]["machine"], "arch cores cpu date go gogc huge_pages malloc os"},
	} {
		var names []string
		for field := range check.value.(map[string]any) {
			names = append(names, field)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != check.want {
			t.Errorf("%s has %s, want %s", name, got, check.want)
		}
	}
}

// Lists are never null.
func TestJSONOfLittle(t *testing.T) {
	r := report(result.Table{Name: "t"}, result.Row{Row: "a", NsPerOp: 1})
	out := string(asJSON(t, r))
	for _, want := range []string{`"published":[]`, `"samples_ns":[]`, `"ci95_low":0,"ci95_high":0`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
	if strings.Contains(out, "null") {
		t.Errorf("null in %s", out)
	}
	if r.Rows[0].Machine != nil || r.Rows[0].Published != nil {
		t.Error("JSON changed the report")
	}
	if out := asJSON(t, &result.Report{}); !slices.Equal(bytes.Fields(out)[0], []byte("[")) || !json.Valid(out) {
		t.Errorf("an empty report is %q", out)
	}
	err := JSON(io.Discard, report(result.Table{Name: "t"}, result.Row{Row: "a", NsPerOp: math.NaN()}))
	if err == nil || !strings.Contains(err.Error(), "row a of table t") {
		t.Errorf("a time that is no number gets %v", err)
	}
}

const goodRow = `{"table":"t","row":"a","procs":1,"ns_per_op":1,"samples_ns":[1],"published":[],"machine":{}}`

// A file of a later version has more fields.
func TestReadJSONOfLaterVersion(t *testing.T) {
	later := strings.Replace(goodRow, `{"table"`, `{"energy_nj":3,"table"`, 1)
	if r, err := ReadJSON(strings.NewReader("[" + later + "]")); err != nil || r.Rows[0].Row != "a" {
		t.Errorf("%v, %v", r, err)
	}
}

// Rows of a table need not stand together.
func TestReadJSONTables(t *testing.T) {
	row := func(table, name string) string {
		return strings.NewReplacer(`"t"`, `"`+table+`"`, `"a"`, `"`+name+`"`).Replace(goodRow)
	}
	r, err := ReadJSON(strings.NewReader("[" + row("t", "a") + "," + row("u", "a") + "," + row("t", "b") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tables) != 2 || r.Tables[0].Name != "t" || r.Tables[1].Name != "u" {
		t.Errorf("tables %+v, want t and u", r.Tables)
	}
}

func TestReadJSONRefuses(t *testing.T) {
	without := func(part string) string { return "[" + strings.Replace(goodRow, part, "", 1) + "]" }
	for name, c := range map[string]struct{ file, want string }{
		"nothing":           {"", "not a list"},
		"text":              {"What C memory costs", "not JSON"},
		"html":              {"<!doctype html>", "not JSON"},
		"binary":            {"\x7fELF\x00\x00", "not JSON"},
		"an object":         {`{"rows":[]}`, "not a list"},
		"a number":          {"17", "not a list"},
		"no rows":           {"[]", "no rows"},
		"numbers":           {"[1,2]", "element 1: not a report"},
		"null":              {"[null]", "it has no "},
		"cut":               {"[" + goodRow[:40], "element 1: not a report"},
		"no end":            {"[" + goodRow, "no end"},
		"two lists":         {"[" + goodRow + "][]", "something follows"},
		"garbage behind":    {"[" + goodRow + "]}", "something follows"},
		"replay":            {`[{"trace":"gcc","allocator":"heap","ops":1,"ns_per_op":1,"ns_per_op_median":1}]`, "it has no "},
		"no table":          {without(`"table":"t",`), "no table"},
		"no row":            {without(`"row":"a",`), "no row"},
		"no procs":          {without(`"procs":1,`), "no procs"},
		"no time":           {without(`"ns_per_op":1,`), "no ns_per_op"},
		"no samples":        {without(`"samples_ns":[1],`), "no samples_ns"},
		"no machine":        {without(`,"machine":{}`), "no machine"},
		"no published":      {without(`"published":[],`), "no published"},
		"twice":             {"[" + goodRow + "," + goodRow + "]", "twice"},
		"an empty name":     {"[" + strings.Replace(goodRow, `"a"`, `""`, 1) + "]", "no name"},
		"no processors":     {"[" + strings.Replace(goodRow, `"procs":1`, `"procs":0`, 1) + "]", "number of processors is 0"},
		"a negative time":   {"[" + strings.Replace(goodRow, `[1]`, `[1,-2]`, 1) + "]", "-2 ns"},
		"a time of text":    {"[" + strings.Replace(goodRow, `"ns_per_op":1`, `"ns_per_op":"1"`, 1) + "]", "not a row"},
		"an infinite time":  {"[" + strings.Replace(goodRow, `"ns_per_op":1`, `"ns_per_op":1e999`, 1) + "]", "not a row"},
		"an escape":         {"[" + strings.Replace(goodRow, `"a"`, `"a\u001b[2J"`, 1) + "]", "unprintable"},
		"a machine's break": {"[" + strings.Replace(goodRow, `{}`, `{"cpu":"a\nb"}`, 1) + "]", "unprintable"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ReadJSON(strings.NewReader(c.file))
			if err == nil {
				t.Fatalf("is read as %+v", r)
			}
			if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("gets %q, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
		})
	}
}

// That a file cannot be read is another thing than what is in it.
func TestReadJSONPassesErrors(t *testing.T) {
	broken := errors.New("input/output error")
	for _, before := range []string{"", "[", "[" + goodRow} {
		_, err := ReadJSON(io.MultiReader(strings.NewReader(before), brokenReader{broken}))
		if !errors.Is(err, broken) || errors.Is(err, errForeign) {
			t.Errorf("behind %q: %v", before, err)
		}
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzReadJSON(f *testing.F) {
	f.Add([]byte("[" + goodRow + "]"))
	f.Add([]byte("[{}]"))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := ReadJSON(bytes.NewReader(file))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
			return
		}
		again, err := ReadJSON(bytes.NewReader(asJSON(t, r)))
		if err != nil || len(again.Rows) != len(r.Rows) {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		text(t, r, false)
	})
}
